"""What `LimeTabularExplainer` adds to LIME: sums that add up, explanations, frames and seeds."""

import functools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from anchorline.compat import LimeTabularExplainer
from anchorline.errors import ParameterError
from anchorline.verify import verify

FEW = {"num_samples": 400}


def adds_up(result, label, output):
    return result.intercept[label] + sum(w for _, w in result.as_map()[label]) == pytest.approx(output, abs=1e-12)


def test_weights_add_up_to_the_models_own_output(iris, diabetes):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, class_names=data.target_names)
    result = explainer.explain_instance(data.data[77], model.predict_proba, labels=range(3), **FEW)
    for label in range(3):
        assert adds_up(result, label, model.predict_proba(data.data[77:78])[0, label])
        assert result.explanations[label].output.name == data.target_names[label]
    assert result.local_pred == result.predict_proba[2]  # of the label explained last, as in LIME
    assert result.score == result.explanations[2].fit.r2
    data, model = diabetes
    result = LimeTabularExplainer(data.data, mode="regression").explain_instance(
        data.data[5], model.predict, **FEW
    )
    assert adds_up(result, 1, model.predict(data.data[5:6])[0])
    assert result.local_pred == result.predicted_value


def test_every_label_has_an_explanation_that_can_be_verified(mixed):
    rows, predict_proba, keywords = mixed
    explainer = LimeTabularExplainer(rows, **keywords)
    result = explainer.explain_instance(rows[3], predict_proba, num_features=3)
    explanation = result.explanations[1]
    assert explanation.is_proven
    assert len(explanation.facts) <= 3
    assert explanation.settings["k"] == 3
    assert verify(explanation, predict_proba, explainer.table)


@pytest.mark.parametrize("num_samples", [32, 400, 5000])
def test_num_samples_is_the_most_rows_that_the_model_is_asked_about(mixed, num_samples):
    rows, predict_proba, keywords = mixed
    asked = []

    def counted(rows):
        asked.append(len(rows))
        return predict_proba(rows)

    result = LimeTabularExplainer(rows, **keywords).explain_instance(rows[3], counted, num_samples=num_samples)
    assert result.explanations[1].queries.total <= num_samples
    assert sum(asked) == result.explanations[1].queries.total + 1  # the row, to choose labels


def test_the_score_is_a_share_of_the_fresh_neighbors_change(mixed):
    rows, predict_proba, keywords = mixed
    explainer = LimeTabularExplainer(rows, **keywords)
    result = explainer.explain_instance(rows[3], predict_proba)
    assert result.score == result.explanations[1].fit.r2
    assert 0.7 < result.score <= 1
    constant = explainer.explain_instance(rows[3], lambda rows: np.full((len(rows), 2), 0.5), **FEW)
    assert {weight for _, weight in constant.as_list()} == {0.0}
    assert constant.explanations[1].verdict.value == "robust"


def test_class_names_are_the_models_own_where_it_tells_them(iris):
    data, _ = iris
    model = LogisticRegression(max_iter=1000).fit(data.data, data.target_names[data.target])
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    assert result.explanations[1].output.name == "versicolor"
    without_classes = functools.partial(model.predict_proba)
    wrapped = LimeTabularExplainer(data.data).explain_instance(data.data[0], without_classes, **FEW)
    assert wrapped.explanations[1].output.name == "class 1"
    assert wrapped.as_list() == result.as_list()


@pytest.mark.parametrize("to_frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_are_taken_as_they_are(to_frame, mixed):
    rows, predict_proba, _ = mixed
    jobs = np.array(["nurse", "cook", "pilot"])[rows[:, 1].astype(int)]
    frame = to_frame({"age": rows[:, 0], "job": jobs, "sex": rows[:, 2]})
    types_received = []

    def predict_frame(frame):
        types_received.append(type(frame))
        job = (np.asarray(frame["job"]) == "cook").astype(float)
        return predict_proba(np.column_stack([frame["age"], job, frame["sex"]]))

    explainer = LimeTabularExplainer(frame, categorical_features=["sex"], categorical_names={2: {0: "f", 1: "m"}})
    row = {"age": 51.0, "job": "cook", "sex": 1.0}
    result = explainer.explain_instance(row, predict_frame, num_features=3, **FEW)
    assert {text for text, _ in result.as_list()} == {"age >= 40", "job = cook", "sex = m"}
    assert set(types_received) == {to_frame}
    with pytest.raises(ParameterError, match="frame's own names"):
        LimeTabularExplainer(frame, feature_names=["a", "b", "c"])


@pytest.mark.parametrize("model", [LogisticRegression(), GradientBoostingClassifier(n_estimators=5)], ids=repr)
def test_a_model_of_frames_gets_frames_from_an_array(mixed, model):
    """Most users of LIME pass the values of the frame on which they fitted their model."""
    rows, _, keywords = mixed
    frame = pd.DataFrame(rows, columns=keywords["feature_names"])
    parts = [(StandardScaler(), ["pay", "age"]), (OneHotEncoder(), ["job"])]
    by_name = make_column_transformer(*parts, remainder="passthrough")  # dropped columns are held fixed
    pipeline = make_pipeline(by_name, model).fit(frame, rows[:, 1] + rows[:, 0] > 41)
    explainer = LimeTabularExplainer(frame.to_numpy(), **keywords)
    ours = explainer.explain_instance(rows[3], pipeline.predict_proba, **FEW)  # warnings are errors
    own = LimeTabularExplainer(frame, **keywords).explain_instance(frame.iloc[3], pipeline.predict_proba, **FEW)
    assert ours.as_list() == own.as_list()
    assert ours.explanations[1].space == own.explanations[1].space
    assert pickle.loads(pickle.dumps(explainer)).table.names == explainer.table.names
    types_received = []

    def predict_proba(rows):
        types_received.append(type(rows))
        return pipeline.predict_proba(pd.DataFrame(rows, columns=frame.columns))

    explainer.explain_instance(rows[3], predict_proba, **FEW)
    assert set(types_received) == {np.ndarray}  # a function gets what the training data is


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


def test_results_print_well(iris):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, class_names=data.target_names)
    result = explainer.explain_instance(data.data[70], model.predict_proba, top_labels=2, **FEW)
    first, second = (result.explanations[label] for label in result.available_labels())
    assert str(result) == f"{first}\n\n{second}"
    assert result._repr_html_() == first._repr_html_() + second._repr_html_()
    assert repr(result) == f"LimeExplanation({{1: {result.explanations[1]!r}, 2: {result.explanations[2]!r}}})"


def test_results_pickle(mixed):
    rows, predict_proba, keywords = mixed
    result = LimeTabularExplainer(rows, **keywords).explain_instance(rows[3], predict_proba, **FEW)
    again = pickle.loads(pickle.dumps(result))
    assert again.as_list() == result.as_list()
    assert again.explanations == result.explanations


@pytest.mark.parametrize("class_names", [["a", "b"], "y", np.array(["a", "b"])])
def test_class_names_mean_nothing_in_a_regression(diabetes, class_names):
    data, model = diabetes
    explainer = LimeTabularExplainer(data.data, mode="regression", class_names=class_names)
    result = explainer.explain_instance(data.data[0], model.predict, **FEW)
    assert result.explanations[1].output.name == "f(x)"


def test_a_series_without_names_is_a_row_of_an_array(iris):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, feature_names=data.feature_names)
    weights = [
        explainer.explain_instance(row, model.predict_proba, **FEW).as_list()
        for row in (data.data[0], pd.Series(data.data[0]), pd.Series(data.data[0], index=data.feature_names))
    ]
    assert weights[0] == weights[1] == weights[2]
