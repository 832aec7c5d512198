"""What the studio says about its limits, in a real browser: doubts, disagreements, refused values, progress."""

import json
import re

import pytest

from anchorline.studio.proxy import Proxy
from helpers.pages import ready, wait_until
from helpers.studio import cohort_explainer, live


@pytest.fixture(scope="module")
def server():
    with live(cohort_explainer(50), proxy=Proxy(root_path="/team")) as running:
        yield running


def altered(page, path, change):
    """Let the page receive answers that ``change`` has altered; return the bodies of its requests."""
    bodies = []

    def alter(route):
        bodies.append(route.request.post_data_json if route.request.method == "POST" else None)
        answer = route.fetch()
        route.fulfill(response=answer, json=change(answer.json()))

    page.route(path, alter)
    return bodies


def test_doubts_disagreements_and_clipping_are_said(opened, server):
    """Equally good sums beside the headline, a sum that points the wrong way, clipped outputs with an option."""
    page = ready(opened("case=1", studio=server))
    fact = page.locator("#waterfall tr.term th").first.inner_text()

    def doubtful(view):
        view["clipping"] = "90 of 100 outputs were beyond output_range. Pass --output-range LOWEST HIGHEST."
        other = {"sum": view["sum"], "excess": {"value": 0, "low": 0, "high": 0.1}}
        others = {
            "alternatives": [other] * 4,
            "alternatives_complete": True,
            "shares": [{"text": fact, "share": 0.2}],
        }
        return view | others

    def opposed(answer):
        moved = 0.1 if answer["expected"] < answer["original"] else -0.1
        return answer | {"prediction": answer["original"] + moved}

    altered(page, "**/page/explain", doubtful)
    altered(page, "**/what-if", opposed)
    page.reload()
    ready(page)
    page.wait_for_selector("#doubt:not([hidden])")
    assert f"The evidence does not distinguish 5 sums. Not in all of them: {fact} (in 1 of 5)." == (
        page.locator("#doubt").inner_text()
    )
    assert "--output-range" in page.locator("#trust .clipping").inner_text()
    page.locator("#what-if .switch").first.click()
    page.wait_for_selector("#what-if .disagrees")
    assert re.search(r"goes (up|down), but the sum predicts", page.locator("#what-if .disagrees").inner_text())
    titles = page.locator("main h2").all_inner_texts()
    assert {"How the prediction adds up", "What if something were different?"} <= {*titles}
    page.locator("#listing tr[data-position='7'] .compare-button").click()  # far above the comparison
    page.wait_for_selector("#compare .side:nth-child(2) table")
    top = "document.querySelector('#compare-title').getBoundingClientRect().top"
    wait_until(page, f"{top} > -5 && {top} < innerHeight")


def test_a_refused_value_is_named_beside_its_field_and_stays_typed(opened, server):
    """The last accepted change stays, too."""
    page = ready(opened("case=1", studio=server))
    page.locator("#what-if .facts li:has-text('income') input").first.fill("80")
    page.keyboard.press("Tab")
    page.wait_for_selector("#reset:not([disabled])")
    wait_until(page, "location.search.includes('edits')")
    ready(page)
    problem = {"status": 422, "detail": "income is 81, which is impossible."}
    page.route(
        "**/what-if",
        lambda route: (
            route.fulfill(status=422, json=problem)
            if '"income":81' in route.request.post_data
            else route.continue_()
        ),
    )
    field = page.locator("#what-if .facts li:has-text('income') input").first
    field.fill("81")
    page.keyboard.press("Tab")
    page.wait_for_selector("#what-if .refused")
    assert page.locator("#what-if .refused").inner_text() == problem["detail"]
    assert (field.input_value(), field.get_attribute("aria-invalid")) == ("81", "true")
    assert page.locator("#error").is_hidden()
    ready(page)
    assert json.loads(page.evaluate("new URLSearchParams(location.search).get('edits')")) == {"income": 80}
    field.fill("82")
    page.keyboard.press("Tab")
    wait_until(page, "!document.querySelector('#what-if .refused')")


def test_mistakes_of_a_newcomer_are_named_where_they_happen(opened, server):
    """A misspelled column, a search without a case, a comparison without one, and a new case that is refused."""
    page = ready(opened("case=1", studio=server))
    page.fill("#search", "incme > 40")
    page.wait_for_selector("#listing :text('incme is not a column.')")
    page.click("#view")
    page.wait_for_selector("#overview :text('No case matches this search.')")
    assert "NaN" not in page.locator("#overview").inner_text()
    page.click("#view")
    page.fill("#other", "99")
    page.click("#compare-form button[type=submit]")
    page.wait_for_selector("#error:not([hidden]):has-text('99 does not exist')")
    box = page.locator("#error").bounding_box()
    assert 0 <= box["y"] < 800  # although the form is far below
    page.evaluate("document.getElementById('new').open = true")
    page.fill("#new-text", '{"income": 5')
    page.click("#new-form button[type=submit]")
    page.wait_for_selector("#new-rows :text('not valid JSON')")
    text = "income,owner,age\n5,yes,1e300"
    page.fill("#new-text", text)
    page.click("#new-form button[type=submit]")
    page.wait_for_selector("#new-rows li:has-text('age')")
    assert page.input_value("#new-text") == text
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('Case 1:')")
    assert "row=" not in page.url
    page.fill("#new-text", text.replace("1e300", "30"))
    page.click("#new-form button[type=submit]")
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('New case')")
    assert page.locator("#new-rows li").count() == 0
    ready(page)
    rows = [{"income": 20, "owner": "no", "age": 30}, {"income": 85, "owner": "yes", "age": 60}]
    opened_file = {"name": "rows.json", "mimeType": "application/json", "buffer": json.dumps(rows).encode()}
    page.set_input_files("#new-file", files=[opened_file])
    page.click("#new-rows button:has-text('Explain row 2')")
    wait_until(page, "document.querySelector('.values-list dd')?.textContent === '85'")
    ready(page)
    page.set_input_files("#new-file", files=[opened_file | {"buffer": b" " * 1_000_001}])
    page.wait_for_selector("#new-rows li:has-text('the maximum is 1000000')")


def test_the_list_says_how_far_the_answers_are_known(opened, server):
    """Behind a prefix, and with a link that repeats a fact, which the server counts once."""
    repeated = json.dumps(["owner"] * 300, separators=(",", ":"))
    page = opened(f"case=1&broken={repeated}", studio=server)
    page.wait_for_selector("#what-if li.broken")
    page.goto(f"{server.base}/team/?case=2&token={server.token}")
    ready(page)
    assert page.evaluate("location.pathname") == "/team/"
    altered(page, "**/rows?*sort=high*", lambda answer: answer | {"progress": 0.25})
    page.select_option("#sort", "high")
    page.wait_for_selector("#listing .progress:has-text('25% of the cases so far')")
    page.unroute("**/rows?*sort=high*")
    wait_until(page, "!document.querySelector('#listing .progress')")
