"""The summary of many cases in a real browser."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.pages import TIMEOUT, wait_until
from helpers.studio import HOSTILE, cohort_explainer, cohort_table, hostile_explainer, live


@pytest.fixture(scope="module")
def cohort():
    with live(cohort_explainer(50), name="loans", truth=("decision", cohort_table(50)[1])) as running:
        yield running


def complete(page):
    page.wait_for_selector("#rules", timeout=6 * TIMEOUT)
    return page


def test_the_whole_model_is_summarized_filtered_and_compared(opened, cohort):
    """One page, because a summary costs seconds: truth, threshold, effect, rules, filter and comparison."""
    page = opened("case=1&search=owner%3Dyes", studio=cohort)
    page.wait_for_selector("#waterfall tr.total")
    truth = cohort_table(50)[1]
    assert page.locator("#kicker").inner_text().endswith(f"(true decision: {truth[1]})")
    page.select_option("#output", "approved")
    with page.expect_response(lambda response: "/rows?" in response.url and "output=approved" in response.url):
        page.select_option("#sort", "low")
    page.click("#view")
    page.wait_for_selector("#overview-head progress, #rules")
    complete(page)
    assert "view=all" in page.url
    assert page.locator("#case-view").is_hidden()
    assert page.locator("#overview h1").inner_text() == "Cases that match owner=yes"
    text = page.locator("#overview").inner_text()
    assert re.search(r"\d\d\.\d% of \d+ decisions agree with decision", text)
    assert page.locator("#overview th:has-text('decided approved')").count() == 1
    assert page.locator(".calibration circle").count() >= 2
    before = page.locator("#overview p:has-text('would be errors')").inner_text()
    page.locator("#threshold").fill("95")
    assert page.locator("#overview p:has-text('would be errors')").inner_text() != before
    assert page.locator("#effect svg circle").count() > 5
    page.select_option("#effect-choice", "owner")
    assert page.locator("#effect tbody th").all_inner_texts() == ["yes"]
    assert page.locator("#rules tbody tr").count() >= 1
    page.fill("#overview-other", "owner=no")
    page.click("#overview-compare button")
    page.wait_for_selector("#overview-compare tr.differs", timeout=6 * TIMEOUT)
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    assert not [each["id"] for each in results.response["violations"] if each["impact"] in ("serious", "critical")]
    position = page.locator("#rules td .pick").first.inner_text().removeprefix("#")
    page.locator("#rules td .pick").first.click()
    wait_until(page, f"document.querySelector('#kicker').textContent.startsWith('Case {position}:')")
    assert page.locator("#overview").is_hidden()
    page.go_back()
    page.wait_for_selector("#rules", timeout=6 * TIMEOUT)  # it was kept


def test_the_summary_stops_fits_a_phone_and_shows_markup_as_text(opened):
    with live(hostile_explainer(), truth=(HOSTILE, ["<b>no</b>"] * 120)) as studio:
        page = opened("search=cell%3Dplain", width=390, studio=studio)
        page.wait_for_selector("#waterfall tr.total")

        is_cut = [True]

        def unfinish(route):
            answer = route.fetch()
            cut = {"is_done": False, "progress": 0.5, "rules": None} if is_cut[0] else {}
            route.fulfill(response=answer, json=answer.json() | cut)

        page.route("**/overview", unfinish)
        page.click("#view")
        page.click("#overview-stop")
        is_cut[0] = False
        page.wait_for_selector("#overview-head button:has-text('Continue')")
        page.click("#overview-head button:has-text('Continue')")
        complete(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert "<script>" in page.locator("#overview").inner_text()
        assert page.title() == "All cases - anchorline Studio"


def test_an_undecided_verdict_can_be_measured_on_more_neighbors(opened, cohort):
    page, bodies = opened("case=2", studio=cohort), []
    page.wait_for_selector("#waterfall tr.total")

    def undecide(route):
        bodies.append(route.request.post_data_json)
        view = (answer := route.fetch()).json()
        view["verdict"] |= {"name": "undecided", "title": "undecided"}
        route.fulfill(response=answer, json=view)

    page.route("**/page/explain", undecide)
    page.reload()
    page.click("#measure-more")
    page.wait_for_selector("#trust p:has-text('at most 20,000 neighbors')")
    assert {"n_certify": 20_000}.items() <= bodies[-1].items()
    assert "measure=more" in page.url
    page.wait_for_selector("#others li")  # the last answer
    page.emulate_media(media="print")
    assert all(page.locator(name).is_hidden() for name in ("header.bar", ".cases", "#what-if", "#new-card"))
    drawn = "getComputedStyle(document.querySelector('#waterfall .strip')).printColorAdjust"
    assert page.evaluate(drawn) == "exact"
