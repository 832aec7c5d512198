"""The report in a real browser: no messages, no requests, accessible in light and dark, on phones and on paper."""

import functools
import itertools
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from anchorline.render.report import fragment, page
from helpers.made import made_explanation, made_rule
from helpers.made_cases import CASES, frontier
from helpers.made_rules import RULES

A4 = (595, 842)  # points


def notebook():
    views = "".join(fragment(CASES[name]()) for name in ("loan", "hostile", "text", "image", "image", "signal"))
    views += "".join(fragment(RULES[name]()) for name in ("four", "hostile", "short"))
    return f'<!DOCTYPE html><html lang="en"><title>notebook</title><main><h1>Notebook</h1>{views}</main>'


PAGES = {
    **{name: functools.partial(lambda name: page(CASES[name]()), name) for name in CASES if name != "loan"},
    "loan": lambda: page(made_explanation(), frontier()),
    "sum and rule": lambda: page(made_explanation(), rule=made_rule()),
    **{f"rule: {name}": functools.partial(lambda name: page(RULES[name]()), name) for name in RULES},
    "notebook": notebook,
}
all_pages = pytest.mark.parametrize(
    "name",
    [
        *("loan", "price", "hostile", "robust", "text", "image", "signal", "notebook", "sum and rule"),
        *("rule: four", "rule: hostile", "rule: short", "rule: text", "rule: image"),
    ],
)


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens a page from a file and records its messages, dialogs and requests."""
    contexts = []

    def open_page(name, width=1000, scheme="light", unfold=False):
        path = tmp_path / f"{name.replace(': ', '-')}.html"
        path.write_text(PAGES[name](), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.messages, page.requested = [], []
        page.on("console", lambda message: page.messages.append(message.text))
        page.on("pageerror", lambda error: page.messages.append(str(error)))
        page.on("dialog", lambda dialog: page.messages.append(dialog.message))
        page.on("request", lambda request: page.requested.append(request.url))
        page.goto(path.as_uri())
        if unfold:
            page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        return page

    yield open_page
    for context in contexts:
        context.close()


@all_pages
def test_it_writes_no_message_and_requests_nothing(opened, name):
    """The policy allows the style sheet: Chromium would report a refused one."""
    page = opened(name, unfold=True)
    assert page.messages == []
    outside = [url for url in page.requested if not url.startswith("data:image/png;base64,")]
    assert outside == [page.url]
    assert page.title() != "broken"


@all_pages
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, name, scheme):
    page = opened(name, scheme=scheme, unfold=True)
    violations = Axe().run(page).response["violations"]
    assert not [
        (one["id"], one["nodes"][0]["html"]) for one in violations if one["impact"] in {"serious", "critical"}
    ]


@all_pages
@pytest.mark.parametrize("width", [320, 768])
def test_nothing_is_wider_than_the_screen(opened, name, width):
    page = opened(name, width=width, unfold=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_is_dark_and_light_is_light(opened):
    def background(scheme):
        made = opened("loan", scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", made)[:3])) / 3

    assert background("light") > 200
    assert background("dark") < 60


def test_the_picture_fits_its_numbers(opened):
    """In the browser's layout, each bar begins where the previous one ends, down to the prediction."""
    bars = opened("loan").locator(".al-track rect").all()
    ends = []
    for bar in bars:
        box = bar.bounding_box()
        left, right = box["x"], box["x"] + box["width"]
        ends.append((left, right) if bar.get_attribute("class") == "al-plus" else (right, left))
    assert len(ends) == 4
    for (_, end), (start, _) in itertools.pairwise(ends):
        assert abs(end - start) < 3


@pytest.mark.parametrize("width", [340, 1000])
def test_labels_of_a_strip_stay_inside_the_page_and_apart(opened, width):
    for strip in opened("rule: four", width=width).locator(".al-strip").all():
        boxes = [label.bounding_box() for label in strip.locator("text").all()]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
        for one, other in itertools.combinations(boxes, 2):
            is_apart = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert is_apart or abs(one["y"] - other["y"]) > 10


def test_sum_and_rule_are_side_by_side_or_below_each_other(opened):
    def places(width):
        boxes = [
            box.bounding_box() for box in opened("sum and rule", width=width).locator(".pair > section").all()
        ]
        return [(box["x"], box["y"]) for box in boxes]

    (x0, y0), (x1, y1) = places(1200)
    assert (x1 > x0, y1) == (True, y0)
    (x0, y0), (x1, y1) = places(340)
    assert (x1, y1 > y0) == (x0, True)


def test_the_answer_is_visible_without_scrolling(opened):
    page = opened("loan")
    for selector in ("h1", ".al-verdict", ".al-total", ".al-holds"):
        box = page.locator(selector).bounding_box()
        assert box["y"] + box["height"] <= 900


def test_a_name_from_right_to_left_stays_in_its_place(opened):
    """The bound of a Hebrew name is to its right, as in every other row."""
    page = opened("hostile")
    row = page.locator("tr.al-fact", has_text="(here 17)").locator("th")
    name = row.locator("bdi").bounding_box()
    assert name["x"] - row.bounding_box()["x"] < 5


@pytest.mark.parametrize("name", ["loan", "hostile", "image", "sum and rule", "rule: four"])
def test_it_prints_on_a4(opened, name):
    pdf = opened(name).pdf(prefer_css_page_size=True)
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", pdf)
    assert 1 <= len(boxes) <= 4
    for width, height in boxes:
        assert (float(width), float(height)) == pytest.approx(A4, abs=1)


def test_on_paper_the_folds_are_open(opened):
    page = opened("loan")
    record = page.locator("details").last.locator("table")
    assert not record.is_visible()
    page.emulate_media(media="print")
    assert record.is_visible()
