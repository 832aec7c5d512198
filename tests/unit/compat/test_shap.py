"""Explanations that SHAP's own plots draw."""

import math
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.compat import to_shap
from anchorline.errors import MissingDependencyError, ParameterError

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
    table = al.Table(data.data, names=data.feature_names)
    explainer = al.Explainer(model, table, classes=data.target_names, output="benign")
    return [explainer.explain(i, k=5, n_samples=400, n_certify=0) for i in range(0, 60, 5)]


def test_one_explanation_as_shaps(explained, cancer):
    converted = explained[0].to_shap()
    assert isinstance(converted, shap.Explanation)
    by_attribute = dict.fromkeys(cancer[0].feature_names.tolist(), 0.0)
    for literal, contribution in zip(explained[0].literals, explained[0].contributions.tolist(), strict=True):
        by_attribute[literal.name] += contribution
    assert converted.values.tolist() == list(by_attribute.values())
    assert converted.base_values + converted.values.sum() == pytest.approx(explained[0].prediction, abs=1e-12)
    assert converted.data.tolist() == cancer[0].data[0].tolist()
    assert converted.feature_names == cancer[0].feature_names.tolist()
    assert converted.output_names == "benign"
    converted.values[0] = 7  # the values are a copy
    assert explained[0].contributions[0] != 7


@pytest.mark.parametrize("plot", [shap.plots.waterfall, shap.plots.bar], ids=["waterfall", "bar"])
def test_shap_draws_one(plot, explained, figure):
    plot(explained[0].to_shap(), max_display=5, show=False)
    strongest = explained[0].terms[0]
    value = explained[0].literals[strongest.index].held.rpartition(" ")[2]
    assert f"{value} = {strongest.literal.name}" in tick_texts(figure)


def test_several_as_shaps(explained, figure):
    many = to_shap(iter(explained))
    assert many.shape == (12, 30)
    predictions = [explanation.prediction for explanation in explained]
    assert many.base_values + many.values.sum(axis=1) == pytest.approx(predictions, abs=1e-12)
    assert many[3].values.tolist() == explained[3].to_shap().values.tolist()
    assert many[3].base_values == explained[3].intercept
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
    explainer = al.Explainer(risk, al.Table(frame, **keywords), output="risk", output_range=(0, 1))
    converted = explainer.explain(row, k=6, n_samples=300, n_certify=0).to_shap()
    return converted, dict(zip(converted.feature_names, converted.display_data.tolist(), strict=True))


@pytest.mark.parametrize("within", ["keep", "redraw"])
def test_values_read_well(people, figure, within):
    converted, texts = display_data(people, 5, within=within)
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

    explainer = al.Explainer(risk, al.Table(frame), output="risk", output_range=(0, 1))
    return explainer.explain_many(frame[:20], k=8, n_samples=200, n_certify=0, keep_noise=True)


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
    large = al.Table(pd.DataFrame({"x": [1e20, 2e20, 3.5], "y": [1.0, 2.0, 3.0]}))
    explainer = al.Explainer(lambda frame: frame["y"].to_numpy(), large, task="number", output="y")
    assert explainer.explain(0, n_samples=50, n_certify=0).to_shap().display_data[0] == "1e+20\u200a"


@pytest.fixture(scope="module")
def batch(accounts):
    """Return the explanations with a failure in the middle."""
    entries = list(accounts)
    return al.Explanations([*entries[:10], al.Failure(10, "no such color", "InstanceError"), *entries[10:]])


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
    with pytest.raises(ParameterError, match=r"None of the 1 rows has an explanation.*no such color"):
        batch[10:11].to_shap()
    with pytest.raises(ParameterError, match="at least one Explanation"):
        al.Explanations().to_shap()


def test_rows_with_a_common_base_keep_their_sums(batch):
    many = batch.to_shap(common_base=True)
    assert many.shape == (20, 8)
    assert many.feature_names[-1] == "(intercept)"
    assert len(set(many.base_values.tolist())) == 1
    intercepts = [explanation.intercept for explanation in batch.explained]
    assert many.data[:, -1].tolist() == intercepts
    predictions = [explanation.prediction for explanation in batch.explained]
    assert many.base_values + many.values.sum(axis=1) == pytest.approx(predictions, abs=1e-12)
    one = to_shap(batch[0], common_base=True)  # one row has one base anyway
    assert (one.shape, one.base_values) == ((7,), batch[0].intercept)


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
    assert line.get_xdata()[0] == pytest.approx(accounts[0].intercept)
    assert line.get_xdata()[-1] == pytest.approx(accounts[0].prediction)
    texts = {text.get_text().replace("\u200a", "").strip() for text in axes.texts}
    assert texts >= {"(40)", "(12,900)", "(0.00012)", "(51,234.568)", "(100)", "(2021-02-10)", "(True)"}
    shap.plots.force(one, matplotlib=True, show=False)
    texts = {text.get_text().replace("\u200a", "").strip() for text in plt.gcf().axes[0].texts}
    assert texts >= {"rate = 0.00012", "code = 100", "since = 2021-02-10", "member = True"}
    assert texts >= {"base value", f"{accounts[0].prediction:.2f}"}


def test_a_common_base_gives_the_heatmap_the_line_of_the_predictions(batch, figure):
    """SHAP draws the sum of the values, so that it is the prediction only with equal base values."""
    many = batch.to_shap(common_base=True)
    shap.plots.heatmap(many, instance_order=np.arange(20), show=False)
    predictions = np.array([explanation.prediction for explanation in batch.explained])
    lines = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_ydata()) == 20]
    assert abs(np.corrcoef(lines[0], predictions)[0, 1]) == pytest.approx(1)


def test_a_batch_draws_its_summary(batch, figure):
    axes = batch.plot()
    assert axes.get_title(loc="left") == "What decides 20 predictions"
    given = figure.subplots()
    assert batch.plot(given) is batch.plot(ax=given) is given
    with pytest.raises(ParameterError, match="at least one explanation"):
        batch[10:11].plot()


def test_grouped_and_fixed_columns(people, figure):
    groups = {"color": ["red", "green"], "place": ["x", "y"]}
    converted, texts = display_data(people, 5, groups=groups, fixed=["since", "member"])
    assert list(texts) == ["age", "job", "color", "place"]
    assert texts["color"] == "red"
    assert "=" not in texts["place"]  # SHAP splits the text at the equals sign
    shap.plots.waterfall(converted, show=False)
    assert "red = color" in tick_texts(figure)
    converted, texts = display_data(people, 6, fixed=["since"])
    assert converted.data[list(texts).index("x")] == 51.25
    assert texts["job"] == converted.data[1] == "cook"


def test_an_attribute_that_never_changes_around_one_row_adds_nothing_there(figure):
    rows = np.column_stack([np.r_[np.zeros(99), 1], np.arange(100.0) / 2])
    table = al.Table(rows, names=["rare", "x"], cuts={"rare": [2.0]}, literals="intervals")
    explainer = al.Explainer(lambda rows: rows[:, 1], table, output="y", task="number")
    one, other = (explainer.explain([value, 40.0], k=3, n_samples=200, n_certify=0) for value in (0.0, 3.0))
    assert [len(one.literals), len(other.literals)] == [1, 2]
    many = to_shap([one, other])
    assert many.feature_names == ["rare", "x"]
    np.testing.assert_array_equal(many.display_data.astype(float), [[np.nan, 40], [3, 40]])
    assert many.base_values + many.values.sum(axis=1) == pytest.approx([40, 40], abs=1e-9)
    shap.plots.beeswarm(many, show=False)


def test_the_hypercube(figure):
    names = [("income >= 65k", "income < 65k"), ("DTI <= 30%", "DTI > 30%"), "owner", "owner"]
    explanation = al.explain(lambda z: z @ [0.4, 0.3, 0.2, 0.1], [1, -1, -1, 1], names=names, output="score")
    converted = explanation.to_shap()
    assert converted.display_data.tolist() == ["true", "false", "-1", "+1"]
    assert converted.data.tolist() == [1, -1, -1, 1]
    assert converted.values == pytest.approx([0.4, -0.3, -0.2, 0.1])
    shap.plots.waterfall(converted, show=False)
    assert "true = income >= 65k" in tick_texts(figure)
    assert to_shap([explanation] * 3).shape == (3, 4)


def test_refusals_of_to_shap(explained, iris):
    data, model = iris
    table = al.Table(data.data)
    of_class = [al.Explainer(model, table).explain(i, n_samples=100, n_certify=0) for i in (0, 55)]
    with pytest.raises(ParameterError, match=r"outputs '0' and '1'.*Choose a class: .*output='0'"):
        to_shap(of_class)
    with pytest.raises(ParameterError, match="different tables"):
        to_shap([explained[0], of_class[0]])
    label = al.Explainer(model.predict, table, task="label", output="species")
    with pytest.raises(ParameterError, match="labels 0 and 1"):
        to_shap([label.explain(i, n_samples=100, n_certify=0) for i in (0, 55)])
    results = [explained[0], al.Failure(7, "no such color", "InstanceError"), al.Failure(9, "late", "RowError")]
    message = r"2 of 3 rows .*rows 7, 9.*no such color.*to_shap\(many.explained\)"
    with pytest.raises(ParameterError, match=message):
        to_shap(results)
    assert to_shap(al.Explanations(results).explained).shape == (1, 30)
    for wrong in ([], 3, [1], None):
        with pytest.raises(ParameterError, match="must be an Explanation"):
            to_shap(wrong)


def test_without_shap_the_extra_is_named(explained, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingDependencyError, match=r"anchorline\[peers\]"):
        explained[0].to_shap()
