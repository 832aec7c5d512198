"""The difference of two class scores as the explained output: "approved rather than declined"."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import anchorline as al
from anchorline.errors import ParameterError

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(RNG.normal(size=(300, 3)), columns=["a", "b", "c"])
LABELS = np.array(["declined", "open", "approved"])[
    np.digitize(FRAME["a"] - FRAME["b"] + 0.3 * RNG.normal(size=300), [-0.5, 0.5])
]
MODEL = LogisticRegression().fit(FRAME, LABELS)
PAIR = ("approved", "declined")


def difference(frame):
    scores = pd.DataFrame(MODEL.predict_proba(frame), columns=MODEL.classes_)
    return (scores["approved"] - scores["declined"]).to_numpy()


def test_the_difference_is_explained_and_adds_up():
    e = al.Explainer(MODEL, FRAME, output=PAIR).explain(0, n_samples=500)
    assert e.output == "approved rather than declined"
    assert e.prediction == pytest.approx(difference(FRAME)[0], abs=1e-12)
    assert e.intercept + e.contributions.sum() == pytest.approx(e.prediction, abs=1e-12)
    assert tuple(e.parameters["output_range"]) == (-1.0, 1.0)
    assert e.certificate.stability is not None  # of the decision "at least 0"


def test_the_other_direction_is_the_negative():
    there = al.Explainer(MODEL, FRAME, output=PAIR).explain(5, n_samples=500)
    back = al.Explainer(MODEL, FRAME, output=PAIR[::-1]).explain(5, n_samples=500)
    np.testing.assert_allclose(there.contributions, -back.contributions, atol=1e-6)


def test_it_is_the_same_as_the_difference_by_hand():
    options = {"output": "approved rather than declined", "task": "number", "output_range": (-1, 1)}
    by_hand = al.Explainer(difference, FRAME, threshold=0.0, **options)
    ours = al.Explainer(MODEL, FRAME, output=PAIR).explain(7, n_samples=500)
    np.testing.assert_allclose(ours.contributions, by_hand.explain(7, n_samples=500).contributions, atol=1e-9)


def test_functions_need_their_classes():
    e = al.Explainer(MODEL.predict_proba, FRAME, output=PAIR).explain(1, n_samples=200)
    assert e.output == "approved rather than declined"

    def ask(frame):
        return MODEL.predict_proba(frame)

    given = al.Explainer(ask, FRAME, output=PAIR, classes=list(MODEL.classes_)).explain(1, n_samples=200)
    assert given.prediction == e.prediction
    with pytest.raises(ParameterError, match="two labels"):
        al.Explainer(ask, FRAME, output=PAIR)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (("approved",), "two labels"),
        (("approved", "approved"), "must differ"),
        (("approved", "refused"), "'refused'; the model's classes are"),
    ],
)
def test_wrong_pairs_are_refused(output, words):
    with pytest.raises(ParameterError, match=words):
        al.Explainer(MODEL, FRAME, output=output)


def test_it_is_verified_with_the_same_pair():
    e = al.Explainer(MODEL, FRAME, output=PAIR).explain(0, n_samples=300)
    assert al.verify(e.to_json(), MODEL, FRAME, seed=1).holds
    forged = dict(e.parameters) | {"contrast": list(PAIR[::-1])}
    assert not al.verify(replace(e, parameters=forged), MODEL, FRAME, seed=1).holds
