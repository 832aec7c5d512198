"""Texts and images in the studio's page, in a real browser: marked, changed, and never run as markup."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from anchorline.explainer import Explainer
from anchorline.spaces.regions import Image
from anchorline.spaces.text import Text
from anchorline.studio.contents import Contents
from helpers.pages import ready, wait_until
from helpers.studio import HOSTILE, live

TEXTS = [
    "Great food, great view, but slow.",
    f"Great {HOSTILE}\n\u05d0\u05d1 slow",
    "x " + "word " * 6000 + "great",
]


def score(texts):
    good = np.array([0.5 + 0.3 * ("great" in text.lower()) - 0.2 * ("slow" in text) for text in texts])
    return np.column_stack([1 - good, good])


def light(images):
    top, bottom = (part.mean(axis=(1, 2, 3)) / 255 for part in (images[:, :20], images[:, 20:]))
    share = 0.35 + 0.5 * top - 0.3 * bottom
    return np.column_stack([1 - share, share])


@pytest.fixture(scope="module")
def texts():
    with live(Explainer(score, Contents(Text(), TEXTS), classes=["bad", "good"])) as running:
        yield running


@pytest.fixture(scope="module")
def images():
    pixels = np.random.default_rng(0).integers(0, 255, (40, 30, 3)).astype(np.uint8)
    pixels[:10] = 250
    space = Contents(Image("grid", hidden=0, n_segments=12), [pixels], [f"{HOSTILE}.png"])
    with live(Explainer(light, space, classes=["dark", "light"])) as running:
        yield running


def violations(page):
    found = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in {"serious", "critical"}]


def test_rules_of_words_and_regions(opened, texts, images):
    for studio, noun in ((texts, "words"), (images, "regions")):
        page = ready(opened("case=0", studio=studio, width=390))
        assert page.locator("#rule-hint").inner_text().startswith(f"The fewest {noun} with which")
        page.click("#rule-find")
        page.wait_for_selector("#rule .verdict")
        assert page.locator("#rule .band").count() == page.locator("#rule .rule-facts b").count() >= 1
        assert page.locator("#rule script, #rule img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert not violations(page)


def test_words_are_marked_taken_out_and_typed(opened, texts):
    page = ready(opened("case=0&k=4", studio=texts))
    assert page.locator("#content mark.minus bdi").all_inner_texts() == ["slow"]
    assert {*page.locator("#content mark bdi").all_inner_texts()} >= {"slow"}
    assert page.locator("#content .content-text").inner_text().startswith("Great")
    assert page.locator("#k-name").inner_text() == "How many words"
    assert not page.locator("#values-card").is_visible()
    page.click("#changes-find")
    page.click("#apply-0")
    wait_until(page, "document.querySelector('#what-if .outcome').textContent.startsWith('The decision changes')")
    page.click("#reset")
    page.wait_for_selector("#what-if .outcome:has-text('Nothing has been changed')")
    page.locator("#what-if li", has_text="slow").locator("input").click()
    page.wait_for_selector("#explain-changed:not([disabled])")
    page.click("#explain-changed")
    wait_until(page, "document.querySelector('#kicker').textContent.startsWith('New case')")
    ready(page)
    assert "slow" not in page.locator("#content .content-text").inner_text()
    page.fill("#edit-0", "slow, slow")
    page.press("#edit-0", "Tab")
    page.wait_for_selector("#what-if .outcome:has-text('The decision changes')")
    page.click("#explain-changed")
    wait_until(page, "document.querySelector('#content mark')?.textContent.startsWith('slow')")


def test_hostile_and_long_texts_stay_text(opened, texts):
    page = ready(opened("case=1", studio=texts))
    assert "<script>document.title" in page.locator("#content .content-text").inner_text()
    assert page.locator("#content script, #content img, #listing img").count() == 0
    assert "broken" not in page.title()
    page = ready(opened("case=2&k=2", studio=texts))
    shown = page.locator("#content .content-text").inner_text()
    assert "great" in shown
    assert len(shown) < 2000


def test_regions_are_drawn_hidden_and_followed_by_the_slider(opened, images):
    page = ready(opened("case=0&k=4", studio=images))
    n_facts = page.locator("#waterfall tr.fact").count()
    assert page.locator("#content svg g").count() == n_facts == page.locator("#content svg text").count()
    size = page.evaluate(
        "(() => { const c = document.querySelector('#content canvas'); return [c.width, c.height]; })()"
    )
    assert size == [30, 40]
    alone = """(() => { const c = document.querySelectorAll('#content canvas')[1];
      const shown = c.getContext('2d').getImageData(0, 0, 30, 40).data.filter((_, i) => i % 4 === 3);
      return shown.filter((alpha) => alpha > 0).length / shown.length; })()"""
    assert 0.2 < page.evaluate(alone) < 0.5  # 4 of 12 regions
    page.locator("#k").press("ArrowLeft")
    wait_until(page, f"document.querySelectorAll('#content svg g').length < {n_facts}")
    ready(page)
    page.locator("#fact-0").click()
    wait_until(page, "document.querySelector('#what-if .outcome').textContent.startsWith('The decision')")
    assert page.locator("#explain-changed").count() == 0


def test_axe_finds_nothing_serious(opened, texts, images):
    """In light colors on a screen, and in dark ones on a phone."""
    for studio in (texts, images):
        page = ready(opened("case=0", scheme="light", studio=studio))
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
            assert not violations(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.click("#theme")
