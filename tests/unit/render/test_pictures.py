"""Pictures show the figures, in places that fit them, and say only what the statements say."""

import itertools
import sys
import unicodedata

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.render.pictures import plot_explanation, plot_frontier
from anchorline.render.report import page
from anchorline.render.statements import digits_of, statements_of
from anchorline.spaces.regions import Image, Signal
from helpers import made_cases
from helpers.made import made_explanation
from helpers.made_cases import CASES

MARK = "\N{LEFT-TO-RIGHT MARK}"
# The fonts of the machine may lack Chinese characters.
pytestmark = pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
HAS_REGIONS = {"image", "signal"}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def drawn(ax):
    """Draw, and return all texts of a picture on one line."""
    ax.figure.canvas.draw()
    texts = [text.get_text() for text in ax.texts] + [ax.get_title(loc="left")]
    return " ".join(" ".join(texts).replace(MARK, "").replace("\N{MINUS SIGN}", "-").split())


@pytest.mark.parametrize("kind", ["waterfall", "bars"])
@pytest.mark.parametrize("name", CASES)
def test_bars_are_the_contributions(name, kind):
    e = CASES[name]()
    ax = plot_explanation(e, kind)
    said = drawn(ax)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(e.contributions.tolist())
    if kind == "waterfall":
        starts = e.base + np.concatenate([[0.0], np.cumsum(e.contributions)[:-1]])
        assert [bar.get_x() for bar in ax.patches] == pytest.approx(starts[: len(e.facts)].tolist())
        assert len(ax.get_yticklabels()) == (len(e.facts) + 2 if e.facts else 1)
    for printed in digits_of(e).contributions:
        assert printed in said
    if name != "hostile":  # whose title is shortened
        assert statements_of(e)[0].text in said


@pytest.mark.parametrize("name", CASES)
def test_the_default_is_what_the_instance_is(name):
    ax = plot_explanation(CASES[name]())
    drawn(ax)
    assert (len(ax.images) > 0) == (name == "image")
    assert (len(ax.get_yticklabels()) > 0) or name == "image"
    if name not in HAS_REGIONS:
        with pytest.raises(ParameterError, match="waterfall"):
            plot_explanation(CASES[name](), "regions")


def test_regions_are_numbered_and_their_amounts_are_said():
    said = drawn(plot_explanation(CASES["image"]()))
    assert "+0.21 region 8 (left), -0.15 region 4 (top)" in said
    assert said.startswith("8 4 15 21 ")


def test_stretches_of_a_signal_are_shaded():
    ax = plot_explanation(CASES["signal"]())
    assert [round(span.get_x() + 0.5) for span in ax.patches] == [105, 45, 210]
    assert "+0.21" in drawn(ax)


@pytest.mark.parametrize("kind", ["waterfall", "bars"])
def test_words_stay_inside_a_figure_of_their_own(kind):
    ax = plot_explanation(CASES["hostile"](), kind)
    drawn(ax)
    box = ax.figure.get_tightbbox()
    width, height = ax.figure.get_size_inches()
    assert box.x0 >= -0.05
    assert box.x1 <= width + 0.05
    assert box.y1 <= height + 0.05


def test_names_of_rows_do_not_touch():
    ax = plot_explanation(CASES["hostile"](), "waterfall")
    drawn(ax)
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(above.y0 >= below.y1 - 1 for above, below in itertools.pairwise(boxes))


def test_it_draws_on_given_axes_only():
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    before = plt.get_fignums()
    assert plot_explanation(made_explanation(), "bars", axes[0]) is axes[0]
    assert plot_frontier(made_cases.frontier(), axes[1]) is axes[1]
    figure.canvas.draw()
    assert plt.get_fignums() == before


def test_a_name_cannot_give_commands():
    said = drawn(plot_explanation(CASES["hostile"](), "bars"))
    ax = plot_explanation(CASES["hostile"](), "bars")
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert any("$x_1$" in name for name in names)
    assert not [c for c in said + "".join(names).replace("\n", "") if unicodedata.category(c) in ("Cc", "Cs")]


def test_a_name_from_right_to_left_keeps_its_place():
    labels = [label.get_text() for label in plot_explanation(CASES["hostile"](), "bars").get_yticklabels()]
    assert f"{MARK}{made_cases.HEBREW}{MARK} < 21 (here 17)" in labels


def test_a_frontier_starts_without_facts():
    ax = made_cases.frontier().plot()
    drawn(ax)
    assert ax.lines[0].get_xydata().tolist() == pytest.approx(np.array([[0, 0], [1, 0.4], [2, 0.62], [4, 0.78]]))
    assert "not proven best" in drawn(ax)


@pytest.mark.parametrize(
    "signal",
    [np.zeros(40), [3.0], np.arange(9000.0).reshape(-1, 3), 1e9 + np.arange(30) * 1e-7, [1e300, -1e300] * 10],
    ids=["constant", "one point", "channels", "offset", "huge"],
)
def test_odd_signals_are_drawn(signal):
    e = made_cases.of_regions(Signal(10).at(signal), (0,), [-0.2], "signal", "stretches")
    assert "-0.20" in drawn(plot_explanation(e))
    assert "nan" not in page(e)


@pytest.mark.parametrize(
    "image",
    [np.zeros((1, 1), np.uint8), np.zeros((1, 50)), np.ones((50, 1, 3)), np.eye(16, dtype=bool)],
    ids=["one pixel", "one row", "one column", "two colors"],
)
def test_odd_images_are_drawn(image):
    e = made_cases.of_regions(Image("grid", n_segments=4).at(image), (0,), [-0.2], "image", "regions")
    assert "-0.20 region 1" in drawn(plot_explanation(e))
    assert page(e).count('class="al-edge"') == 1


def test_an_unknown_kind_is_named():
    with pytest.raises(ParameterError, match="'pie'"):
        plot_explanation(made_explanation(), "pie")


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"anchorline\[plot\]"):
        plot_explanation(made_explanation())
