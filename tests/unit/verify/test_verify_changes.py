"""Verification of changes: honest ones hold, forged ones do not, other models are found out."""

import json

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from helpers.sealing import resealed

RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(RNG.normal(size=(900, 3)).round(3), columns=["a", "b", "c"])


def model(frame):
    return np.asarray(frame["a"] + frame["b"] + 0.5 * np.sin(40 * frame["a"]) + 0.1 * frame["c"])


def explainer():
    return al.Explainer(model, FRAME, task="number", threshold=0.4)


ROW = int(np.argsort(model(FRAME))[300])
CHANGES = explainer().changes(ROW, n_measure=50)
PAIRS = explainer().changes(ROW, n_measure=50, within={"a": (None, 0.95), "b": (None, -0.5)})


def test_honest_changes_hold():
    assert not CHANGES[0].reliability.exact
    for changes in (CHANGES, PAIRS, CHANGES.to_json()):
        answer = (
            al.verify(changes, model, FRAME, seed=1) if isinstance(changes, str) else changes.verify(model, FRAME)
        )
        assert answer.holds, str(answer)
        assert str(answer).startswith("The list of changes holds: every figure was reproduced")
    assert PAIRS.fewest == 2
    assert al.verify(CHANGES, model, FRAME, seed=4).holds


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (
            lambda body: body["options"][0]["moves"][0].update(after=body["instance"][0]),
            "does not give the stated",
        ),
        (lambda body: body["options"][0].update(output=5.0), "does not give the stated"),
        (lambda body: body["options"][0]["reliability"].update(value=1.0, high=1.0), "options is not"),
        (lambda body: body["options"][0].update(cost=0.0), "options is not"),
        (lambda body: body["options"].pop(0), "options is not"),
        (lambda body: body["levels"][0].update(n_tried=9999, n_total=9999), "levels is not"),
        (lambda body: body["parameters"].update(seed=7), "options is not"),
        (lambda body: body.update(prediction=3.0), "another output"),
        (lambda body: body["options"][0]["realism"].update(share=1.0), "options is not"),
    ],
)
def test_forgeries_do_not_hold(forge, words):
    body = json.loads(CHANGES.to_json())
    forge(body)
    answer = al.verify(resealed(body), model, FRAME, seed=1)
    assert not answer.holds
    assert words in str(answer)


def test_other_models_and_spaces_are_found_out():
    assert "another output" in str(CHANGES.verify(lambda frame: model(frame) + 0.1, FRAME, seed=1))
    assert "another space" in str(CHANGES.verify(model, FRAME.iloc[1:], seed=1))
    assert "space is needed" in str(CHANGES.verify(model))

    def other_elsewhere(frame):
        return np.where(np.asarray(frame["a"]) == FRAME["a"][ROW], model(frame), 0.0)

    assert not CHANGES.verify(other_elsewhere, FRAME, seed=1).holds

    def failing(frame):
        raise RuntimeError("down")

    assert "could not be queried" in str(CHANGES.verify(failing, FRAME, seed=1))


def test_tampered_texts_do_not_hold():
    assert al.verify(CHANGES.to_json().replace("0", "1", 1), model, FRAME).outcome.name == "DOES_NOT_HOLD"
    assert al.verify('{"kind": "changes"}', model, FRAME).outcome.name == "CANNOT_TELL"
