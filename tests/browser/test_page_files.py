"""A file of cases, opened in a real browser."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from anchorline.studio.access import StudioLimits
from anchorline.studio.opened import MAX_UPLOAD
from helpers.pages import TIMEOUT, ready
from helpers.studio import HOSTILE, cohort_explainer, cohort_table, live

CASES = b"income,owner,age,decision\n20,yes,33,declined\n80,no,44,approved\n50,yes,28,declined\n"


@pytest.fixture(scope="module")
def files():
    limits = StudioLimits(max_upload=MAX_UPLOAD)
    with live(
        cohort_explainer(40), name="loans", truth=("decision", cohort_table(40)[1]), limits=limits
    ) as running:
        yield running


def choose(page, content, name="today.csv"):
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_file_is_opened_explained_and_closed(opened, files, width, scheme):
    page = ready(opened("case=7", width, scheme, studio=files))
    if width < 500:
        page.click("#drawer summary")
    choose(page, b"income,age\n1,2\n")
    page.wait_for_selector("#file-error:has-text(\"'today.csv' lacks the columns 'owner'.\")")
    assert page.locator("#kicker").inner_text().startswith("Case 7")  # nothing is lost
    assert page.locator("#drawer-title").inner_text() == "Cases (40)"
    choose(page, CASES, f"{HOSTILE}today.csv")
    page.wait_for_selector("#drawer-title:has-text('today.csv (3)')")
    ready(page)
    assert page.title() == "Case 0 - anchorline Studio"
    assert page.locator("#kicker").inner_text() == "Case 0 (true outcome: declined)"
    if width < 500:
        page.click("#drawer summary")
    assert page.locator("#listing .pick").all_inner_texts() == ["#0", "#1", "#2"]
    page.fill("#search", "wrong decisions age<30")
    page.wait_for_selector("#place:has-text(' of 1')")
    page.locator("#listing .pick").first.click()
    page.wait_for_selector("#kicker:has-text('Case 2')")
    ready(page)
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    assert not [each["id"] for each in results.response["violations"] if each["impact"] in ("serious", "critical")]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    link = page.url
    assert "file=" in link
    page.reload()  # the file stays open in this tab
    page.wait_for_selector("#kicker:has-text('Case 2')")
    # In another tab, it is not open, and the link says so.
    other = page.context.new_page()
    other.set_default_timeout(TIMEOUT)
    other.goto(link)
    other.wait_for_selector("#notices:has-text('a file that is not open here')")
    ready(other)
    assert other.locator("#kicker").inner_text().startswith("Case 0")
    other.get_by_role("button", name="Hide").click()
    assert other.is_hidden("#notices")
    assert other.locator("#drawer-title").inner_text() == "Cases (40)"
    other.close()
    if width < 500:
        page.click("#drawer summary")
    page.click("#file-close")
    page.wait_for_selector("#drawer-title:has-text('Cases (40)')")
    ready(page)


def test_a_file_that_the_server_has_forgotten_is_said_to_be_closed(opened, files):
    page = ready(opened(studio=files))
    choose(page, CASES)
    page.wait_for_selector("#drawer-title:has-text('today.csv (3)')")
    ready(page)
    for key in [*files.studio.files_of_users._entries]:
        files.studio.files_of_users._drop(key)
    page.locator("#listing .pick").last.click()
    page.wait_for_selector("#error:has-text('The file is not open.')")
    page.reload()
    page.wait_for_selector("#drawer-title:has-text('Cases (40)')")
    ready(page)


def test_without_upload_there_is_no_button(opened):
    page = ready(opened())
    assert page.is_hidden("#file-open")
