"""Familiar doors: LIME's own calls side by side with LIME, and explanations that SHAP's own plots draw."""

import errno
import functools
import inspect
import math
import os
import pickle
import sys
import types
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import anchorline as al
from anchorline.compat import LimeTabularExplainer, to_shap
from anchorline.errors import (
    InstanceError,
    MissingDependencyError,
    OutputFileError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
)

mpl.use("Agg")

# SHAP, when imported, calls what newer versions of matplotlib are going to drop.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", r"The set_(bad|over|under) function", PendingDeprecationWarning)
    import shap
    from lime import lime_tabular

LIMES = {"lime": lime_tabular.LimeTabularExplainer, "anchorline": LimeTabularExplainer}
FEW = {"num_samples": 400}

both = pytest.mark.parametrize("explainer_type", LIMES.values(), ids=LIMES)


def classifier(data, **keywords):
    return RandomForestClassifier(10, random_state=0, **keywords).fit(data.data, data.target)


@pytest.fixture(scope="module")
def iris():
    data = load_iris()
    return data, classifier(data)


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer()
    return data, classifier(data)


@pytest.fixture(scope="module")
def diabetes():
    data = load_diabetes(scaled=False)
    return data, RandomForestRegressor(10, random_state=0).fit(data.data, data.target)


@pytest.fixture(scope="module")
def mixed():
    """Two numbers, and three categories coded as LIME wants them; the codes' order means nothing."""
    rng = np.random.default_rng(0)
    jobs, sexes = ["nurse", "cook", "pilot"], ["female", "male"]
    rows = np.column_stack(
        [rng.normal(40, 9, 500).round(), rng.integers(0, 3, 500), rng.integers(0, 2, 500), rng.normal(3, 1, 500)]
    )

    def predict_proba(rows):
        p = 1 / (1 + np.exp(5 - rows[:, 0] / 10 - 1.5 * (rows[:, 1] == 1) - 0.5 * rows[:, 2]))
        return np.column_stack([1 - p, p])

    keywords = {
        "feature_names": ["age", "job", "sex", "pay"],
        "class_names": ["no", "yes"],
        "categorical_features": [1, 2],
        "categorical_names": {1: jobs, 2: sexes},
        "random_state": 0,
    }
    return rows, predict_proba, keywords


def adds_up(result, label, output):
    return result.intercept[label] + sum(w for _, w in result.as_map()[label]) == pytest.approx(output, abs=1e-12)


# The same calls


@pytest.mark.parametrize("method", ["__init__", "explain_instance"])
def test_keywords_and_defaults_are_limes(method):
    theirs = inspect.signature(getattr(lime_tabular.LimeTabularExplainer, method)).parameters
    ours = inspect.signature(getattr(LimeTabularExplainer, method)).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert {name: p.default for name, p in theirs.items()}.items() <= {
        n: p.default for n, p in ours.items()
    }.items()
    assert set(ours) - set(theirs) <= {"sampling_method"}  # of LIME's newest source


@both
def test_binary_classification(explainer_type, cancer):
    data, model = cancer
    explainer = explainer_type(
        data.data, feature_names=data.feature_names, class_names=data.target_names, random_state=0
    )
    result = explainer.explain_instance(data.data[0], model.predict_proba, num_features=5, **FEW)
    assert len(result.as_list()) == 5
    assert all(type(text) in (str, np.str_) and type(weight) is float for text, weight in result.as_list())
    assert list(result.as_map()) == list(result.local_exp) == list(result.intercept) == [1]
    assert [w for _, w in result.as_map()[1]] == [w for _, w in result.as_list()]
    assert all(0 <= column < 30 for column, _ in result.as_map()[1])
    assert np.shape(result.local_pred) == (1,)
    assert isinstance(result.score, float)
    assert 0 < result.score <= 1
    assert result.predict_proba.tolist() == model.predict_proba(data.data[:1])[0].tolist()
    assert list(result.class_names) == ["malignant", "benign"]
    assert result.available_labels() == [1]
    assert result.top_labels is None
    sizes = [abs(weight) for _, weight in result.as_list()]
    assert sizes == sorted(sizes, reverse=True)


@both
def test_columns_are_the_training_datas(explainer_type, mixed):
    """as_map speaks of columns of the training data, as_list of the same in words."""
    rows, predict_proba, keywords = mixed
    result = explainer_type(rows, **keywords).explain_instance(rows[3], predict_proba, num_features=3, **FEW)
    texts = [text for text, _ in result.as_list()]
    for (column, _), text in zip(result.as_map()[1], texts, strict=True):
        assert keywords["feature_names"][column] in text
    job = keywords["categorical_names"][1][int(rows[3, 1])]
    assert [text for text in texts if text.replace(" ", "") == f"job={job}"]


@both
def test_several_classes(explainer_type, iris):
    data, model = iris
    explainer = explainer_type(data.data, class_names=data.target_names, random_state=1)
    result = explainer.explain_instance(data.data[70], model.predict_proba, labels=(0, 2), **FEW)
    assert result.available_labels() == [0, 2]
    assert sorted(result.as_map()) == [0, 2]
    result = explainer.explain_instance(data.data[70], model.predict_proba, top_labels=2, **FEW)
    order = np.argsort(result.predict_proba)
    assert result.top_labels == result.available_labels() == order[::-1][:2].tolist()
    assert sorted(result.as_map()) == sorted(order[-2:])


@both
def test_regression(explainer_type, diabetes):
    data, model = diabetes
    explainer = explainer_type(
        data.data, mode="regression", feature_names=data.feature_names, class_names=["progression"], random_state=0
    )
    result = explainer.explain_instance(data.data[0], model.predict, num_features=4, **FEW)
    assert len(result.as_list()) == 4
    assert result.as_list() == result.as_list(label=1) == result.as_list(label=0)
    assert sorted(result.as_map()) == sorted(result.intercept) == [0, 1]
    assert result.as_map()[0] == [(column, -weight) for column, weight in result.as_map()[1]]
    assert result.class_names == ["negative", "positive"]
    assert result.predicted_value == model.predict(data.data[:1])[0]
    assert result.min_value <= result.predicted_value <= result.max_value
    assert np.shape(result.local_pred) == (1,)


@both
@pytest.mark.parametrize("discretizer", ["quartile", "decile", "entropy"])
def test_discretizers_cut_the_same_rows(explainer_type, iris, discretizer):
    data, model = iris
    explainer = explainer_type(
        data.data,
        training_labels=data.target,
        feature_names=["a", "b", "c", "d"],
        discretizer=discretizer,
        random_state=0,
    )
    result = explainer.explain_instance(data.data[0], model.predict_proba, labels=(0,), num_features=4, **FEW)
    assert len(result.as_list(0)) <= 4
    # LIME's intervals are closed above; a value that many rows share stands alone here.
    facts = {
        "quartile": {"d <= 0.30", "d < 0.3"},
        "decile": {"d <= 0.20", "d = 0.2"},
        "entropy": {"d <= 0.80", "d < 0.8"},
    }
    assert facts[discretizer] & {text for text, _ in result.as_list(0)}


@both
def test_as_pyplot_figure(explainer_type, mixed):
    from matplotlib import pyplot as plt

    rows, predict_proba, keywords = mixed
    result = explainer_type(rows, **keywords).explain_instance(rows[3], predict_proba, **FEW)
    figure = result.as_pyplot_figure()
    assert figure.number in plt.get_fignums()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {text for text, _ in result.as_list()} <= set(labels)
    plt.close(figure)


# What is ours


def test_weights_add_up_to_the_models_own_output(iris, diabetes):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, class_names=data.target_names)
    result = explainer.explain_instance(data.data[77], model.predict_proba, labels=range(3), **FEW)
    for label in range(3):
        assert adds_up(result, label, model.predict_proba(data.data[77:78])[0, label])
        assert result.explanations[label].output == data.target_names[label]
    assert result.local_pred == result.predict_proba[2]  # the last, as in LIME
    assert result.score == result.scores[2]
    data, model = diabetes
    result = LimeTabularExplainer(data.data, mode="regression").explain_instance(
        data.data[5], model.predict, **FEW
    )
    assert adds_up(result, 1, model.predict(data.data[5:6])[0])
    assert result.local_pred == result.predicted_value


def test_every_label_has_a_certificate_that_can_be_verified(mixed):
    rows, predict_proba, keywords = mixed
    explainer = LimeTabularExplainer(rows, **keywords)
    result = explainer.explain_instance(rows[3], predict_proba, num_features=3)
    explanation = result.explanations[1]
    assert explanation.is_proved
    assert explanation.certificate.n_terms <= 4
    assert explanation.parameters["k"] == 4
    assert explanation.verify(predict_proba, explainer.table)


def test_the_place_of_an_intercept_can_go_to_one_more_fact():
    """Documented: k = num_features + 1, and a sum without intercept has k facts."""
    rows = np.random.default_rng(0).choice([-1.0, 1.0], (200, 3))
    explainer = LimeTabularExplainer(rows, mode="regression")
    result = explainer.explain_instance([1, 1, -1], lambda rows: rows @ [3, 4, 0], num_features=1)
    assert result.intercept[1] == 0
    assert result.as_list() == [("x1 = 1", pytest.approx(4)), ("x0 = 1", pytest.approx(3))]


def test_a_broken_fact_counts_with_the_opposite_sign():
    """Documented: LIME's weight is the whole move, ours is half of it."""
    rows = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(float)
    results = [
        explainer_type(rows, mode="regression", categorical_features=[0, 1, 2], random_state=0).explain_instance(
            rows[0] * 0 + 1, lambda rows: rows @ [3, 4, 0] + 5, num_features=2
        )
        for explainer_type in LIMES.values()
    ]
    lime, ours = (dict(result.as_map()[1]) for result in results)
    assert lime == pytest.approx({0: 3, 1: 4}, abs=0.05)
    assert ours == pytest.approx({0: 1.5, 1: 2})
    assert results[1].intercept[1] == pytest.approx(5 + 3.5)


def test_feature_selection_none_takes_all(cancer):
    data, model = cancer
    explainer = LimeTabularExplainer(data.data, feature_selection="none")
    result = explainer.explain_instance(data.data[0], model.predict_proba, num_features=2, **FEW)
    assert len(result.as_list()) > 20


def test_the_score_is_a_share_of_the_fresh_neighbors_change(mixed):
    rows, predict_proba, keywords = mixed
    explainer = LimeTabularExplainer(rows, **keywords)
    result = explainer.explain_instance(rows[3], predict_proba)
    certificate = result.explanations[1].certificate
    assert result.score == 1 - certificate.fidelity_error.value / certificate.baseline_error.value
    assert 0.7 < result.score <= 1
    constant = explainer.explain_instance(rows[3], lambda rows: np.full((len(rows), 2), 0.5), **FEW)
    assert constant.score == 1
    assert constant.as_list() == []
    assert math.isnan(explainer.explain_instance(rows[3], predict_proba, num_samples=1).score)


def test_class_names_are_the_models_own_where_it_tells_them(iris):
    data, _ = iris
    model = LogisticRegression(max_iter=1000).fit(data.data, data.target_names[data.target])
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    assert result.class_names == ["setosa", "versicolor", "virginica"]
    assert result.explanations[1].output == "versicolor"
    tells_nothing = functools.partial(model.predict_proba)
    wrapped = LimeTabularExplainer(data.data).explain_instance(data.data[0], tells_nothing, **FEW)
    assert wrapped.class_names == ["0", "1", "2"]
    assert wrapped.as_list() == result.as_list()


@pytest.mark.parametrize("to_frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_are_taken_as_they_are(to_frame, mixed):
    rows, predict_proba, _ = mixed
    jobs = np.array(["nurse", "cook", "pilot"])[rows[:, 1].astype(int)]
    frame = to_frame({"age": rows[:, 0], "job": jobs, "sex": rows[:, 2]})
    seen = []

    def predict_frame(frame):
        seen.append(type(frame))
        job = (np.asarray(frame["job"]) == "cook").astype(float)
        return predict_proba(np.column_stack([frame["age"], job, frame["sex"]]))

    explainer = LimeTabularExplainer(frame, categorical_features=["sex"], categorical_names={2: {0: "f", 1: "m"}})
    row = {"age": 51.0, "job": "cook", "sex": 1.0}
    result = explainer.explain_instance(row, predict_frame, num_features=3, **FEW)
    assert {text for text, _ in result.as_list()} == {"age >= 46", "job = cook", "sex = m"}
    assert set(seen) == {to_frame}
    with pytest.raises(ParameterError, match="frame's own names"):
        LimeTabularExplainer(frame, feature_names=["a", "b", "c"])


def test_missing_values_are_no_obstacle():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    rows[rng.random((300, 3)) < 0.2] = np.nan
    explainer = LimeTabularExplainer(rows, mode="regression")
    result = explainer.explain_instance([np.nan, 1.0, 2.0], lambda rows: np.isnan(rows[:, 0]) * 2.0, **FEW)
    assert result.as_list()[0][0] == "x0 is missing"


def test_the_same_seed_gives_the_same_bytes_and_no_generator_is_touched(iris):
    data, model = iris

    def bytes_of(random_state):
        explainer = LimeTabularExplainer(data.data, random_state=random_state)
        results = [explainer.explain_instance(data.data[0], model.predict_proba, **FEW) for _ in range(2)]
        assert results[0].explanations[1].to_json() == results[1].explanations[1].to_json()
        return results[0].explanations[1].to_json()

    before = np.random.get_state(legacy=False)  # noqa: NPY002
    assert bytes_of(None) == bytes_of(0) == bytes_of(np.int64(0)) != bytes_of(1)
    old, new = np.random.RandomState(5), np.random.default_rng(5)
    assert bytes_of(old) == bytes_of(old) != bytes_of(np.random.RandomState(6))
    assert bytes_of(new) == bytes_of(np.random.default_rng(5)) != bytes_of(np.random.default_rng(6))
    assert old.randint(1000) == np.random.RandomState(5).randint(1000)
    assert str(before) == str(np.random.get_state(legacy=False))  # noqa: NPY002


def test_results_pickle(mixed):
    rows, predict_proba, keywords = mixed
    result = LimeTabularExplainer(rows, **keywords).explain_instance(rows[3], predict_proba, **FEW)
    again = pickle.loads(pickle.dumps(result))
    assert again.as_list() == result.as_list()
    assert again.explanations == result.explanations


# Pages


def test_pages(iris, tmp_path):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, class_names=["a & b", "b", "c"])
    one = explainer.explain_instance(data.data[0], model.predict_proba, labels=(0,), **FEW)
    two = explainer.explain_instance(data.data[0], model.predict_proba, top_labels=2, **FEW)
    for result, n in ((one, 1), (two, 2)):
        page = result.as_html(predict_proba=True, show_table=True, show_all=False)
        assert page.startswith("<!DOCTYPE html>")
        assert "<script" not in page
        assert page.count('class="anchorline"') == n
        result.save_to_file(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert "<title>a &amp; b, " in two.as_html()
    assert two.as_html(labels=[0]) == one.as_html()
    assert two._repr_html_().count('class="anchorline"') == 2
    with pytest.warns(UserWarning, match="show_all=True has no effect"):
        one.as_html(show_all=True)
    with pytest.raises(TypeError, match="show_everything"):
        one.as_html(show_everything=True)


def test_limes_positional_arguments(iris, tmp_path):
    data, model = iris
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    result.save_to_file(tmp_path / "page.html", None, True, True)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == result.as_html(None, True, True)
    with pytest.warns(UserWarning, match="predict_proba=False has no effect"):
        result.as_html([1], False)


@pytest.mark.parametrize("class_names", [["a", "b"], "y", np.array(["a", "b"])])
def test_class_names_mean_nothing_in_a_regression(diabetes, class_names):
    data, model = diabetes
    explainer = LimeTabularExplainer(data.data, mode="regression", class_names=class_names)
    result = explainer.explain_instance(data.data[0], model.predict, **FEW)
    assert (result.class_names, result.explanations[1].output) == (["negative", "positive"], "f(x)")


def test_a_series_without_names_is_a_row_of_an_array(iris):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, feature_names=data.feature_names)
    told = [
        explainer.explain_instance(row, model.predict_proba, **FEW).as_list()
        for row in (data.data[0], pd.Series(data.data[0]), pd.Series(data.data[0], index=data.feature_names))
    ]
    assert told[0] == told[1] == told[2]


def test_a_page_is_written_whole_or_not_at_all(iris, tmp_path, monkeypatch):
    data, model = iris
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    with pytest.raises(OutputFileError, match="the folder does not exist"):
        result.save_to_file(tmp_path / "none" / "page.html")

    def fail(descriptor):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fail)
    (tmp_path / "page.html").write_text("old")
    with pytest.raises(OutputFileError, match="the disk is full"):
        result.save_to_file(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "old"


def test_show_in_notebook(iris, monkeypatch):
    data, model = iris
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    shown = []
    module = types.ModuleType("IPython.display")
    module.HTML, module.display = str, shown.append
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    result.show_in_notebook(show_table=True, show_all=False)
    assert 'class="anchorline"' in shown[0]
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(MissingDependencyError, match="save_to_file"):
        result.show_in_notebook()


# What has no meaning here is never ignored in silence


@pytest.mark.parametrize(
    ("keywords", "instead"),
    [
        ({"kernel_width": 3}, "drawn close to the row"),
        ({"kernel": lambda d, kernel_width: d}, "drawn close to the row"),
        ({"verbose": True}, "print"),
        ({"sample_around_instance": True}, "keeps most of the row's own values"),
        ({"feature_selection": "lasso_path"}, "the best choice is searched"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_warnings_of_the_constructor(iris, keywords, instead):
    with pytest.warns(UserWarning, match=instead) as caught:
        LimeTabularExplainer(iris[0].data, **keywords)
    assert next(iter(keywords)) in str(caught[0].message)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "keywords",
    [{"distance_metric": "cosine"}, {"model_regressor": Ridge()}, {"sampling_method": "lhs"}],
    ids=lambda keywords: next(iter(keywords)),
)
def test_warnings_of_explain_instance(iris, keywords):
    data, model = iris
    explainer = LimeTabularExplainer(data.data)
    with pytest.warns(UserWarning, match=f"{next(iter(keywords))} has no effect") as caught:
        explainer.explain_instance(data.data[0], model.predict_proba, **FEW, **keywords)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"mode": "clustering"}, "mode is 'clustering'"),
        ({"discretize_continuous": False}, "slopes"),
        ({"discretizer": "fayyad"}, "quartile, decile, entropy"),
        ({"discretizer": object()}, "cuts="),
        ({"discretizer": "entropy"}, "training_labels"),
        ({"discretizer": "entropy", "training_labels": [0, 1]}, "one a row"),
        ({"discretizer": "entropy", "training_labels": [0.5], "mode": "regression"}, "of classes"),
        ({"feature_selection": "best"}, "feature_selection is 'best'"),
        ({"training_data_stats": {"means": [1]}}, "statistics are not enough"),
        ({"feature_names": ["a"]}, "names has 1 entries"),
        ({"feature_names": list("aacd")}, "must differ"),
        ({"categorical_features": [4]}, "0 to 3"),
        ({"categorical_features": [True, False, False, False]}, "a column's number"),
        (
            {"categorical_features": 0},
            r"categorical_features is 0; needed a list. Type categorical_features=\[0\]",
        ),
        ({"categorical_features": np.array(0)}, "categorical_features is array"),
        ({"categorical_features": "ab", "feature_names": list("abcd")}, "categorical_features is 'ab'"),
        ({"categorical_names": [["a", "b"]]}, "categorical_names is a list"),
        ({"categorical_names": {0: None}}, r"categorical_names\[0\] is None; .* Type categorical_names={0: \["),
        ({"categorical_names": {0: "no"}}, r"categorical_names\[0\] is 'no'"),
        ({"feature_names": "abcd"}, "feature_names is 'abcd'; needed a list"),
        ({"class_names": "benign"}, "needed a list"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": np.random}, "random_state"),
    ],
)
def test_refusals_of_the_constructor(iris, keywords, message):
    with pytest.raises(ParameterError, match=message):
        LimeTabularExplainer(iris[0].data, **keywords)


def test_all_columns_categorical_leave_nothing_to_discretize():
    rows = np.random.default_rng(0).integers(0, 3, (100, 2))
    explainer = LimeTabularExplainer(
        rows, categorical_features=[0, 1], discretize_continuous=False, mode="regression"
    )
    assert explainer.explain_instance(rows[0], lambda rows: rows[:, 0] * 1.0, **FEW).as_list()


def test_the_training_data_must_be_a_table():
    with pytest.raises(ParameterError, match="2-D array"):
        LimeTabularExplainer(np.zeros(3))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_features": 0}, "num_features is 0"),
        ({"num_features": 2.5}, "num_features is 2.5"),
        ({"num_samples": 0}, "n_samples is 0"),
        ({"labels": 1}, r"Type labels=\(1,\)"),
        ({"labels": [3]}, "0 to 2"),
        ({"labels": ["setosa"]}, "0 to 2"),
        ({"labels": []}, "0 to 2"),
        ({"top_labels": -1}, "top_labels is -1"),
        ({"top_labels": 1.5}, "top_labels is 1.5"),
    ],
)
def test_refusals_of_explain_instance(iris, keywords, message):
    data, model = iris
    with pytest.raises(ParameterError, match=message):
        LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **keywords)


def test_refusals_of_models_and_rows(iris):
    data, model = iris
    explainer = LimeTabularExplainer(data.data)
    with pytest.raises(PredictorOutputError, match="predict_proba"):
        explainer.explain_instance(data.data[0], model.predict)
    with pytest.raises(PredictorError, match="ZeroDivisionError"):
        explainer.explain_instance(data.data[0], lambda rows: 1 / 0)
    with pytest.raises(InstanceError, match="must have 4"):
        explainer.explain_instance(data.data[0, :3], model.predict_proba)
    with pytest.raises(ParameterError, match="2 classes were given"):
        LimeTabularExplainer(data.data, class_names=["a", "b"]).explain_instance(data.data[0], model.predict_proba)
    regression = LimeTabularExplainer(data.data, mode="regression")
    for answer in (model.predict_proba, lambda rows: np.full(len(rows), "high")):
        with pytest.raises(PredictorOutputError, match="needed one number a row"):
            regression.explain_instance(data.data[0], answer)
    result = explainer.explain_instance(data.data[0], model.predict_proba, **FEW)
    with pytest.raises(ParameterError, match=r"Label 0 was not explained; these were: \[1\]"):
        result.as_list(0)


# SHAP


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
    made = explained[0].to_shap()
    assert isinstance(made, shap.Explanation)
    assert made.values.tolist() == explained[0].contributions.tolist()
    assert made.base_values + made.values.sum() == pytest.approx(explained[0].prediction, abs=1e-12)
    assert made.data.tolist() == cancer[0].data[0].tolist()
    assert made.feature_names == cancer[0].feature_names.tolist()
    assert made.output_names == "benign"
    made.values[0] = 7  # a copy
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
    colour = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["nurse", "cook", "pilot"], n),
            "member": rng.random(n) < 0.4,
            "red": (colour == 0).astype(int),
            "green": (colour == 1).astype(int),
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


def told(people, row, **keywords):
    frame, risk = people
    explainer = al.Explainer(risk, al.Table(frame, **keywords), output="risk", output_range=(0, 1))
    made = explainer.explain(row, k=6, n_samples=300, n_certify=0).to_shap()
    return made, dict(zip(made.feature_names, made.display_data.tolist(), strict=True))


@pytest.mark.parametrize("within", ["keep", "redraw"])
def test_values_read_well(people, figure, within):
    made, shown = told(people, 5, within=within)
    assert shown["age"] == "missing"
    assert shown["job"] == people[0]["job"][5]
    assert shown["red"] == "1"
    assert shown["since"] == str(people[0]["since"][5].date())
    assert math.isnan(made.data[0])
    assert made.data[5] == people[0]["x"][5]
    for plot in (shap.plots.waterfall, shap.plots.bar):
        figure.clear()
        plot(made, show=False)
        assert "missing = age" in tick_texts(figure)


def test_grouped_and_fixed_columns(people, figure):
    groups = {"colour": ["red", "green"], "place": ["x", "y"]}
    made, shown = told(people, 5, groups=groups, fixed=["since", "member"])
    assert list(shown) == ["age", "job", "colour", "place"]
    assert shown["colour"] == "red"
    assert "=" not in shown["place"]  # SHAP splits there
    shap.plots.waterfall(made, show=False)
    assert "red = colour" in tick_texts(figure)
    made, shown = told(people, 6, fixed=["since"])
    assert made.data[list(shown).index("x")] == 51.25
    assert shown["job"] == made.data[1] == "cook"


def test_an_attribute_that_never_changes_around_one_row_adds_nothing_there(figure):
    rows = np.column_stack([np.r_[np.zeros(99), 1], np.arange(100.0)])
    table = al.Table(rows, names=["rare", "x"], cuts={"rare": [2.0]})
    explainer = al.Explainer(lambda rows: rows[:, 1], table, output="y", task="number")
    one, other = (explainer.explain([value, 40.0], k=3, n_samples=200, n_certify=0) for value in (0.0, 3.0))
    assert [len(one.literals), len(other.literals)] == [1, 2]
    many = to_shap([one, other])
    assert many.feature_names == ["rare", "x"]
    assert many.display_data.tolist() == [["(fixed)", "40"], ["3", "40"]]
    assert many.base_values + many.values.sum(axis=1) == pytest.approx([40, 40], abs=1e-9)
    shap.plots.beeswarm(many, show=False)


def test_the_hypercube(figure):
    names = [("income >= 65k", "income < 65k"), ("DTI <= 30%", "DTI > 30%"), "owner", "owner"]
    explanation = al.explain(lambda z: z @ [0.4, 0.3, 0.2, 0.1], [1, -1, -1, 1], names=names, output="score")
    made = explanation.to_shap()
    assert made.display_data.tolist() == ["true", "false", "-1", "+1"]
    assert made.data.tolist() == [1, -1, -1, 1]
    assert made.values == pytest.approx([0.4, -0.3, -0.2, 0.1])
    shap.plots.waterfall(made, show=False)
    assert "true = income >= 65k" in tick_texts(figure)
    assert to_shap([explanation] * 3).shape == (3, 4)


def test_refusals_of_to_shap(explained, iris):
    data, model = iris
    table = al.Table(data.data)
    of_class = [al.Explainer(model, table).explain(i, n_samples=100, n_certify=0) for i in (0, 55)]
    with pytest.raises(ParameterError, match=r"speak of '0' and '1'.*Say which class"):
        to_shap(of_class)
    with pytest.raises(ParameterError, match="different tables"):
        to_shap([explained[0], of_class[0]])
    label = al.Explainer(model.predict, table, task="label", output="species")
    with pytest.raises(ParameterError, match="labels 0 and 1"):
        to_shap([label.explain(i, n_samples=100, n_certify=0) for i in (0, 55)])
    kept = [explained[0], al.Failure(7, "no such colour", "InstanceError"), al.Failure(9, "late", "RowError")]
    message = r"2 of 3 rows .*rows 7, 9.*no such colour.*to_shap\(many.explained\)"
    with pytest.raises(ParameterError, match=message):
        to_shap(kept)
    assert to_shap(al.Explanations(kept).explained).shape == (1, 30)
    for wrong in ([], 3, [1], None):
        with pytest.raises(ParameterError, match="needed an Explanation"):
            to_shap(wrong)


def test_without_shap_the_extra_is_named(explained, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingDependencyError, match=r"anchorline\[peers\]"):
        explained[0].to_shap()


def test_without_matplotlib_the_extra_is_named(mixed, monkeypatch):
    rows, predict_proba, keywords = mixed
    result = LimeTabularExplainer(rows, **keywords).explain_instance(rows[3], predict_proba, **FEW)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"anchorline\[plot\]"):
        result.as_pyplot_figure()
