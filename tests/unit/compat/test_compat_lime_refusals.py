"""A keyword without an effect raises a warning, and a wrong one raises an error."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from anchorline.compat import LimeTabularExplainer
from anchorline.errors import InstanceError, ParameterError, PredictorError, PredictorOutputError

FEW = {"num_samples": 400}


@pytest.mark.parametrize(
    ("keywords", "instead"),
    [
        ({"kernel_width": 3}, "drawn close to the row"),
        ({"kernel": lambda d, kernel_width: d}, "drawn close to the row"),
        ({"verbose": True}, "print"),
        ({"sample_around_instance": True}, "keeps about half of the row's own values"),
        ({"feature_selection": "lasso_path"}, "the best sum of at most num_features facts"),
        ({"feature_selection": "none"}, "the best sum of at most num_features facts"),
        ({"discretize_continuous": False}, "a weight belongs to a fact"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_warnings_of_the_constructor(iris, keywords, instead):
    with pytest.warns(UserWarning, match=instead) as caught:
        LimeTabularExplainer(iris[0].data, **keywords)
    assert next(iter(keywords)) in str(caught[0].message)
    assert len(caught) == 1
    assert caught[0].filename == __file__


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
        ({"discretizer": "tree"}, r"discretizer is 'tree'.* 'decile', .*Table\(X, cuts="),
        ({"discretizer": "entropy"}, r"needs the class of each of the 150 rows. Type training_labels=y"),
        ({"discretizer": "entropy", "training_labels": [0, 1]}, "of each of the 150 rows"),
        ({"training_data_stats": {"means": [1]}}, "lacks what LIME's has for column 0 .*'feature_values'.* 1,000"),
        ({"feature_names": ["a"]}, "names has 1 entries"),
        ({"feature_names": list("aacd")}, "must differ"),
        ({"categorical_features": [4]}, "0 to 3"),
        ({"categorical_features": [True, False, False, False]}, "a column's number"),
        (
            {"categorical_features": 0},
            r"categorical_features is 0, but it must be a list. Type categorical_features=\[0\]",
        ),
        ({"categorical_features": np.array(0)}, "categorical_features is array"),
        ({"categorical_features": "ab", "feature_names": list("abcd")}, "categorical_features is 'ab'"),
        ({"categorical_names": [["a", "b"]]}, "categorical_names is a list"),
        ({"categorical_names": {0: None}}, r"categorical_names\[0\] is None, .* Type categorical_names={0: \["),
        ({"categorical_names": {0: "no"}}, r"categorical_names\[0\] is 'no'"),
        ({"feature_names": "abcd"}, "feature_names is 'abcd', but it must be a list"),
        ({"class_names": "benign"}, "it must be a list"),
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


def test_a_frame_has_no_cuts_by_class():
    with pytest.raises(ParameterError, match="needs an array of numbers"):
        LimeTabularExplainer(pd.DataFrame({"a": [1, 2, 3]}), discretizer="decile")


def test_the_training_data_must_be_a_table():
    with pytest.raises(ParameterError, match="2-D array"):
        LimeTabularExplainer(np.zeros(3))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_features": 0}, "num_features is 0"),
        ({"num_features": 2.5}, "num_features is 2.5"),
        ({"num_samples": 0}, "num_samples is 0, .*>= 32. Type num_samples=5000"),
        ({"labels": 1}, r"Type labels=\(1,\)"),
        ({"labels": [3]}, "0 to 2"),
        ({"labels": ["setosa"]}, "0 to 2.$"),
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
        with pytest.raises(PredictorOutputError, match="must return one number per row"):
            regression.explain_instance(data.data[0], answer)
    result = explainer.explain_instance(data.data[0], model.predict_proba, **FEW)
    with pytest.raises(ParameterError, match=r"Label 0 was not explained. The explained labels are \[1\]"):
        result.as_list(0)


def test_several_rows_are_refused(iris):
    data, model = iris
    explainer = LimeTabularExplainer(data.data)
    for rows in (
        data.data[:2],
        data.data[:2].tolist(),
        pd.DataFrame(data.data[:2]),
        sparse.csr_matrix(data.data[:2]),
    ):
        with pytest.raises(InstanceError, match=r"must be one row|must have one"):
            explainer.explain_instance(rows, model.predict_proba)
    one = explainer.explain_instance(data.data[:1], model.predict_proba, **FEW)
    assert one.as_list() == explainer.explain_instance(data.data[0], model.predict_proba, **FEW).as_list()


def test_a_wrong_mode_is_named(iris, diabetes):
    data, model = diabetes
    with pytest.raises(PredictorOutputError, match="a number to explain, type mode='regression'"):
        LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict)
    data, model = iris
    with pytest.raises(PredictorOutputError, match="class probabilities, type mode='classification'"):
        LimeTabularExplainer(data.data, mode="regression").explain_instance(data.data[0], model.predict_proba)


def test_misspelled_keywords_are_named(iris):
    data, model = iris
    with pytest.raises(TypeError, match=r"LimeTabularExplainer\(\) .* 'class_name'. Did you mean 'class_names'"):
        LimeTabularExplainer(data.data, class_name=data.target_names)
    with pytest.raises(TypeError, match=r"explain_instance\(\) .* 'num_feature'. Did you mean 'num_features'"):
        LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, num_feature=2)
