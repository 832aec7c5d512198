"""Explanations that SHAP's own plots draw."""

import math
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from anchorline.compat import to_shap
from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.explainer import Explainer
from anchorline.result.explanations import Explanations, Failure
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.regions import Image
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text

# When SHAP is imported, it calls functions that newer versions of matplotlib deprecate.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", r"The set_(bad|over|under) function", PendingDeprecationWarning)
    import shap


@pytest.fixture
def figure():
    from matplotlib import pyplot as plt

    yield plt.figure()
    plt.close("all")


def tick_texts(figure):
    return {label.get_text().strip() for ax in figure.axes for label in ax.get_yticklabels()}


@pytest.fixture(scope="module")
def explained(cancer):
    data, model = cancer
    table = Table(data.data, names=data.feature_names)
    explainer = Explainer(model, table, classes=data.target_names, output="benign")
    return [explainer.explain(i, k=5, queries=400) for i in range(0, 60, 5)]


def test_one_explanation_as_shaps(explained, cancer):
    converted = explained[0].to_shap()
    assert isinstance(converted, shap.Explanation)
    by_column = dict.fromkeys(cancer[0].feature_names.tolist(), 0.0)
    for fact, contribution in zip(explained[0].facts, explained[0].contributions.tolist(), strict=True):
        by_column[fact.column] += contribution
    assert converted.values.tolist() == list(by_column.values())
    assert converted.base_values + converted.values.sum() == pytest.approx(explained[0].prediction, abs=1e-12)
    assert converted.data.tolist() == cancer[0].data[0].tolist()
    assert converted.feature_names == cancer[0].feature_names.tolist()
    assert converted.output_names == "benign"
    converted.values[0] = 7  # the values are a copy
    assert explained[0].contributions[0] != 7


@pytest.mark.parametrize("plot", [shap.plots.waterfall, shap.plots.bar], ids=["waterfall", "bar"])
def test_shap_draws_one(plot, explained, figure):
    plot(explained[0].to_shap(), max_display=5, show=False)
    strongest = explained[0].facts[0]
    assert f"{strongest.value:g} = {strongest.column}" in tick_texts(figure)


def test_several_as_shaps(explained, figure):
    many = to_shap(iter(explained))
    assert many.shape == (12, 30)
    predictions = [explanation.prediction for explanation in explained]
    assert many.base_values + many.values.sum(axis=1) == pytest.approx(predictions, abs=1e-12)
    assert many[3].values.tolist() == explained[3].to_shap().values.tolist()
    assert many[3].base_values == explained[3].base
    assert many[:, "worst area"].data.shape == (12,)
    shap.plots.waterfall(many[0], show=False)


@pytest.mark.parametrize("plot", [shap.plots.beeswarm, shap.plots.bar, shap.plots.heatmap])
def test_shap_draws_several(plot, explained, figure):
    plot(to_shap(explained), show=False)
    assert tick_texts(figure) & set(explained[0].to_shap().feature_names)


@pytest.mark.parametrize(
    "draw",
    [
        lambda many: shap.plots.bar(many.abs.mean(0), show=False),
        lambda many: shap.plots.beeswarm(many, order=many.abs.max(0), show=False),
        lambda many: shap.plots.heatmap(many, instance_order=many.sum(1), show=False),
        lambda many: shap.plots.scatter(many[:, "worst area"], show=False),
    ],
    ids=["bar of means", "beeswarm in order", "heatmap in order", "scatter"],
)
def test_shap_reckons_with_several(draw, explained, figure):
    from matplotlib import pyplot as plt

    many = to_shap(explained)
    assert many.output_names is None
    draw(many)
    assert figure.axes or plt.gcf().axes  # a scatter plot has a figure of its own


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 300
    color = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["nurse", "cook", "pilot"], n),
            "member": rng.random(n) < 0.4,
            "red": (color == 0).astype(int),
            "green": (color == 1).astype(int),
            "x": rng.normal(50, 1, n),
            "y": rng.normal(4, 1, n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    frame.loc[5, "age"] = np.nan
    frame.loc[5, ["red", "green"]] = [1, 0]
    frame.loc[6, ["x", "job"]] = [51.25, "cook"]

    def risk(frame):
        points = frame["age"].fillna(40) / 30 + (frame["job"] == "cook") + frame["member"] - frame["red"]
        return 1 / (1 + np.exp(2 - points - 0.2 * (frame["x"] > 50)))

    return frame, risk


def display_data(people, row, **keywords):
    frame, risk = people
    explainer = Explainer(risk, Table(frame, **keywords), output="risk", output_range=(0, 1))
    converted = explainer.explain(row, k=6, queries=400).to_shap()
    return converted, dict(zip(converted.feature_names, converted.display_data.tolist(), strict=True))


def test_values_read_well(people, figure):
    converted, texts = display_data(people, 5)
    assert texts["age"] == "missing"
    assert texts["job"] == people[0]["job"][5]
    assert texts["red"] == 1.0
    assert texts["since"] == "2021-12-20\u200a"  # a hair space, because SHAP removes zeros from the end of texts
    assert math.isnan(converted.data[0])
    assert converted.data[5] == people[0]["x"][5]
    for plot in (shap.plots.waterfall, shap.plots.bar):
        figure.clear()
        plot(converted, show=False)
        assert "missing = age" in tick_texts(figure)


@pytest.fixture(scope="module")
def accounts():
    """Return explanations of rows whose values end in zeros, or need more than three decimals."""
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "age": rng.integers(2, 8, n) * 10,
            "debt": rng.integers(1, 200, n) * 100,
            "rate": rng.integers(1, 9, n) * 0.00012,
            "income": rng.normal(45000, 9000, n),
            "code": rng.choice(["100", "B20", "cook"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "member": rng.random(n) < 0.4,
        }
    )
    frame.loc[0] = [40, 12900, 0.00012, 51234.56789, "100", pd.Timestamp("2021-02-10"), True]
    frame.loc[1, ["income", "code"]] = [np.nan, None]

    def risk(frame):
        old = frame["since"] > pd.Timestamp("2021-01-01")
        points = frame["age"] / 20 - frame["debt"] / 6000 + frame["member"] + (frame["code"] == "100") + old
        return 1 / (1 + np.exp(2 - points - frame["income"].fillna(0) / 30000 - 900 * frame["rate"]))

    explainer = Explainer(risk, Table(frame), output="risk", output_range=(0, 1))
    return explainer.explain_many(frame[:20], k=8, queries=400)


@pytest.mark.parametrize("plot", [shap.plots.waterfall, shap.plots.bar], ids=["waterfall", "bar"])
def test_no_digit_of_a_value_is_lost(plot, accounts, figure):
    plot(accounts[0].to_shap(), show=False)
    read = {text.replace("\u200a", "") for text in tick_texts(figure)}
    assert read >= {"40 = age", "12900 = debt", "0.00012 = rate", "51234.568 = income"}
    assert read >= {"100 = code", "2021-02-10 = since", "True = member"}


def test_numbers_are_floats_and_categories_texts(accounts):
    one = accounts[0].to_shap()
    assert one.data[:5].tolist() == [40.0, 12900.0, 0.00012, 51234.56789, "100"]
    assert one.data[5:].tolist() == ["2021-02-10", 1.0]
    assert [type(value) for value in one.display_data] == [float, float, str, float, str, str, str]
    large = Table(pd.DataFrame({"x": [1e20, 2e20, 3.5], "y": [1.0, 2.0, 3.0]}))
    explainer = Explainer(lambda frame: frame["y"].to_numpy(), large, task="number", output="y")
    assert explainer.explain(0, queries=200).to_shap().display_data[0] == "1e+20\u200a"


@pytest.fixture(scope="module")
def batch(accounts):
    """Return the explanations with a failure in the middle."""
    entries = list(accounts)
    return Explanations([*entries[:10], Failure(10, "no such color", "InstanceError"), *entries[10:]])


def test_a_batch_as_shaps(batch):
    many = batch.to_shap()
    assert many.shape == many.data.shape == many.display_data.shape == (20, 7)
    assert many.instance_names == [str(row) for row in range(21) if row != 10]
    assert many["11"].values.tolist() == batch[11].to_shap().values.tolist()
    predictions = [explanation.prediction for explanation in batch.explained]
    assert many.base_values + many.values.sum(axis=1) == pytest.approx(predictions, abs=1e-12)
    assert many[1].data[3:5].tolist() == pytest.approx([np.nan, "missing"], nan_ok=True)
    assert many.display_data[0].tolist()[:4] == [40.0, 12900.0, 0.00012, 51234.56789]
    assert batch[5:12].to_shap().instance_names == ["5", "6", "7", "8", "9", "11"]
    with pytest.raises(ParameterError, match=r"1 of 1 rows have no explanation.*no such color"):
        batch[10:11].to_shap()
    with pytest.raises(ParameterError, match="at least one Explanation"):
        Explanations().to_shap()


def test_rows_with_a_common_base_keep_their_sums(batch):
    many = batch.to_shap(common_base=True)
    assert many.shape == (20, 8)
    assert many.feature_names[-1] == "(base)"
    assert len(set(many.base_values.tolist())) == 1
    bases = [explanation.base for explanation in batch.explained]
    assert many.data[:, -1].tolist() == bases
    predictions = [explanation.prediction for explanation in batch.explained]
    assert many.base_values + many.values.sum(axis=1) == pytest.approx(predictions, abs=1e-12)
    one = to_shap(batch[0], common_base=True)  # one row has one base anyway
    assert (one.shape, one.base_values) == ((7,), batch[0].base)


@pytest.mark.parametrize("plot", ["bar", "beeswarm", "heatmap", "waterfall", "force of one"])
def test_shap_draws_a_batch(plot, batch, figure):
    many = batch.to_shap()
    if plot == "force of one":
        shap.plots.force(many[0], matplotlib=True, show=False)
    else:
        getattr(shap.plots, plot)(many[0] if plot == "waterfall" else many, show=False)
        assert any("debt" in text for text in tick_texts(figure))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # SHAP compares missing values
@pytest.mark.parametrize("name", ["age", "rate", "income", "code", "since", "member"])
def test_shap_draws_a_scatter_plot_of_every_kind_of_column(name, batch, figure):
    from matplotlib import pyplot as plt

    many = batch.to_shap()
    shap.plots.scatter(many[:, name], color=many[:, "debt"], show=False)
    ticks = {label.get_text().strip("\u200a") for label in plt.gcf().axes[0].get_xticklabels()}
    expected = {"code": {"100", "B20", "cook", "missing"}, "member": {"True", "False"}, "since": {"2021-02-10"}}
    assert ticks >= expected.get(name, set())
    shap.plots.scatter(many[:, name], color=many, show=False)  # SHAP chooses the color


def test_shap_draws_violins(batch, explained, figure):
    shap.plots.violin(to_shap(explained), max_display=5, show=False)
    assert "worst perimeter" in tick_texts(figure)
    figure.clear()
    many = batch.to_shap()
    shap.plots.violin(many.values, feature_names=many.feature_names, show=False)  # texts have no color
    assert "code" in tick_texts(figure)
    figure.clear()
    coded = batch.to_shap(codes=True)
    shap.plots.violin(coded, show=False)
    assert "code" in tick_texts(figure)
    shap.plots.bar(coded.cohorts(2).abs.mean(0), show=False)
    column, texts = coded[:, "code"].data, [text.strip() for text in coded[:, "code"].display_data]
    assert column.dtype == np.float64
    for number, text in zip(column, texts, strict=True):
        assert ("missing" if np.isnan(number) else sorted({*texts} - {"missing"})[int(number)]) == text


def test_shap_draws_decisions_and_forces_of_a_batch(batch, figure):
    many = batch.to_shap(common_base=True)
    predictions = [explanation.prediction for explanation in batch.explained]
    shap.plots.decision(many.base_values[0], many.values, feature_names=many.feature_names, show=False)
    ends = [float(line.get_xdata()[-1]) for line in figure.axes[0].lines if len(line.get_xdata()) == 9]
    assert sorted(ends) == pytest.approx(sorted(predictions))
    forces = shap.plots.force(many)
    assert [row["outValue"] for row in forces.data["explanations"]] == pytest.approx(predictions)
    assert "12900" in forces.html()


def test_shap_draws_the_decision_and_the_forces_of_one_row(accounts, figure):
    from matplotlib import pyplot as plt

    one = accounts[0].to_shap()
    names = one.feature_names
    shap.plots.decision(
        one.base_values, one.values, features=one.display_data, feature_names=names, feature_order=None, show=False
    )
    axes = figure.axes[0]
    (line,) = (line for line in axes.lines if len(line.get_xdata()) == len(names) + 1)
    assert line.get_xdata()[0] == pytest.approx(accounts[0].base)
    assert line.get_xdata()[-1] == pytest.approx(accounts[0].prediction)
    texts = {text.get_text().replace("\u200a", "").strip() for text in axes.texts}
    assert texts >= {"(40)", "(12,900)", "(0.00012)", "(51,234.568)", "(100)", "(2021-02-10)", "(True)"}
    shap.plots.force(one, matplotlib=True, show=False)
    texts = {text.get_text().replace("\u200a", "").strip() for text in plt.gcf().axes[0].texts}
    assert texts >= {"code = 100", "since = 2021-02-10", "member = True"}
    assert texts >= {"base value", f"{accounts[0].prediction:.2f}"}


def test_a_common_base_gives_the_heatmap_the_line_of_the_predictions(batch, figure):
    """SHAP draws the sum of the values, so that it is the prediction only with equal base values."""
    many = batch.to_shap(common_base=True)
    shap.plots.heatmap(many, instance_order=np.arange(20), show=False)
    predictions = np.array([explanation.prediction for explanation in batch.explained])
    lines = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_ydata()) == 20]
    assert abs(np.corrcoef(lines[0], predictions)[0, 1]) == pytest.approx(1)


def test_grouped_and_fixed_columns(people, figure):
    groups = {"color": ["red", "green"], "place": ["x", "y"]}
    converted, texts = display_data(people, 5, groups=groups, fixed=["since", "member"])
    assert list(texts) == converted.feature_names == list(people[0].columns)  # a fact is about a column
    assert not converted.values[[2, 7]].any()  # fixed
    shap.plots.waterfall(converted, show=False)
    assert "1 = red" in tick_texts(figure)
    converted, texts = display_data(people, 6, fixed=["since"])
    assert converted.data[list(texts).index("x")] == 51.25
    assert texts["job"] == converted.data[1] == "cook"


def test_they_are_the_shapley_values_that_shap_computes_of_the_sum():
    """With sigma = 0 the law is that of SHAP's background data, and SHAP's exact explainer is given the sum."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=60), rng.integers(0, 4, 60), rng.normal(size=60), rng.normal(size=60)])
    model = lambda rows: np.tanh(rows[:, 0]) + rows[:, 1] * (rows[:, 2] > 0) + 0.1 * rows[:, 3]  # noqa: E731
    table = Table(rows)
    e = Explainer(model, table, output="y", task="number").explain(rows[7], sigma=0, k=3)
    assert len(e.facts) == 3

    def sum_of(points):
        outputs = np.full(len(points), e.prediction)
        for fact, effect in zip(e.facts, e.effects.tolist(), strict=True):
            column = points[:, table.names.index(fact.column)]
            low, high = (-np.inf if fact.low is None else fact.low), (np.inf if fact.high is None else fact.high)
            outputs -= effect * ~((column >= low) & (column < high))
        return outputs

    background = shap.maskers.Independent(rows, max_samples=len(rows))
    theirs = shap.explainers.Exact(sum_of, background)(rows[7:8])
    assert e.to_shap().values == pytest.approx(theirs.values[0], abs=1e-9)
    assert e.to_shap().base_values == pytest.approx(theirs.base_values[0], abs=1e-9)


def test_the_hypercube(figure):
    names = [("income >= 65k", "income < 65k"), ("DTI <= 30%", "DTI > 30%"), "owner", "paid"]
    explainer = Explainer(lambda z: z @ [0.4, 0.3, 0.2, 0.1], Hypercube(names), output="score")
    explanation = explainer.explain([1, -1, -1, 1], sigma=0)
    converted = explanation.to_shap()
    assert converted.display_data.tolist() == ["+1", "-1", "-1", "+1"]
    assert converted.data.tolist() == [1, -1, -1, 1]
    assert converted.values == pytest.approx([0.4, -0.3, -0.2, 0.1])
    shap.plots.waterfall(converted, show=False)
    assert "+1 = income >= 65k" in tick_texts(figure)
    assert to_shap([explanation] * 3).shape == (3, 4)
    assert to_shap([explanation] * 3, common_base=True).shape == (3, 5)


def test_words_and_regions_have_no_values(figure):
    good = lambda texts: np.array([0.5 + 0.3 * ("great" in text) - 0.2 * ("slow" in text) for text in texts])  # noqa: E731
    explainer = Explainer(good, Text(), output="score", output_range=(0, 1))
    first, second = (explainer.explain(text, queries=200) for text in ("great food", "slow but great"))
    converted = first.to_shap()
    assert (converted.feature_names, converted.data) == (["great", "food"], None)
    assert to_shap([first, second]).feature_names == ["great", "food", "slow", "but"]
    shap.plots.waterfall(converted, show=False)
    assert "great" in tick_texts(figure)
    image = np.arange(16.0).reshape(4, 4)
    light = Explainer(lambda images: images[:, 0, 0], Image("grid", hidden=0, n_segments=4), task="number")
    assert light.explain(image + 1, queries=200).to_shap().feature_names == [f"region {i}" for i in range(1, 5)]


def test_refusals_of_to_shap(explained, iris):
    data, model = iris
    table = Table(data.data)
    of_class = [Explainer(model, table).explain(i, queries=200) for i in (0, 55)]
    with pytest.raises(ParameterError, match=r"outputs '0' and '1'.*Choose a class: .*output='0'"):
        to_shap(of_class)
    with pytest.raises(ParameterError, match="different tables"):
        to_shap([explained[0], of_class[0]])
    label = Explainer(model.predict, table, task="label", output="species")
    with pytest.raises(ParameterError, match="labels 0 and 1"):
        to_shap([label.explain(i, queries=200) for i in (0, 55)])
    results = [explained[0], Failure(7, "no such color", "InstanceError"), Failure(9, "late", "RowError")]
    message = r"2 of 3 rows .*Row 7 .*no such color.*to_shap\(many.explained\)"
    with pytest.raises(ParameterError, match=message):
        to_shap(results)
    assert to_shap(Explanations(results).explained).shape == (1, 30)
    for wrong in ([], 3, [1], None):
        with pytest.raises(ParameterError, match="must be an Explanation"):
            to_shap(wrong)


def test_without_shap_the_extra_is_named(explained, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingDependencyError, match=r"anchorline\[peers\]"):
        explained[0].to_shap()


def test_the_largest_feature_is_chosen_as_shap_users_choose_it(figure):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    explainer = Explainer(lambda z: 3 * z[:, 1] + z[:, 0], Table(rows, names=["a", "b", "c"]), output="score")
    many = explainer.explain_many(rows[:9], queries=300).to_shap()
    assert many[:, many.abs.mean(0).argsort[-1]].feature_names == "b"
    assert many[:, many.abs.mean(0).argsort.flip[:2]].shape == (9, 2)
    assert many[0].abs.values.shape == (3,)
    assert (many["7"].values == many[7].values).all()
    shap.plots.scatter(many[:, many.abs.mean(0).argsort[-1]], show=False)


def test_a_text_and_an_image_are_drawn_themselves(figure):
    mood = lambda texts: np.array([("good" in text) - 0.5 * ("slow" in text) for text in texts])  # noqa: E731
    text = '"Good, good food <b>, slow'
    e = Explainer(mood, Text(), output="mood").explain(text)
    words = e.to_shap(content=True)
    assert "".join(words.data) == text
    assert words.base_values + words.values.sum() == pytest.approx(e.prediction)
    assert "good" in shap.plots.text(words, display=False)
    twice = Explainer(mood, Text(), output="mood").explain("good or good").to_shap(content=True)
    assert twice.values[0] == twice.values[2] > 0
    image = np.random.default_rng(0).random((32, 32, 3))
    bright = Explainer(
        lambda batch: batch[:, 8:16, 8:16].mean(axis=(1, 2, 3)), Image("grid", 0, 16), output="bright"
    )
    e = bright.explain(image)
    pixels = e.to_shap(content=True)
    assert (pixels.values.shape, pixels.data.shape) == ((1, 32, 32, 1), (1, 32, 32, 3))
    assert pixels.base_values[0] + pixels.values.sum() == pytest.approx(e.prediction)
    shap.plots.image(pixels, show=False)
    with pytest.raises(ParameterError, match="content=True takes one explanation of a text or an image"):
        to_shap([e, e], content=True)
