"""The difference of two class scores as the explained output: "approved rather than declined"."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.verify import verify

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
    e = Explainer(MODEL, FRAME, output=PAIR).explain(0, queries=400)
    assert e.output.name == "approved rather than declined"
    assert e.prediction == pytest.approx(difference(FRAME)[0], abs=1e-12)
    assert e.base + e.contributions.sum() == pytest.approx(e.prediction, abs=1e-12)
    assert (e.output.kind, e.output.threshold) == ("threshold", 0.0)
    assert (e.output.low, e.output.high) == (-1.0, 1.0)
    assert e.holds is not None  # of the decision "at least 0"
    assert e.output.decision == ("at or above 0" if e.prediction >= 0 else "below 0")


def test_the_other_direction_is_the_negative():
    there = Explainer(MODEL, FRAME, output=PAIR).explain(5, queries=400)
    back = Explainer(MODEL, FRAME, output=PAIR[::-1]).explain(5, queries=400)
    np.testing.assert_allclose(there.contributions, -back.contributions, atol=1e-6)


def test_it_is_the_same_as_the_difference_by_hand():
    options = {"output": "approved rather than declined", "task": "number", "output_range": (-1, 1)}
    by_hand = Explainer(difference, FRAME, threshold=0.0, **options)
    ours = Explainer(MODEL, FRAME, output=PAIR).explain(7, queries=400)
    np.testing.assert_allclose(ours.contributions, by_hand.explain(7, queries=400).contributions, atol=1e-9)


def test_functions_need_their_classes():
    e = Explainer(MODEL.predict_proba, FRAME, output=PAIR).explain(1, queries=400)
    assert e.output.name == "approved rather than declined"

    def ask(frame):
        return MODEL.predict_proba(frame)

    given = Explainer(ask, FRAME, output=PAIR, classes=list(MODEL.classes_)).explain(1, queries=400)
    assert given.prediction == e.prediction
    with pytest.raises(ParameterError, match="two labels"):
        Explainer(ask, FRAME, output=PAIR)


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
        Explainer(MODEL, FRAME, output=output)


def test_it_is_verified_with_the_same_pair():
    e = Explainer(MODEL, FRAME, output=PAIR).explain(0, queries=400)
    assert verify(e.to_json(), MODEL, FRAME, seed=1).holds
    choices = replace(e.output.choices, output=PAIR[::-1])
    assert not verify(replace(e, output=replace(e.output, choices=choices)), MODEL, FRAME, seed=1).holds
