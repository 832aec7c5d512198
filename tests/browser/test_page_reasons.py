"""The reasons for an adverse decision in a real browser, and the printed letter."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from anchorline.explainer import Explainer
from anchorline.result.reasons import Reasons
from anchorline.spaces.table import Table
from helpers.pages import ready
from helpers.studio import HOSTILE, cohort_table, live, loan_scores

CODES = {"income": {"low": ("R1", "Income too low")}, "owner": ("R2", f"No home {HOSTILE}"), "age": ("R3", "Age")}


@pytest.fixture(scope="module")
def lender():
    table, classes = Table(cohort_table(50)[0]), ["declined", "approved"]
    return Explainer(loan_scores, table, classes=classes, output="approved", threshold=0.5)


@pytest.fixture(scope="module")
def letters(lender):
    with live(
        lender, truth=("decision", cohort_table(50)[1]), reasons=lender.reason_settings(codes=CODES)
    ) as running:
        yield running


def test_an_adverse_decision_has_reasons_and_a_letter(opened, letters, lender):
    declined = next(i for i in range(50) if lender.explain(i, queries=100).prediction < 0.2)
    approved = next(i for i in range(50) if lender.explain(i, queries=100).prediction > 0.8)
    found = lender.reasons(declined, codes=CODES)
    page = ready(opened(f"case={declined}", studio=letters))
    page.wait_for_selector("#reasons tr.fact")
    assert page.locator("#reasons tr.fact th").count() == len(found.reasons)
    assert "Income too low (R1; income" in page.locator("#reasons").inner_text()
    assert page.locator("#reasons script, #reasons img").count() == 0
    with page.expect_download() as waiting:
        page.click("#reasons-data")
    assert Reasons.from_json(waiting.value.path().read_text()) == found
    for scheme in ("light", "dark"):
        results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
        bad = [e["id"] for e in results.response["violations"] if e["impact"] in ("serious", "critical")]
        assert not bad, scheme
        page.click("#theme")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate("window.print = () => {}")
    page.click("#letter-print")
    assert page.locator("#letter").is_hidden()  # on the screen
    page.emulate_media(media="print")
    assert page.locator("#letter li").count() == len(found.reasons)
    assert page.locator("#letter").is_visible()
    assert page.locator("#letter p").inner_text() == f"Case {declined}"  # without the true outcome
    assert page.locator("#main").is_hidden()
    assert page.locator("#letter script, #letter img").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    page.goto(f"{letters.base}/?case={approved}")
    ready(page)
    assert page.locator("#reasons-card").is_hidden()


def test_reasons_that_cannot_be_stated_are_explained_in_their_card(opened, lender):
    declined = next(i for i in range(50) if lender.explain(i, queries=100).prediction < 0.2)
    settings = lender.reason_settings(codes={"age": ("R3", "Age")})
    with live(lender, reasons=settings) as studio:
        page = ready(opened(f"case={declined}", studio=studio))
        page.wait_for_selector("#reasons [role=alert]:has-text('Add them to the file of --codes.')")
        assert page.locator("#error").is_hidden()
        page.context.close()
