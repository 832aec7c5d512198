"""The studio in a real browser: search, select, move sliders, change values, compare, download and share."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe

from anchorline.explainer import Explainer
from anchorline.render.geometry import bands_of
from anchorline.render.statements import statements_of
from anchorline.result.rule import Rule
from anchorline.spaces.table import Table
from anchorline.studio.access import Proxy
from anchorline.verify import verify
from helpers.pages import facts, ready, wait_until
from helpers.studio import HOSTILE, SlowModel, hostile_explainer, live, slow_explainer


def shown_facts(e):
    return [each.text for each in statements_of(e) if each.kind == "fact"]


def case_is_open(page, name):
    wait_until(page, f"/^{name}(?!\\d)/.test(document.querySelector('#kicker').textContent)")
    return ready(page)


def test_open_shows_the_statements_and_hides_the_token(opened, server, explainer):
    page = ready(opened("case=1"))
    assert server.token not in page.url
    e = explainer.explain(1)
    said = statements_of(e)
    assert page.locator("#headline").inner_text() == str(e.output.decision)
    number = page.locator("#waterfall tr.total .number").inner_text()
    assert page.locator("#small").inner_text() == f"Model's decision, P({e.output.name}) = {number}"
    assert page.locator("#verdict").inner_text()[2:] == f"{said[1].text}:"
    assert facts(page) == shown_facts(e)
    evidence = [each.text for each in said if each.kind == "holds"]
    assert page.locator("#evidence > p").all_inner_texts() == evidence
    shown = page.locator("#answer").inner_text()
    assert max(len(part.split()) for part in re.split(r"[.:?]\s|\n", shown)) <= 25
    page.click("#how > summary")
    (rows,) = [each.text for each in said if each.kind == "rows"]
    assert page.locator("#shares > p").first.inner_text() == rows
    assert page.locator("#shares .meter").count() == 2
    assert page.locator("#legend").inner_text().startswith("An altered copy is")
    assert page.evaluate("document.cookie") == ""  # scripts cannot read the cookie


def test_the_waterfall_adds_up_in_pixels(opened):
    page = ready(opened("case=1"))
    boxes = [bar.bounding_box() for bar in page.locator("#waterfall .strip").all()]
    numbers = page.locator("#waterfall tr.fact td.number").all_inner_texts()
    dots = [dot.bounding_box() for dot in page.locator("#waterfall .dot").all()]
    level = dots[0]["x"] + dots[0]["width"] / 2
    for box, number in zip(boxes, numbers, strict=True):
        start, end = box["x"], box["x"] + box["width"]
        start, end = (start, end) if number.startswith("+") else (end, start)
        assert start == pytest.approx(level, abs=1.5)
        level = end
    assert dots[1]["x"] + dots[1]["width"] / 2 == pytest.approx(level, abs=1.5)


def test_search_pick_and_go_back(opened):
    page = ready(opened())
    page.fill("#search", "declined purpose=home")
    wait_until(page, "document.querySelector('#place').textContent.match(/ of \\d{2,3}$/)")
    answers = page.locator("#listing .chip").all_inner_texts()
    assert answers
    assert all(answer.startswith("declined") for answer in answers)
    second = page.locator("#listing .pick").nth(1)
    number = second.inner_text().removeprefix("#")
    second.click()
    case_is_open(page, f"Case {number}")
    assert f"case={number}" in page.url
    assert "search=declined" in page.url
    assert page.locator("#listing tr.selected .pick").inner_text() == f"#{number}"
    page.go_back()
    case_is_open(page, "Case 0")
    page.fill("#search", "incme > 40")
    page.wait_for_selector("#listing :text('incme is not a column.')")


def set_slider(page, name, value):
    page.evaluate(
        """([name, value]) => {
             const slider = document.getElementById(name);
             slider.value = value;
             slider.dispatchEvent(new Event("input", { bubbles: true }));
           }""",
        [name, str(value)],
    )


def test_sliders_ask_for_another_explanation(opened, explainer):
    page = ready(opened("case=1"))
    for name, value in (("k", 2), ("sigma", 2.75)):
        set_slider(page, name, value)
        page.wait_for_selector("#answer.stale")
        ready(page)
    assert facts(page) == shown_facts(explainer.explain(1, k=2, sigma=2.75))
    assert "k=2&sigma=2.75" in page.url


def test_values_are_typed_and_the_changed_case_explained(opened, explainer):
    page = ready(opened("case=1"))
    page.fill("#edit-1", "90000")
    page.press("#edit-1", "Tab")
    page.wait_for_selector("#what-if .outcome:has-text('The decision changes. Now: approved')")
    row = dict(zip(explainer.space.names, explainer.space.at(1).instance, strict=True)) | {"income": 90000}
    answer = explainer.model.predict_proba(explainer.space.at(row).original)[0, 1]
    assert f"{100 * answer:.1f}%" in page.locator("#what-if dl").inner_text()
    broken = page.locator("#what-if ul.note").inner_text()
    assert broken == next(text for text in shown_facts(explainer.explain(1)) if text.startswith("income"))
    assert json.loads(page.evaluate("new URLSearchParams(location.search).get('edits')")) == {"income": 90000}
    page.click("#explain-changed")
    case_is_open(page, "New case")
    row = json.loads(page.evaluate("new URLSearchParams(location.search).get('row')"))
    assert facts(page) == shown_facts(explainer.explain(row))
    page.reload()  # the link holds the values
    case_is_open(page, "New case")


def test_a_refused_value_is_named_beside_its_field_and_stays_typed(opened):
    """The last accepted change stays, too."""
    page = ready(opened("case=1"))
    page.fill("#edit-1", "80000")
    page.press("#edit-1", "Tab")
    page.wait_for_selector("#what-if .outcome:has-text('The decision')")
    problem = {"status": 422, "detail": "income is 81, which is impossible."}
    page.route(
        "**/v1/what-if",
        lambda route: (
            route.fulfill(status=422, json=problem)
            if '"income":81}' in route.request.post_data
            else route.continue_()
        ),
    )
    page.fill("#edit-1", "81")
    page.press("#edit-1", "Tab")
    page.wait_for_selector("#what-if .refused")
    assert page.locator("#what-if .refused").inner_text() == problem["detail"]
    assert page.input_value("#edit-1") == "81"
    assert page.locator("#error").is_hidden()
    ready(page)
    assert json.loads(page.evaluate("new URLSearchParams(location.search).get('edits')")) == {"income": 80000}
    page.click("#reset")
    page.wait_for_selector("#what-if .outcome:has-text('Nothing has been changed')")


def test_what_would_change_it_is_found_applied_and_ruled_out(opened, explainer):
    page = ready(opened("case=1"))
    page.click("#changes-find")
    page.wait_for_selector("#changes li")
    found = explainer.changes(1, queries=20_000)
    assert page.locator("#changes li > bdi").all_inner_texts() == [
        line.strip() for line in str(found).split("\n") if line.startswith("  ")
    ]
    page.click("#apply-0")
    page.wait_for_selector("#what-if .outcome:has-text('The decision changes')")
    edits = json.loads(page.evaluate("new URLSearchParams(location.search).get('edits')"))
    assert edits == found[0].values
    page.click("#rule-out-0")
    page.wait_for_selector("#changes :text('Not changed')")
    page.wait_for_selector("#changes-find:not([disabled])")
    assert f"{found[0].moves[0].attribute} " not in page.locator("#changes ul").inner_text()
    page.click("#changes-allow")
    wait_until(page, "!document.querySelector('#changes').textContent.includes('Not changed')")


def test_a_rule_stands_beside_the_sum(opened, explainer):
    page = ready(opened("case=1"))
    rule = explainer.rule(1, holds=0.9)
    page.select_option("#rule-holds", "0.9")
    page.click("#rule-find")
    page.wait_for_selector("#rule .verdict")
    head, *rest = statements_of(rule)
    assert page.locator("#rule .verdict").inner_text()[2:] == f"{head.text}:"
    assert page.locator("#rule .rule-facts b").all_inner_texts() == [
        each.text for each in rest if each.kind == "fact"
    ]
    said = " ".join(page.locator("#rule .found > p:not([class])").all_inner_texts())
    assert said == " ".join(each.text for each in rest if each.kind != "fact")
    assert page.locator("#rule .meter").count() == 2
    for band, drawn in zip(bands_of(rule), page.locator("#rule .band").all(), strict=True):
        whole, frame = drawn.bounding_box(), drawn.locator(".bounds").bounding_box()
        assert drawn.get_attribute("aria-label") == band.summary
        assert frame["x"] - whole["x"] == pytest.approx(band.frame[0] * whole["width"], abs=3)
        assert frame["width"] == pytest.approx((band.frame[1] - band.frame[0]) * whole["width"], abs=6)
    answer, card = page.locator("#answer").bounding_box(), page.locator("#rule-card").bounding_box()
    assert card["y"] == answer["y"]
    assert card["x"] > answer["x"] + answer["width"]
    with page.expect_download() as data:
        page.click("#rule-data")
    assert Rule.from_json(data.value.path().read_text()) == rule
    with page.expect_download() as report:
        page.click("[data-format=html]")
    assert report.value.path().read_text() == explainer.explain(1).to_html(rule=rule)
    for scheme in ("light", "dark"):
        assert not serious_violations(page), scheme
        page.click("#theme")
    page.set_viewport_size({"width": 390, "height": 800})
    answer, card = page.locator("#answer").bounding_box(), page.locator("#rule-card").bounding_box()
    assert card["x"] == answer["x"]
    assert card["y"] > answer["y"] + answer["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.emulate_media(media="print")
    assert page.locator("#rule-card").is_visible()
    page.emulate_media(media="screen")
    page.locator("#listing .pick").nth(2).click()
    case_is_open(page, "Case 2")
    assert page.locator("#rule .verdict").count() == 0  # each case asks for its own
    page.emulate_media(media="print")
    assert page.locator("#rule-card").is_hidden()


def test_a_search_for_a_rule_ends_with_its_case(opened):
    """Stop, or another case, ends the request, so that the server stops searching."""
    ended = []
    with live(slow_explainer(SlowModel(0.2))) as slow:
        page = opened("case=1", studio=slow)
        ready(page)
        page.on("requestfailed", lambda request: ended.append(request.url))
        for stop in ("#rule-stop", "#listing .pick >> nth=2"):
            page.click("#rule-find")
            page.wait_for_selector("#rule-stop")
            page.click(stop)
            page.wait_for_selector("#rule-find")
        for _ in range(100):  # the browser reports ended requests a moment later
            if len(ended) < 2:
                page.wait_for_timeout(20)
        assert [url.rpartition("/page/")[2] for url in ended] == ["rule", "rule"]
        assert page.locator("#error").is_hidden()
        page.context.close()


def test_two_cases_side_by_side(opened):
    page = ready(opened("case=1"))
    page.fill("#other", "5")
    page.click("#compare-form button[type=submit]")
    page.wait_for_selector("#compare .side:nth-child(2) table")
    assert page.locator("#compare .side h3").all_inner_texts() == ["Case 1", "Case 5"]
    assert page.locator("#compare tr.total th").all_inner_texts() == ["P(declined)", "P(declined)"]
    assert page.locator("#compare tr.differs").count() > 2
    assert "compare=5" in page.url
    page.locator("#listing tr[data-position='7'] .compare-button").click()
    page.wait_for_selector("#compare h3:has-text('Case 7')")
    page.click("#compare-none")
    page.wait_for_selector("#compare p.note")
    page.fill("#other", "99999")
    page.click("#compare-form button[type=submit]")
    page.wait_for_selector("#error:not([hidden]):has-text('99999')")


def test_downloads(opened, explainer, tmp_path):
    page = ready(opened("case=3"))
    got = {}
    for kind in ("html", "json"):
        with page.expect_download() as waiting:
            page.click(f"[data-format={kind}]")
        assert waiting.value.suggested_filename == f"case-3.{kind}"
        waiting.value.save_as(tmp_path / kind)
        got[kind] = (tmp_path / kind).read_text(encoding="utf-8")
    assert got["json"] == explainer.explain(3).to_json()
    assert verify(got["json"], explainer.model, explainer.space).holds
    assert got["html"] == explainer.explain(3).to_html()


def test_a_permanent_link_shows_the_same_and_no_token(opened, server):
    page = ready(opened("case=3&k=3&sigma=2&compare=5&output=approved&edits=%7B%22debt%22%3A5%7D"))
    address = page.url
    assert "token" not in address
    other = page.context.new_page()
    other.goto(address)
    ready(other)
    for each in (page, other):
        each.wait_for_selector("#what-if .outcome:has-text('The decision')")
        each.wait_for_selector("#compare .side:nth-child(2) table")
    for part in ("#headline", "#verdict", "#waterfall", "#what-if", "#compare", "#evidence"):
        assert other.locator(part).inner_text() == page.locator(part).inner_text()
    assert page.locator("#waterfall tr.total th").inner_text() == "P(approved)"
    assert page.input_value("#output") == "approved"


def test_a_link_from_another_site_finds_the_cookie(opened, server):
    """The browser omits the cookie when it follows a link from another site; the landing page reloads once."""
    page = ready(opened("case=3"))
    link = f'<a href="{server.base}/?case=4">a case</a>'
    page.route("http://elsewhere.example/", lambda route: route.fulfill(body=link, content_type="text/html"))
    page.goto("http://elsewhere.example/")
    page.click("a")
    page.wait_for_selector("#kicker")
    case_is_open(page, "Case 4")


def test_a_wrong_token_is_named_and_a_right_one_opens(opened, server):
    page = opened("case=2&token=wrong", login=False)
    page.wait_for_selector("#message:has-text('not valid')")
    assert not serious_violations(page)
    assert "token" not in page.url
    page.fill("#token", "also wrong")
    page.click("button[type=submit]")
    page.wait_for_selector("#message:has-text('not valid')")
    page.fill("#token", server.token)
    page.press("#token", "Enter")
    page.wait_for_selector("#kicker")
    case_is_open(page, "Case 2")


def reach(page, name):
    """Press Tab until an element has the focus."""
    for _ in range(250):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == name:
            return
    pytest.fail(f"{name} cannot be reached by Tab")


def test_keys_alone(opened):
    page = ready(opened("case=0"))
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("approved")
    chips = "[...document.querySelectorAll('#listing .chip')]"
    wait_until(page, f"!{chips}.some((chip) => chip.textContent.startsWith('declined'))")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.textContent").removeprefix("#")
    page.keyboard.press("Enter")
    case_is_open(page, f"Case {chosen}")
    reach(page, "k")
    page.keyboard.press("ArrowLeft")
    wait_until(page, "document.querySelector('#k-text').textContent === 'at most 3'")
    page.wait_for_selector("#answer:not(.stale)")
    reach(page, "edit-1")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    reach(page, "other")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    page.wait_for_selector("#compare h3:has-text('Case 2')")


def serious_violations(page):
    """Return the id and the first element of every serious accessibility violation that Axe reports."""
    violations = Axe().run(page).response["violations"]
    serious = [violation for violation in violations if violation["impact"] in {"serious", "critical"}]
    return [(violation["id"], violation["nodes"][0]["html"]) for violation in serious]


def test_axe_finds_nothing_serious(opened):
    """In dark and light colors, on a screen and on a phone."""
    page = ready(opened("case=1&compare=5&edits=%7B%22debt%22%3A5%7D", scheme="dark"))
    page.wait_for_selector("#compare .side:nth-child(2) table")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
        for _ in range(2):
            assert not serious_violations(page)
            page.click("#theme")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_and_on_paper(opened):
    page = ready(opened("case=1", width=390))
    assert not page.locator("#listing").is_visible()
    page.click("#drawer summary")
    page.locator("#listing .pick").nth(2).click()
    case_is_open(page, "Case 2")
    assert not page.locator("#listing").is_visible()  # the list has closed again
    assert page.locator("#headline").bounding_box()["y"] < 300
    page.emulate_media(media="print")
    assert all(page.locator(name).is_hidden() for name in ("header.bar", ".cases", "#what-if", "#changes"))


def test_a_case_that_is_not_there_is_told(opened):
    page = opened("case=99999")
    page.wait_for_selector("#error:not([hidden])")
    assert "99999" in page.locator("#error").inner_text()
    page.locator("#listing .pick").first.click()
    ready(page)


def test_the_theme_can_be_chosen(opened):
    page = ready(opened("case=1", scheme="light"))

    def brightness():
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", color)[:3])) / 3

    assert brightness() > 200
    page.click("#theme")
    assert brightness() < 60
    page.reload()
    ready(page)
    assert brightness() < 60


def test_markup_in_data_stays_text(opened):
    with live(hostile_explainer()) as hostile:
        page = ready(opened("case=1&compare=2", studio=hostile))
        page.wait_for_selector("#compare .side:nth-child(2) table")
        page.fill("#search", "</script>")
        wait_until(page, "document.querySelector('#place').textContent.includes(' of ')")
        page.click("#changes-find")
        page.wait_for_selector("#changes details")
        page.click("#rule-find")
        page.wait_for_selector("#rule .verdict")
        assert page.locator("#main script, #main img, #listing script, #listing img").count() == 0
        assert "broken" not in page.title()
        assert HOSTILE[:20] in page.locator("#main").inner_text()
        page.click("#view")
        page.wait_for_selector("#overview h2:has-text('Which facts matter?')")
        assert page.locator("#overview script, #overview img").count() == 0
        page.context.close()


def test_names_of_columns_may_be_those_of_members_of_objects(opened):
    """Numbers with a unit, whose changes need a limit, behind a prefix."""
    values = np.random.default_rng(0).normal(size=(80, 3))
    frame = pd.DataFrame(values, columns=["constructor", "__proto__", "toString"])
    model = lambda rows: np.tanh(rows.iloc[:, 0] + rows.iloc[:, 1])  # noqa: E731
    explainer = Explainer(model, Table(frame), output="score [points]")
    with live(explainer, proxy=Proxy(root_path="/team")) as studio:
        page = opened("case=1", studio=studio)
        page.goto(f"{studio.base}/team/?case=2&token={studio.token}")
        ready(page)
        assert page.evaluate("location.pathname") == "/team/"
        assert page.locator("#what-if .field input").count() == 3
        page.fill("#edit-0", "3")
        page.press("#edit-0", "Tab")
        page.wait_for_selector("#what-if dl:has-text('points')")
        page.select_option("#changes-sign", "<=")
        page.fill("#changes-limit", "-0.5")
        page.click("#changes-find")
        page.wait_for_selector("#changes details")
        page.click("#rule-find")
        page.wait_for_selector("#rule .verdict:has-text('give or take')")
        assert page.locator("#class-choice").is_hidden()


def test_a_server_that_went_away_is_told(opened, explainer):
    with live(explainer) as stopped:
        page = ready(opened("case=1", studio=stopped))
    page.locator("#listing .pick").nth(3).click()
    page.wait_for_selector("#error:not([hidden])")
    assert "does not answer" in page.locator("#error").inner_text()
    page.context.close()


FIRST_SCREEN = """() => [...document.querySelectorAll("p, li, h1, h2, th, td, dt, dd, label, summary, button")]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().top < innerHeight)
  .map((each) => each.innerText)"""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_first_screen_of_a_case_has_short_sentences_for_everybody(opened, width):
    for case in (0, 1, 4):
        page = opened(f"case={case}", width)
        ready(page)
        for text in page.evaluate(FIRST_SCREEN):
            assert not re.search(r"explainer|Table\(|=\[|\bal\.|Type: |pip install|--[a-z]", text), text
            for sentence in re.split(r"(?<=[.:?!])\s|\n", text):
                assert len(sentence.split()) <= 25, sentence
