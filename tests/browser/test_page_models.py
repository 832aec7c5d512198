"""The comparison of two models in a real browser."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio.display import Previous
from helpers.pages import TIMEOUT, ready
from helpers.studio import HOSTILE, cohort_table, live, loan_scores

CHOICES = {"classes": ["declined", "approved"]}


def stricter(frame):
    score = 0.1 + (frame["income"].to_numpy() > 60) * 0.5 + (frame["owner"] == "yes").to_numpy() * 0.3
    return np.column_stack([1 - score, score])


@pytest.fixture(scope="module")
def compared():
    frame, _ = cohort_table(60)
    previous = Previous(HOSTILE, stricter, Table(frame), CHOICES)
    with live(Explainer(loan_scores, Table(frame), **CHOICES), name="loans", previous=previous) as running:
        yield running


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_models_are_compared_and_their_cases_open(opened, compared, width, scheme):
    page = opened("case=1", width, scheme, studio=compared)
    ready(page)
    page.click("#view-models")
    assert page.is_hidden("#case-view")
    assert "view=models" in page.url
    page.select_option("#models-by", "owner")
    page.click("#models-find")
    page.wait_for_selector("#models progress[value]")
    page.wait_for_selector("#models-data", timeout=6 * TIMEOUT)
    assert page.locator("#models h2").first.inner_text() == "Decisions and explanations"
    assert page.locator("#models script, #models img").count() == 0
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    assert not [each["id"] for each in results.response["violations"] if each["impact"] in ("serious", "critical")]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    with page.expect_download() as waiting:
        page.click("#models-data")
    assert waiting.value.suggested_filename.endswith("comparison.json")
    page.locator("#models .pick").first.click()
    page.wait_for_selector("#kicker:has-text('Case ')")
    assert page.is_hidden("#models")
