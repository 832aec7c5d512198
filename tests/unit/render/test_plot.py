"""Plots: the content of the axes rather than pixels, on given and on new axes, with names that stay text."""

import dataclasses
import functools
import itertools
import subprocess
import sys
import types

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import anchorline as al
from anchorline.errors import MissingDependencyError, ParameterError, SampleError
from anchorline.guarantees import Estimate
from anchorline.render import plot
from anchorline.render.characters import printable
from anchorline.render.summands import summands
from helpers.explanations import INSTANCE, LONG_NAME, smooth_explainer, with_numbers

HOSTILE = [
    r"$\frac{1}{0}$",
    "a_b^c_",
    "\\",
    "$",
    "<script>",
    "[bold]",
    "\x1b[2J",
    "a\nb",
    "\u202egnp",
    "100 % {x}",
    "",
]
VACUOUS = Estimate(value=0.0, low=0.0, high=0.9, n_samples=5, confidence=0.95, method="binomial")


@functools.cache
def explainer():
    return smooth_explainer(threshold=0.0)


@functools.cache
def explanation(k=5, alternatives=0):
    return explainer().explain(
        INSTANCE, k=k, alternatives=alternatives, sampling="draw", n_samples=600, n_certify=600
    )


def explanation_of(contributions, intercept=0.0, texts=None, **changes):
    return with_numbers(explanation(), contributions, intercept, texts, **{"output": "score"} | changes)


def sample(n=300, output="score"):
    rng = np.random.default_rng(1)
    n_flips = rng.integers(0, 8, n)
    return plot.NeighborSample(
        n_flips=n_flips, outputs=0.9 - 0.1 * n_flips, sums=0.9 - 0.08 * n_flips, prediction=0.9, output=output
    )


def drawings():
    """Return every plot as a function of the axes."""
    e = explanation(alternatives=2)
    return {
        "waterfall": functools.partial(plot.waterfall, e),
        "bars": functools.partial(plot.bars, e),
        "alternatives": functools.partial(plot.alternatives, e),
        "frontier": functools.partial(plot.frontier, explainer().frontier(INSTANCE, ks=[1, 3, 5], n_samples=300)),
        "neighborhood": functools.partial(plot.neighborhood, sample()),
        "summary": functools.partial(plot.summary, [explanation(k) for k in (1, 3, 5)]),
    }


each = pytest.mark.parametrize(
    "name", ["waterfall", "bars", "alternatives", "frontier", "neighborhood", "summary"]
)


def row_names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def boxes(ax, texts):
    ax.figure.draw_without_rendering()
    renderer = ax.figure.canvas.get_renderer()
    return [text.get_window_extent(renderer) for text in texts if text.get_text() and text.get_visible()]


def check_no_overlap(ax):
    """Check that no name or number touches another one, and that no text leaves the figure."""
    names, inside = boxes(ax, ax.get_yticklabels()), boxes(ax, ax.texts)
    assert names
    assert inside
    for group in (names, inside):
        for i, one in enumerate(group):
            assert not any(one.overlaps(other) for other in group[i + 1 :])
    assert not any(name.overlaps(number) for name in names for number in inside)
    whole = ax.figure.bbox
    for box in [*names, *inside, *boxes(ax, [ax.title, ax._left_title, ax.xaxis.label])]:
        assert box.x0 >= whole.x0 - 1
        assert box.x1 <= whole.x1 + 1
        assert box.y0 >= whole.y0 - 1
        assert box.y1 <= whole.y1 + 1


# --- axes --------------------------------------------------------------------------------------------


@each
def test_given_axes_are_drawn_on_and_returned(name):
    figure = Figure()
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    assert drawings()[name](ax=ax) is ax
    figure.draw_without_rendering()
    assert figure.axes == [ax]


@each
def test_new_axes_leave_nothing_behind(name):
    before, modules = dict(mpl.rcParams), set(sys.modules)
    figures = sys.modules["matplotlib.pyplot"].get_fignums() if "matplotlib.pyplot" in modules else []
    ax = drawings()[name]()
    assert isinstance(ax, Axes)
    assert dict(mpl.rcParams) == before
    assert ax._repr_png_().startswith(b"\x89PNG")  # which a notebook displays
    ax.figure.draw_without_rendering()
    if "matplotlib.pyplot" in modules:
        import matplotlib.pyplot as plt

        assert plt.get_fignums() == figures


def test_pyplot_is_never_loaded():
    code = (
        "import sys, anchorline as al; from anchorline.render import plot\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plot.waterfall(al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2))\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["True", "False"]


@each
def test_without_matplotlib_the_error_names_the_extra(name, monkeypatch):
    draw = drawings()[name]
    for module in list(sys.modules):
        if module.startswith("anchorline.render.plots."):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr("anchorline.render.plots.sums", raising=False)
    for module in ("matplotlib", "matplotlib.axes", "matplotlib.ticker"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'anchorline\[plot\]'"):
        draw()


@each
def test_axes_are_labeled_and_titled(name):
    ax = drawings()[name]()
    assert ax.get_xlabel()
    assert ax.get_title(loc="left")
    assert row_names(ax) if name not in {"frontier", "neighborhood"} else ax.get_ylabel()


# --- one sum -----------------------------------------------------------------------------------------

MIXED = ([0.9, -0.3, 0.02, -0.005], -0.4)


def test_the_waterfall_goes_from_the_starting_level_to_the_prediction():
    e = explanation_of(*MIXED)
    ax = plot.waterfall(e)
    assert row_names(ax) == ["starting level", "l0", "l1", "l2", "l3", "score"]
    at = e.intercept
    for row, (bar, term) in enumerate(zip(ax.patches, e.terms, strict=True), start=1):
        assert bar.get_y() + bar.get_height() / 2 == pytest.approx(row)
        assert bar.get_x() == pytest.approx(at)
        assert bar.get_width() == pytest.approx(term.contribution)
        at += term.contribution
    assert at == pytest.approx(e.prediction)
    total = summands(e)
    numbers = [total.intercept.number, *(term.signed for term in total.terms), total.total.number]
    assert texts_of(ax)[: len(numbers)] == [number.replace("-", "\N{MINUS SIGN}") for number in numbers]
    assert ax.get_title(loc="left") == "score = 0.215"
    assert ax.get_xlabel() == "score"


def test_without_intercept_it_starts_at_zero():
    ax = plot.waterfall(explanation_of([0.5, 0.25]))
    assert row_names(ax) == ["l0", "l1", "score"]
    assert ax.patches[0].get_x() == 0
    assert ax.get_xlim()[0] <= 0


def test_bars_have_a_common_zero_and_the_starting_level_last():
    e = explanation_of(*MIXED)
    ax = plot.bars(e)
    assert row_names(ax) == ["l0", "l1", "l2", "l3", "starting level"]
    assert [bar.get_x() for bar in ax.patches] == [0] * 5
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.9, -0.3, 0.02, -0.005, -0.4])
    assert ax.get_xlabel() == "contribution to score"


@pytest.mark.parametrize("draw", [plot.waterfall, plot.bars])
def test_signs_are_visible_without_color(draw):
    ax = draw(explanation_of([0.5, -0.25]))
    assert [bool(bar.get_hatch()) for bar in ax.patches] == [False, True]
    gray = [np.dot(bar.get_facecolor()[:3], [0.2126, 0.7152, 0.0722]) for bar in ax.patches]
    assert abs(gray[0] - gray[1]) > 0.3


@pytest.mark.parametrize("draw", [plot.waterfall, plot.bars])
@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("text", ["x{}", LONG_NAME + " {}", "unbroken_" * 9 + "{}"])
def test_nothing_overlaps(draw, k, text):
    rng = np.random.default_rng([5, k])
    check_no_overlap(draw(explanation_of(rng.normal(size=k), 0.3, [text.format(j) for j in range(k)])))


@pytest.mark.parametrize("intercept", [161.0, -1e6, 1e-6])
def test_nothing_overlaps_far_from_zero(intercept):
    check_no_overlap(plot.waterfall(explanation_of([21.0, -7.0, 6.0], intercept, half_range=1e6)))


def test_nothing_overlaps_on_small_given_axes():
    figure = Figure(figsize=(4, 3), layout="constrained")
    FigureCanvasAgg(figure)
    ax = plot.waterfall(explanation_of(np.linspace(0.1, 1, 12)), ax=figure.add_subplot())
    names = boxes(ax, ax.get_yticklabels())
    assert not any(one.overlaps(two) for one, two in itertools.pairwise(names))


PRICES = [228606.0, -187547.0, 50476.0]
ROWS = ["distance to the center in km", "age of the building in years", "rooms"]
OUTPUT = "the output which also has an extremely long name, eighty characters or even more, who knows"


def prices(output="price"):
    literals = tuple(al.Literal(name, f"{name} < {j}0.45") for j, name in enumerate(ROWS, 1))
    return explanation_of(PRICES, 2514062.0, literals=literals, output=output, half_range=1e6)


@pytest.mark.parametrize("draw", [plot.waterfall, plot.bars])
@pytest.mark.parametrize(
    ("output", "size"), [("price", None), ("price", (3, 3)), ("price", (4, 3)), (OUTPUT, None), (OUTPUT, (6, 4))]
)
def test_large_numbers_and_long_names_stay_apart_on_any_axes(draw, output, size):
    ax = None
    if size is not None:
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.add_subplot()
    ax = draw(prices(output), ax)
    check_no_overlap(ax)
    assert ax.get_title(loc="left").endswith("= 2605597")  # the name is shortened, never the number


def test_two_panels_keep_to_themselves():
    figure = Figure(figsize=(12, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    plot.waterfall(prices(OUTPUT), left)
    plot.bars(prices(OUTPUT), right)
    check_no_overlap(left)
    check_no_overlap(right)
    (title,) = boxes(left, [left._left_title])
    assert not any(title.overlaps(name) for name in boxes(right, right.get_yticklabels()))


@pytest.mark.parametrize("draw", [plot.waterfall, plot.bars, plot.alternatives])
def test_a_long_name_never_costs_the_condition(draw):
    literals = (
        al.Literal(LONG_NAME, f"-0.0823 <= {LONG_NAME} < 0.665"),
        al.Literal(LONG_NAME + "!", f"{LONG_NAME}! >= 12345"),
    )
    names = row_names(draw(explanation_of([0.5, -0.25], literals=literals)))
    assert any(
        name.startswith("-0.0823 <=") and name.endswith("\N{HORIZONTAL ELLIPSIS} < 0.665") for name in names
    )
    assert any(name.endswith("\N{HORIZONTAL ELLIPSIS} >= 12345") for name in names)


@pytest.mark.parametrize(
    ("draw", "names"),
    [(plot.waterfall, ["score"]), (plot.bars, ["(no terms)"]), (plot.alternatives, [])],
)
def test_an_empty_sum_is_drawn(draw, names):
    ax = draw(explanation_of([0.0, 0.0]))
    ax.figure.draw_without_rendering()
    assert row_names(ax) == names
    assert len(ax.patches) == 0
    assert ax.get_title(loc="left").endswith("score = 0")


def test_a_probability_and_a_label_are_named_as_such():
    parameters = dict(explanation().parameters)
    ax = plot.waterfall(explanation_of([0.5], output="benign", parameters=parameters | {"probability": True}))
    assert ax.get_xlabel() == row_names(ax)[-1] == "P(benign)"
    ax = plot.bars(
        explanation_of([1.0], output="species", label="setosa", parameters=parameters | {"task": "label"})
    )
    assert ax.get_title(loc="left").startswith("[species = setosa]")
    assert ax.get_xlabel() == "contribution to species (+1: setosa, \N{MINUS SIGN}1: any other)"


# --- names stay text ---------------------------------------------------------------------------------


def check_plain_text(ax, text):
    """Check that ``text`` is drawn, and that matplotlib interprets none of the texts that contain it."""
    ax.figure.draw_without_rendering()  # mathtext would raise here
    texts = [*ax.get_yticklabels(), *ax.texts, ax._left_title, ax.xaxis.label, ax.yaxis.label]
    from_data = [one for one in texts if printable(text) in one.get_text()]
    assert from_data
    if text:
        assert not any(one.get_parse_math() or one.get_usetex() for one in from_data)
    assert all(line.isprintable() for one in texts for line in one.get_text().split("\n"))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("draw", [plot.waterfall, plot.bars, plot.alternatives, lambda e: plot.summary([e])])
def test_names_are_never_formulas(draw, text):
    ax = draw(explanation_of([0.5, -0.25], 0.1, texts=[text, "b"], output=text))
    check_plain_text(ax, text)
    assert printable(text) in row_names(ax)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_neighborhoods_output_is_never_a_formula(text):
    ax = plot.neighborhood(sample(output=text))
    check_plain_text(ax, text)
    assert printable(text) in ax.get_ylabel()
    assert texts_of(ax)[0].startswith(f"{printable(text)} = 0.9")


# --- curves ------------------------------------------------------------------------------------------


def test_the_frontier_has_a_line_and_a_band_per_error():
    frontier = explainer().frontier(INSTANCE, ks=[1, 2, 4], n_samples=500, sampling="draw", n_certify=800)
    ax = plot.frontier(frontier)
    assert list(ax.get_xticks()) == [1, 2, 4]
    labeled = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    fidelity = next(line for label, line in labeled.items() if label.startswith("fidelity"))
    assert list(fidelity.get_ydata()) == [point.fidelity_error.value for point in frontier.points]
    assert len(labeled) == 2
    assert len({(line.get_marker(), line.get_linestyle()) for line in labeled.values()}) == 2
    band = ax.collections[0].get_paths()[0].get_extents()
    assert band.y1 == pytest.approx(max(point.fidelity_error.high for point in frontier.points))
    assert "95% confidence" in texts_of(ax)[0]
    assert "clipped" not in texts_of(ax)[0]
    assert "outputs were clipped" in texts_of(plot.frontier(dataclasses.replace(frontier, n_clipped=1)))[0]


def test_very_wide_bands_do_not_flatten_the_curves():
    frontier = explainer().frontier(INSTANCE, ks=[1, 2, 4], n_samples=500, sampling="draw", n_certify=800)
    highest = max(point.fidelity_error.value for point in frontier.points)
    wide = [dataclasses.replace(point, relevance_error=VACUOUS) for point in frontier.points]
    ax = plot.frontier(dataclasses.replace(frontier, points=tuple(wide)))
    assert highest < ax.get_ylim()[1] < 4 * highest < 0.9
    assert "some extend beyond the axis" in texts_of(ax)[0].replace("\n", " ")
    assert "beyond" not in texts_of(plot.frontier(frontier))[0]


def test_a_frontier_that_was_not_certified():
    ax = plot.frontier(explainer().frontier(INSTANCE, ks=[1, 2], n_samples=300, sampling="draw", n_certify=0))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fidelity error on the sample"]


def test_points_without_proof_are_hollow():
    frontier = explainer().frontier(INSTANCE, ks=[2, 3], n_samples=300, solver="iht", sampling="draw")
    ax = plot.frontier(frontier)
    assert "not proved" in texts_of(ax)[0]
    assert any(tuple(line.get_xdata()) == (2, 3) and line.get_linestyle() == "None" for line in ax.lines)


def test_the_neighborhood_shows_model_and_sum():
    ax = plot.neighborhood(sample())
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["mean of the model"].get_ydata() == pytest.approx(0.1 * np.arange(8))
    assert lines["mean of the sum"].get_ydata() == pytest.approx(0.08 * np.arange(8))
    assert len(ax.collections[0].get_offsets()) == 300
    assert "flips" in ax.get_xlabel()


def test_many_neighbors_are_thinned_out_and_the_subtitle_states_it():
    ax = plot.neighborhood(sample(5000))
    assert len(ax.collections[0].get_offsets()) == 2000
    assert "2,000 of them shown" in texts_of(ax)[0].replace("\n", " ")


def test_a_sample_that_does_not_fit_together_is_refused():
    with pytest.raises(SampleError, match="same length"):
        plot.NeighborSample(n_flips=[1], outputs=[0.1, 0.2], sums=[0.1], prediction=0.5, output="y")


# --- several sums ------------------------------------------------------------------------------------


def test_alternatives_show_which_literal_is_in_which_sum():
    e = explanation(k=4, alternatives=3)
    assert e.alternatives
    ax = plot.alternatives(e)
    supports = [set(e.support.tolist()), *(set(other.support) for other in e.alternatives)]
    names = [e.literals[j].text for j in sorted(set.union(*supports))]
    assert sorted(set(row_names(ax)) - {"starting level"}) == sorted(names)
    rows = row_names(ax)
    for column, support in enumerate(supports):
        drawn = {
            rows[round(bar.get_y() + bar.get_height() / 2)] for bar in ax.patches if round(bar.get_x()) == column
        }
        assert drawn - {"starting level"} == {e.literals[j].text for j in support}
    assert len(ax.get_xticklabels()) == len(supports)
    check_no_overlap(ax)


def test_the_summary_counts_signs_and_typical_sizes():
    some = [explanation_of([0.4, 0.0, -0.2], texts=["a", "b", "c"])] * 2
    some += [explanation_of([-0.1, 0.0, 0.0], texts=["a", "b", "c"])]
    ax = plot.summary(some)
    assert row_names(ax) == ["a", "c"]
    assert {text for text in texts_of(ax) if " of " in text and len(text) < 9} == {"3 of 3", "2 of 3"}
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.4, -0.1, -0.2])
    check_no_overlap(ax)


def test_the_summary_stops_at_the_fifteen_most_frequent():
    rng = np.random.default_rng(3)
    some = [explanation_of(rng.normal(size=30) * (rng.random(30) < 0.5), 0.1) for _ in range(20)]
    ax = plot.summary(iter(some))
    assert len(row_names(ax)) == 15
    assert "15 rarer ones are not shown" in texts_of(ax)[-1].replace("\n", " ")
    check_no_overlap(ax)
    ax = plot.summary([explanation_of(np.arange(1.0, 17.0) / 100, 0.1)])
    assert "1 rarer one is not shown" in texts_of(ax)[-1].replace("\n", " ")


def test_a_summary_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="at least one"):
        plot.summary([])


def test_other_import_errors_are_not_hidden(monkeypatch):
    broken = types.ModuleType("broken")
    monkeypatch.setitem(sys.modules, "anchorline.render.plots.sums", broken)
    with pytest.raises(ImportError) as caught:
        plot.waterfall(explanation())
    assert not isinstance(caught.value, MissingDependencyError)
