"""Pictures of regions: outlines, patterns, numbers, and nothing loaded from elsewhere."""

import functools
import re

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import FormatError, ParameterError
from anchorline.render import html, plot
from anchorline.render.regions import area_path, image_markup, is_image, outline, picture_of


@functools.cache
def explained():
    image = np.full((20, 30, 3), 120, dtype=np.uint8)
    labels = np.arange(6).reshape(2, 3).repeat(10, axis=0).repeat(10, axis=1)
    score = lambda images: (images[:, 0, 0, 0] - images[:, 19, 29, 0].astype(float) / 2) / 255 + 0.4  # noqa: E731
    return al.Explainer(score, al.Image(labels, hidden=0), output="score", output_range=(0, 1)).explain(image, k=3)


def test_the_picture_has_the_regions_of_the_sum():
    picture = picture_of(explained())
    assert [region.number for region in picture.regions] == ["0", "5"]
    assert picture.regions[0].mask[:10, :10].all()
    assert picture.regions[0].mask.sum() == picture.regions[1].mask.sum() == 100
    assert picture.rest.sum() == 400
    assert all(region.mask[region.middle] for region in picture.regions)
    assert not is_image(al.explain(lambda z: z[:, 0] / 2, [1, 1], k=2))
    assert image_markup(al.explain(lambda z: z[:, 0] / 2, [1, 1], k=2)) == ""


def test_outlines_are_the_edges_between_pixels():
    mask = np.random.default_rng(0).random((9, 11)) < 0.5
    length = sum(abs(x1 - x0) + abs(y1 - y0) for x0, y0, x1, y1 in outline(mask))
    padded = np.pad(mask, 1)
    expected = (padded[1:] != padded[:-1]).sum() + (padded[:, 1:] != padded[:, :-1]).sum()
    assert length == expected
    covered = np.zeros_like(mask)
    for x, y, n in re.findall(r"M(\d+) (\d+)h(\d+)v1", area_path(mask)):
        covered[int(y), int(x) : int(x) + int(n)] = True
    assert (covered == mask).all()


def test_signs_have_patterns_and_numbers():
    markup = image_markup(explained())
    assert markup.count('<g class="al-region al-plus">') == 1
    assert markup.count('<g class="al-region al-minus">') == 1
    assert markup.count("fill:url(#al-hatch-30)") == 1
    assert re.findall(r"<text[^>]*>(\d+)</text>", markup) == ["0", "5"]
    assert "region 0 (top left) is visible: +" in markup
    for page in (html.page(explained()), html.fragment(explained())):
        assert page.count("<svg ") == 2
        assert not re.search(r'(?:src|href)="(?!data:image/png;base64,)', page)
        assert "<script" not in page
    assert "img-src data:" in html.page(explained())


def test_plots():
    ax = plot.regions(explained())
    assert [text.get_text() for text in ax.texts if text.get_text().isdigit()] == ["0", "5"]
    assert ax.get_title(loc="left").startswith("score = ")
    assert explained().plot().get_title(loc="left") == ax.get_title(loc="left")
    assert explained().plot("waterfall").get_yticklabels()
    with pytest.raises(ParameterError, match="not one of an image"):
        plot.regions(al.explain(lambda z: z[:, 0] / 2, [1, 1], k=2))


def test_the_meaning_of_a_neighbor_is_stated():
    assert "this image with each of its 6 regions hidden with probability" in explained().explain_itself()


def test_a_picture_with_foreign_regions_is_refused():
    import dataclasses

    e = explained()
    changed = dataclasses.replace(e, instance=(*e.instance[:4], (9, 600)))
    with pytest.raises(FormatError, match="not among its facts"):
        picture_of(changed)
