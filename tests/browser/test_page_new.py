"""The form for a new case in a real browser."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.pages import ready
from helpers.studio import client_of


def serious(page):
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    return [each["id"] for each in results.response["violations"] if each["impact"] in ("serious", "critical")]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_answer_to_a_new_case_follows_as_one_types(opened, server, explainer, width, scheme):
    page = opened("case=3", width, scheme)
    ready(page)
    page.click("#new-open")
    page.wait_for_selector("#new-answer .outcome")
    kinds = page.locator("#new .field :is(input, select)").evaluate_all("all => all.map((each) => each.type)")
    assert kinds == [*["number"] * 4, "select-one", "select-one", "date", "select-one"]
    own = dict(zip(explainer.space.names, explainer.space.at(3).instance, strict=True))
    assert page.input_value("#new-0") == str(own["age"])
    with client_of(server) as client:
        for income in (9_000, 140_000):
            expected = client.post("/v1/answer", json={"row": own | {"income": income}}).json()["answer"]

            page.fill("#new-1", str(income))  # the field keeps the focus
            page.wait_for_selector(f"#new-answer .outcome bdi:text-is('{expected}')")
    assert page.locator("#kicker").inner_text() == "New case, before your last changes"
    page.fill("#new-0", "200")
    page.wait_for_selector("#new-answer li:has-text('above every training value')")
    page.fill("#new-0", "")
    page.wait_for_selector("#new-answer .refused:has-text('age needs a value.')")
    assert page.is_disabled("#new-explain")
    page.click("#new summary")
    page.fill("#new-paste", "age,purpose\n44,boat\n")
    page.click("#new-use")
    page.wait_for_selector("#new-answer .outcome")
    assert (page.input_value("#new-0"), page.input_value("#new-1")) == ("44", "140000")
    assert not serious(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#new-explain")
    page.wait_for_selector("#kicker:text-is('New case')")
    ready(page)
    assert page.locator("#kicker").inner_text() == "New case"
    assert re.search("row=.*boat", page.url)
    page.reload()
    ready(page)
    assert page.input_value("#new-4") == "=boat"
    page.click("#new-close")
    page.wait_for_selector("#kicker:has-text('Case 3')")
    assert page.is_hidden("#new-card")
