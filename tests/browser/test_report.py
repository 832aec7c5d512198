"""The report in a real browser: no messages, no requests, accessible in light and dark, on phones and on paper."""

import dataclasses
import functools
import itertools
import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import anchorline as al
from anchorline.render import html
from helpers.explanations import INSTANCE, smooth_explainer
from helpers.pages import ARGUMENTS, CHROMIUM

HOSTILE = '"><script>document.title="broken"</script><img src=//example.org/x onerror=alert(1)>\u202e\x1b[2J'
LONG = "a very long statement about an attribute " + "without_any_place_to_break_it_" * 4
A4 = (595, 842)  # points


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} does not exist. These tests need Chromium. Type: apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield launched
        launched.close()


def decision():
    made = smooth_explainer(threshold=0.0)
    settings = {"n_samples": 600, "n_certify": 600, "sampling": "draw"}
    e = made.explain(INSTANCE, k=5, alternatives=2, **settings)
    return html.page(e, frontier=made.frontier(INSTANCE, ks=[1, 2, 3, 5], **settings))


def number():
    return html.page(smooth_explainer().explain(INSTANCE, k=12, n_samples=600, n_certify=600, sampling="draw"))


def label():
    kinds = np.array(["red", "green", "blue"])
    e = al.explain(
        lambda z: kinds[(z[:, :2] > 0).sum(axis=1)], INSTANCE, output="color", task="label", k=3, n_samples=500
    )
    return html.page(e)


def hostile():
    e = smooth_explainer().explain(INSTANCE, k=4, n_samples=300, n_certify=0, sampling="draw")
    names = [HOSTILE, LONG, "年収 >= 65k", "\u05d0\u05d1\u05d2 < 3"] * 4
    literals = tuple(al.Literal(name, name) for name in names[: len(e.literals)])
    return html.page(dataclasses.replace(e, literals=literals, output=HOSTILE))


def notebook():
    e = smooth_explainer(threshold=0.0).explain(INSTANCE, k=4, n_samples=300)
    return (
        f'<!DOCTYPE html><html lang="en"><title>notebook</title><main>{html.fragment(e)}{html.fragment(e)}</main>'
    )


PAGES = {made.__name__: functools.cache(made) for made in (decision, number, label, hostile, notebook)}
all_pages = pytest.mark.parametrize("name", PAGES)


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens a page from a file and records its messages, dialogs and requests."""
    contexts = []

    def open_page(name, width=1000, scheme="light", unfold=False):
        path = tmp_path / f"{name}.html"
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
            for fold in page.locator("summary").all():
                fold.click()
        return page

    yield open_page
    for context in contexts:
        context.close()


@all_pages
def test_it_writes_no_message_and_requests_nothing(opened, name, tmp_path):
    page = opened(name, unfold=True)
    assert page.messages == []
    assert page.requested == [(tmp_path / f"{name}.html").as_uri()]
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
@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_wider_than_the_screen(opened, name, width):
    page = opened(name, width=width, unfold=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_is_dark_and_light_is_light(opened):
    def background(scheme):
        made = opened("decision", scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", made)[:3])) / 3

    assert background("light") > 200
    assert background("dark") < 60


def test_the_picture_fits_its_numbers(opened):
    """In the browser's layout, each bar begins where the previous one ends, down to the prediction."""
    page = opened("decision")
    assert page.locator(".al-bar").count() > 1
    boxes = [bar.bounding_box() for bar in page.locator(".al-bar").all()]
    signs = ["al-plus" in bar.get_attribute("class") for bar in page.locator(".al-bar").all()]
    ends = [
        (box["x"], box["x"] + box["width"]) if plus else (box["x"] + box["width"], box["x"])
        for box, plus in zip(boxes, signs, strict=True)
    ]
    for (_, end), (start, _) in itertools.pairwise(ends):
        assert abs(end - start) < 2
    dot = page.locator(".al-total .al-dot").bounding_box()
    assert abs(dot["x"] + dot["width"] / 2 - ends[-1][1]) < 2


def test_the_answer_is_visible_without_scrolling(opened):
    page = opened("decision")
    for selector in ("h1", ".lead", ".al-verdict", ".al-total"):
        box = page.locator(selector).bounding_box()
        assert box["y"] + box["height"] <= 900


@pytest.mark.parametrize("name", [name for name in PAGES if name != "notebook"])  # notebooks print themselves
def test_it_prints_on_a4(opened, name):
    pdf = opened(name).pdf(prefer_css_page_size=True)
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", pdf)
    assert 1 <= len(boxes) <= 5
    for width, height in boxes:
        assert (float(width), float(height)) == pytest.approx(A4, abs=1)


def test_on_paper_the_folds_are_open(opened):
    page = opened("decision")
    record = page.locator("details").last.locator("dl").last
    assert not record.is_visible()
    page.emulate_media(media="print")
    assert record.is_visible()
