"""The cards about the whole model in a real browser."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.pages import TIMEOUT
from helpers.studio import HOSTILE, cohort_explainer, cohort_table, hostile_explainer, live


@pytest.fixture(scope="module")
def cohort():
    with live(cohort_explainer(50), name="loans", truth=("decision", cohort_table(50)[1])) as running:
        yield running


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_whole_model_is_shown_when_somebody_asks(opened, cohort, width, scheme):
    page = opened("view=all", width, scheme, studio=cohort)
    page.select_option("#acting-of", "income")
    page.wait_for_selector("#acting svg .spread")
    assert page.locator("#acting p").first.inner_text().startswith("As income goes from ")
    page.select_option("#acting-of", "owner")
    page.wait_for_selector("#acting svg .mean")
    page.click("#acting summary")
    assert page.locator("#acting tbody tr").count() == 2
    page.select_option("#groups-by", "owner")
    page.wait_for_selector("#groups tbody tr")
    page.click("#thresholds-find")
    page.wait_for_selector("#thresholds svg .line.other")
    page.click("#thresholds summary")
    own = [cell for cell in page.locator("#thresholds tbody tr").all_inner_texts() if cell.startswith("0.5\t")]
    page.wait_for_selector("#overview td.right")
    last = page.locator("#overview table:has(.right) tbody tr").last.inner_text().split("\t")
    recalls = page.locator("#overview tr:has(.right) td:last-child").all_inner_texts()
    assert own[0].split("\t")[-2:] == [last[1], recalls[0]]  # precision and recall, from counts and from shares
    page.click("#rules-find")
    page.wait_for_selector("#rules b", timeout=3 * TIMEOUT)
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    assert not [each["id"] for each in results.response["violations"] if each["impact"] in ("serious", "critical")]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#rules .picks summary").first.click()
    page.locator("#rules .pick").first.click()
    page.wait_for_selector("#kicker:has-text('Case ')")
    assert page.is_hidden("#whole")


def test_names_from_data_stay_text(opened):
    with live(hostile_explainer()) as hostile:
        page = opened("view=all", studio=hostile)
        page.select_option("#acting-of", HOSTILE)
        page.wait_for_selector("#acting svg")
        page.select_option("#groups-by", "cell")
        page.wait_for_selector("#groups tbody tr")
        assert page.title() == "All cases - anchorline Studio"
        assert page.locator("#whole script, #whole img").count() == 0
        page.context.close()
