"""The studio in a real browser: new cases, classes, strange names, tokens, keys and the interface described."""

import json
import re

import numpy as np
import pandas as pd
from axe_playwright_python.sync_playwright import Axe

import anchorline as al
from helpers.pages import ready, terms, wait_until
from helpers.studio import live


def test_a_new_case_is_pasted_read_and_explained(opened, explainer):
    """Unknown columns and impossible values are named, and the typed text stays."""
    page = ready(opened("case=1"))
    page.evaluate("document.getElementById('new').open = true")
    names = "age,income,debt,employed_years,purpose,owner,applied,branch"
    page.fill("#new-text", f"{names},extra\nold,30000,100,3,car,perhaps,2024-05-01,south,1")
    page.click("#new-form button[type=submit]")
    complaints = page.locator("#new-rows li").all_inner_texts()
    assert 'age is "old", but it must be a number.' in complaints
    assert 'owner is "perhaps", but it must be true or false.' in complaints
    assert "extra is not a column of the table." in complaints
    assert page.input_value("#new-text").startswith(names)
    page.fill("#new-text", f'{names}\n44,30000,100,,"car",true,2024-05-01,south')
    page.click("#new-form button[type=submit]")
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('New case')")
    ready(page)
    row = {"age": 44, "income": 30000.0, "debt": 100, "employed_years": None, "purpose": "car", "owner": True}
    expected = explainer.explain(row | {"applied": "2024-05-01", "branch": "south"}, k=5)
    assert terms(page) == [term.literal.text for term in expected.terms]
    assert page.locator(".values-list dd").all_inner_texts()[:4] == ["44", "30000", "100", "missing"]
    page.reload()  # the link holds the values
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('New case')")


def test_the_changed_case_is_explained_as_its_own(opened, explainer):
    page = ready(opened("case=1"))
    page.locator("#what-if .switch").first.click()
    page.wait_for_selector("#explain-changed:not([disabled])")
    page.click("#explain-changed")
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('New case')")
    row = json.loads(page.evaluate("new URLSearchParams(location.search).get('row')"))
    ready(page)
    assert terms(page) == [term.literal.text for term in explainer.explain(row, k=5).terms]


def test_a_class_is_chosen_and_kept_in_the_link(opened, explainer):
    page = ready(opened("case=1"))
    other = "approved" if explainer.explain(1, n_certify=0).output == "declined" else "declined"
    page.select_option("#output", other)
    wait_until(page, f"document.querySelector('#waterfall tr.total th').textContent === 'P({other})'")
    assert f"output={other}" in page.url
    ready(page)
    expected = al.Explainer(explainer.model, explainer.space, output=other).explain(1, k=5)
    assert terms(page) == [term.literal.text for term in expected.terms]


def test_names_of_columns_may_be_those_of_members_of_objects(opened):
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(80, 3)), columns=["constructor", "__proto__", "toString"]
    )
    explainer = al.Explainer(
        lambda rows: np.tanh(rows.iloc[:, 0] + rows.iloc[:, 1]), al.Table(frame), output="score [points]"
    )
    with live(explainer) as studio:
        page = opened("case=1", studio=studio)
        page.wait_for_selector("#what-if .facts li")
        page.locator("#what-if .switch").first.click()
        page.wait_for_selector("#what-if li.broken")
        assert page.locator("#what-if .fields input").count() >= 3
        sentence = page.locator("#sentence").inner_text()
        assert re.search(r" (adds|takes) \d\.\d+\spoints (to|from) (score|it)", sentence)
        assert re.fullmatch(r"score \S+\spoints", page.locator("#headline").inner_text())
        assert page.locator("#what-if .outcomes :text('points')").count() >= 3
        assert page.locator("#class-choice").is_hidden()


def test_a_wrong_token_is_named_and_a_right_one_opens(opened, server):
    page = opened("case=2&token=wrong", login=False)
    page.wait_for_selector("#message:has-text('not valid')")
    found = Axe().run(page).response["violations"]
    assert not [each["id"] for each in found if each["impact"] in ("serious", "critical")]
    assert "token" not in page.url
    page.fill("#token", "also wrong")
    page.click("button[type=submit]")
    page.wait_for_selector("#message:has-text('not valid')")
    page.fill("#token", server.token)
    page.press("#token", "Enter")
    page.wait_for_selector("#kicker")
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('Case 2:')")


def test_the_list_is_one_stop_and_the_curve_has_keys(opened):
    page = ready(opened("case=1"))
    stops = "[...document.querySelectorAll('#listing .pick')].filter((pick) => pick.tabIndex === 0).length"
    assert page.evaluate(stops) == 1
    page.locator("#frontier rect[role=button]").nth(2).focus()
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#k-text').textContent === 'at most 3'")
    assert page.locator("#waterfall tr.axis .tick").count() >= 3


def test_the_interface_is_described_without_other_hosts(opened, server):
    page = ready(opened("case=1"))
    page.goto(f"{server.base}/docs")
    page.wait_for_selector("section h2:has-text('/explain')")
    assert page.locator("section").count() >= 9
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not [
        found for found in Axe().run(page).response["violations"] if found["impact"] in ("serious", "critical")
    ]
