"""The same calls to LIME and to `LimeTabularExplainer` give results of the same form."""

import inspect

import numpy as np
import pytest
from lime import lime_tabular

from anchorline.compat import LimeTabularExplainer

LIMES = {"lime": lime_tabular.LimeTabularExplainer, "anchorline": LimeTabularExplainer}
FEW = {"num_samples": 400}

both = pytest.mark.parametrize("explainer_type", LIMES.values(), ids=LIMES)


@pytest.mark.parametrize("method", ["__init__", "explain_instance"])
def test_keywords_and_defaults_are_limes(method):
    theirs = inspect.signature(getattr(lime_tabular.LimeTabularExplainer, method)).parameters
    ours = inspect.signature(getattr(LimeTabularExplainer, method)).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert {name: p.default for name, p in theirs.items()}.items() <= {
        n: p.default for n, p in ours.items()
    }.items()
    assert set(ours) - set(theirs) <= {"sampling_method"}  # only in LIME's newest source


@both
def test_binary_classification(explainer_type, cancer):
    data, model = cancer
    explainer = explainer_type(
        data.data, feature_names=data.feature_names, class_names=data.target_names, random_state=0
    )
    result = explainer.explain_instance(data.data[0], model.predict_proba, num_features=5, **FEW)
    assert 0 < len(result.as_list()) <= 5
    assert all(type(text) in (str, np.str_) and type(weight) is float for text, weight in result.as_list())
    assert list(result.as_map()) == list(result.local_exp) == list(result.intercept) == [1]
    assert [w for _, w in result.as_map()[1]] == [w for _, w in result.as_list()]
    assert all(0 <= column < 30 for column, _ in result.as_map()[1])
    assert np.shape(result.local_pred) == (1,)
    assert isinstance(result.score, float)
    assert 0 < result.score <= 1
    assert result.predict_proba.tolist() == model.predict_proba(data.data[:1])[0].tolist()
    assert result.available_labels() == [1]
    assert result.top_labels is None
    sizes = [abs(weight) for _, weight in result.as_list()]
    assert sizes == sorted(sizes, reverse=True)


@both
def test_columns_are_the_training_datas(explainer_type, mixed):
    """`as_map` numbers the columns of the training data, and `as_list` names the same columns."""
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
    assert 0 < len(result.as_list()) <= 4
    assert result.as_list() == result.as_list(label=1) == result.as_list(label=0)
    assert sorted(result.as_map()) == sorted(result.intercept) == [0, 1]
    assert result.as_map()[0] == [(column, -weight) for column, weight in result.as_map()[1]]
    assert result.predicted_value == model.predict(data.data[:1])[0]
    assert np.shape(result.local_pred) == (1,)


def test_limes_weights_are_our_effects():
    """LIME's weight is the change of the sum when a fact is broken; ours is what a fact adds to the average."""
    rows = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(float)
    results = [
        explainer_type(rows, mode="regression", categorical_features=[0, 1, 2], random_state=0).explain_instance(
            rows[0] * 0 + 1, lambda rows: rows @ [3, 4, 0] + 5, num_features=2
        )
        for explainer_type in LIMES.values()
    ]
    lime, ours = results
    explanation = ours.explanations[1]
    assert dict(lime.as_map()[1]) == pytest.approx({0: 3, 1: 4}, abs=0.05)
    assert sorted(explanation.effects.tolist()) == pytest.approx([3, 4])
    replaced = 2 / (1 + np.e)  # with sigma = 1
    broken = replaced * (rows == 0).mean(axis=0)
    assert dict(ours.as_map()[1]) == pytest.approx({0: 3 * broken[0], 1: 4 * broken[1]})
    assert ours.intercept[1] == pytest.approx(12 - 3 * broken[0] - 4 * broken[1])
