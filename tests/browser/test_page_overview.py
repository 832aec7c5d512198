"""The summary of many cases in a real browser."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.pages import TIMEOUT, ready, wait_until
from helpers.studio import SlowModel, cohort_explainer, cohort_table, live, slow_explainer


@pytest.fixture(scope="module")
def cohort():
    with live(cohort_explainer(50), name="loans", truth=("decision", cohort_table(50)[1])) as running:
        yield running


def complete(page):
    page.wait_for_selector("#overview-head:not(:has(progress)) .downloads", timeout=6 * TIMEOUT)
    return page


def test_the_whole_model_is_summarized_filtered_and_downloaded(opened, cohort):
    page = opened("case=1&search=owner%3Dyes", studio=cohort)
    ready(page)
    truth = cohort_table(50)[1]
    assert page.locator("#kicker").inner_text() == f"Case 1 (true outcome: {truth[1]})"
    assert page.get_attribute("#search", "placeholder") == "Search, e.g. wrong decisions"
    page.select_option("#output", "approved")
    with page.expect_response(lambda response: "/v1/rows?" in response.url and "output=approved" in response.url):
        page.select_option("#sort", "low")
    page.click("#view")
    complete(page)
    assert "view=all" in page.url
    assert page.locator("#case-view").is_hidden()
    assert page.locator("#overview h1").inner_text() == "Cases that match owner=yes"
    text = page.locator("#overview").inner_text()
    assert re.search(r"\d\d\.\d% of \d+ decisions agree with the true outcomes, column decision", text)
    assert page.locator("#overview th:has-text('decided approved')").count() == 1
    assert page.locator("#overview th:has-text('raises P(approved)')").count() == 1
    with page.expect_download() as waiting:
        page.click("#overview-csv")
    assert waiting.value.suggested_filename == "explanations.csv"
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    assert not [each["id"] for each in results.response["violations"] if each["impact"] in ("serious", "critical")]
    page.locator("#overview .shares .picks summary").first.click()
    assert page.locator("#overview .shares .picks[open] .pick").count() > 0
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.fill("#search", "income > 1000")
    page.wait_for_selector("#overview :text('No case matches this search.')")
    assert "NaN" not in page.locator("#overview").inner_text()
    page.click("#view")
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('Case 1')")
    assert page.locator("#overview").is_hidden()


def test_a_summary_can_be_stopped_and_continued(opened):
    with live(slow_explainer(SlowModel(0.05))) as slow:
        page = opened("view=all", studio=slow)
        page.wait_for_selector("#overview-head progress")
        page.click("#overview-stop")
        page.wait_for_selector("#overview :text('Stopped.')")
        page.click("#overview-head button:has-text('Continue')")
        page.wait_for_selector("#overview-stop")
        page.locator("#overview .pick, #listing .pick").first.click()
        wait_until(page, "document.querySelector('#kicker').textContent.startsWith('Case ')")
        page.context.close()


def test_a_search_by_verdict_offers_to_explain_and_by_rule_to_find_rules(opened):
    """A server of its own, on which nothing is explained yet."""
    with live(cohort_explainer(40), name="loans", truth=("decision", cohort_table(40)[1])) as fresh:
        page = ready(opened("case=1", studio=fresh))
        page.fill("#search", "verdict=not explained")
        page.wait_for_selector("#listing :text('0 of 40 cases are explained.')")
        page.fill("#search", "owner=yes verdict!=undecided")
        n_owners = (cohort_table(40)[0]["owner"] == "yes").sum()
        page.wait_for_selector(f"#listing :text('0 of {n_owners} cases are explained.')")
        page.click("#find-out")
        page.wait_for_selector("#listing :text('cases are explained; ')", timeout=6 * TIMEOUT)
        assert page.locator("#find-out").count() == 0  # all cases of the search are explained
        n = page.locator("#listing .pick").count()
        assert n == int(page.locator("#place").inner_text().rpartition(" ")[2]) > 0
        page.fill("#search", "verdict=good")
        page.wait_for_selector("#listing :text('good is not a verdict. The verdicts are robust, explained')")
        page.fill("#search", "rule=1")
        page.click("#find-out:has-text('Find the rules')")
        page.wait_for_selector("#find-stop")
        page.wait_for_selector("#listing :text('Rule 1 of all cases is for ')", timeout=6 * TIMEOUT)
        assert page.locator("#listing .pick").count() > 0
        results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
        serious = [each for each in results.response["violations"] if each["impact"] in ("serious", "critical")]
        assert not [each["id"] for each in serious]
        page.fill("#search", "rule=77")
        page.wait_for_selector("#listing :text('There is no rule 77.')")
        page.fill("#search", "owner=yes ver")
        offered = page.locator("#searches option").evaluate_all("all => all.map((each) => each.value)")
        assert "owner=yes verdict=robust" in offered
        page.fill("#search", "")
        page.wait_for_selector("#place:has-text('of 40')")  # or the new search draws the cards again
        page.click("#view")
        page.click("#rules-find")
        page.wait_for_selector("#rules code:has-text('rule=1')", timeout=6 * TIMEOUT)
        page.context.close()
