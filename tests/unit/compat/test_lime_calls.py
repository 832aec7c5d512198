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
    # LIME's intervals include their upper end. Here a value that many rows share is an interval of its own.
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


def test_a_broken_fact_counts_with_the_opposite_sign():
    """LIME's weight is the whole change of the sum when a fact is broken, and ours is half of it."""
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
