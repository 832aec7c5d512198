"""Arguments in the wrong order, of the wrong kind or with a misspelled name: the message says what to type."""

import inspect

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.verify import Outcome

FRAME = pd.DataFrame({"age": np.arange(20, 60), "debt": np.arange(40) % 7})
CHEAP = {"k": 2, "n_samples": 200, "n_certify": 0}


def model(frame):
    return np.tanh((np.asarray(frame["age"]) - 40) / 10 - np.asarray(frame["debt"]) / 7)


class Fitted:
    def predict(self, frame):
        return model(frame)


def explainer():
    return al.Explainer(model, al.Table(FRAME), output_range=(-1, 1))


# --- the order of arguments --------------------------------------------------------------------------


@pytest.mark.parametrize("space", [al.Table(FRAME), FRAME, FRAME.to_numpy(), al.Hypercube()])
@pytest.mark.parametrize("predict", [model, Fitted()])
def test_a_table_before_the_model_is_named(space, predict):
    with pytest.raises(
        ParameterError, match=r"first argument is of type (Table|DataFrame|ndarray|Hypercube).*"
    ) as caught:
        al.Explainer(space, predict)
    assert "the model must come first" in str(caught.value)
    assert "Type Explainer(model, table)." in str(caught.value)


def test_a_model_that_has_a_shape_is_a_model():
    predict = Fitted()
    predict.shape = (3, 1)
    assert al.Explainer(predict, FRAME).model is predict


def test_verify_names_the_order_of_its_arguments():
    e = explainer().explain(3, **CHEAP)
    for swapped in (e, e.to_json()):
        with pytest.raises(
            ParameterError, match=r"the explanation must come first.*Type verify\(explanation, model"
        ):
            al.verify(model, swapped)
    with pytest.raises(ParameterError, match=r"explanation is a dict; it must be an Explanation, or its JSON"):
        al.verify({}, model)
    with pytest.raises(ParameterError, match="second of type Explanation"):
        al.verify(e.to_json(), e)


def test_verify_takes_a_bare_frame_as_a_table():
    e = explainer().explain(3, **CHEAP)
    assert al.verify(e, model, FRAME).outcome is Outcome.HOLDS
    assert e.verify(model, FRAME).outcome is Outcome.HOLDS
    assert al.verify(e, model, FRAME[:30]).outcome is Outcome.DOES_NOT_HOLD
    with pytest.raises(ParameterError, match=r"anchorline.io.read_table"):
        al.verify(e, model, "train.csv")


# --- misspelled keywords -----------------------------------------------------------------------------

MISSPELLED = [
    (lambda: al.Table(FRAME, bins=5), r"Table\(\) got an unexpected keyword 'bins'. Did you mean 'n_bins'\?"),
    (lambda: al.Table(FRAME, Fixed=["age"]), r"'Fixed'. Did you mean 'fixed'\?"),
    (
        lambda: al.Table(FRAME, zzz=1),
        r"'zzz'. The keywords are categorical, cuts, donors, draw, fixed, frame, groups, literals, n_bins",
    ),
    (
        lambda: al.Explainer(model, FRAME, outputs="a"),
        r"Explainer\(\) got an .* 'outputs'. Did you mean 'output'\?",
    ),
    (lambda: al.Explainer(model, FRAME, Threshold=0.5), r"Did you mean 'threshold'\?"),
    (lambda: explainer().explain(3, K=4), r"explain\(\) got an unexpected keyword 'K'. Did you mean 'k'\?"),
    (lambda: explainer().explain(3, N_Sample=4), r"Did you mean 'n_samples'\?"),
    (lambda: explainer().explain_many(FRAME[:2], K=4), r"Did you mean 'k'\?"),
    (lambda: al.explain(lambda z: z[:, 0], [1, 1], Seed=1), r"Did you mean 'seed'\?"),
    (lambda: al.explain(lambda z: z[:, 0], [1, 1], treshold=1), r"Did you mean 'threshold'\?"),
]


@pytest.mark.parametrize(("call", "message"), MISSPELLED)
def test_a_misspelled_keyword_is_a_type_error_that_names_the_right_one(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_signatures_show_the_keywords():
    assert "n_bins" in inspect.signature(al.Table).parameters
    assert "threshold" in inspect.signature(al.Explainer).parameters
    assert not [p for p in inspect.signature(al.Explainer).parameters.values() if p.kind is p.VAR_KEYWORD]
