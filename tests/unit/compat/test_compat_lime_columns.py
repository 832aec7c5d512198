"""LIME's attributes, sparse matrices and picks: the same columns."""

import warnings

import numpy as np
import pandas as pd
import pytest
from lime.submodular_pick import SubmodularPick
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from anchorline.compat import LimeTabularExplainer

FEW = {"num_samples": 400}


def test_columns_without_names():
    """'0 >= 0.66' looks like a statement about the number 0."""
    rows = np.random.default_rng(0).normal(size=(200, 2))
    explainer = LimeTabularExplainer(rows, mode="regression")
    result = explainer.explain_instance(rows[0], lambda rows: rows[:, 0], **FEW)
    assert explainer.feature_names == ["0", "1"]
    assert result.as_list()[0][0].split()[0 if "<=" not in result.as_list()[0][0] else 2] == "x0"
    frame = pd.DataFrame({"age": rows[:, 0], "pay": rows[:, 1]})
    assert LimeTabularExplainer(frame).feature_names == ["age", "pay"]


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_a_sparse_table_gives_sparse_rows_to_the_model(make):
    rows = np.random.default_rng(0).poisson(0.4, (300, 6)).astype(float)
    classifier = FixedThresholdClassifier(LogisticRegression(), threshold=0.7, pos_label="more")
    model = classifier.fit(rows, np.where(rows[:, 0] > rows[:, 1], "more", "less"))
    dense = LimeTabularExplainer(rows).explain_instance(rows[3], model.predict_proba, **FEW)
    received = set()

    def predict_proba(given):
        received.add(type(given))
        return model.predict_proba(given.toarray())

    table = make(rows)
    row = table[3] if make is sparse.csr_matrix else table[[3], :]
    for predict_fn in (predict_proba, model.predict_proba):
        result = LimeTabularExplainer(table).explain_instance(row, predict_fn, **FEW)
        for own, other in zip(result.as_list(), dense.as_list(), strict=True):  # the last bits differ
            assert own == (other[0], pytest.approx(other[1], rel=1e-12))
    assert received == {make}
    assert result.explanations[1].output.classes == ("less", "more")  # the method's own
    for label, explanation in result.explanations.items():  # also in the model's own decisions
        assert explanation.verdict is dense.explanations[label].verdict
        assert explanation.holds == dense.explanations[label].holds


def test_submodular_pick_takes_our_results(iris):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, feature_names=data.feature_names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picked = SubmodularPick(
            explainer,
            data.data[::30],
            model.predict_proba,
            "full",
            num_exps_desired=2,
            num_features=2,
            num_samples=200,
        )
    assert len(picked.sp_explanations) == 2
