"""Verification of changes: honest ones hold, forged ones do not, other models are found out."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from anchorline.changes.result import Changes
from anchorline.errors import FormatError, TamperedError
from anchorline.explainer import Explainer
from anchorline.spaces.regions import Image
from anchorline.verify import verify
from helpers.sealing import resealed

RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(RNG.normal(size=(900, 3)).round(3), columns=["a", "b", "c"])


def model(frame):
    return np.asarray(frame["a"] + frame["b"] + 0.5 * np.sin(40 * frame["a"]) + 0.1 * frame["c"])


def explainer(model=model, frame=FRAME):
    return Explainer(model, frame, task="number", threshold=0.4)


ROW = int(np.argsort(model(FRAME))[300])
CHANGES = explainer().changes(ROW, n_measure=50)
PAIRS = explainer().changes(ROW, n_measure=50, allowed={"a": (None, 0.95), "b": (None, -0.5)})


def test_honest_changes_hold():
    assert not CHANGES[0].share.is_exact
    for changes in (CHANGES, PAIRS, CHANGES.to_json()):
        answer = verify(changes, model, FRAME, seed=1)
        assert answer.holds, str(answer)
        assert str(answer).startswith("The list of changes holds: every figure was reproduced")
    assert PAIRS.fewest == 2
    assert verify(CHANGES, model, FRAME, seed=4).holds


@pytest.mark.parametrize(
    ("forge", "where"),
    [
        (lambda body: body["options"][0]["share"].update(value=1.0, high=1.0), "options[0].share.high"),
        (lambda body: body["options"][0]["moves"][0]["bound"].update(low=-9.0), "options[0].moves[0].bound.low"),
        (lambda body: body["options"][0].update(cost=0.0), "options[0].cost"),
        (lambda body: body["options"].pop(0), "options"),
        (lambda body: body["levels"][0].update(n_tried=9999, n_total=9999), "levels[0].n_total"),
        (lambda body: body["settings"].update(seed=7), "options[0].share.high"),
        (lambda body: body.update(n_queries=3), "n_queries"),
        (lambda body: body.update(n_attributes=2), "n_attributes"),
        (lambda body: body["labels"].update(a={"1": "one"}), "labels"),
        (lambda body: body["held"].append("d"), "held"),
        (lambda body: body["output"].update(unit="USD"), "output.unit"),
        (lambda body: body["options"][0]["realism"].update(share=1.0), "options[0].realism.share"),
    ],
)
def test_forgeries_do_not_hold(forge, where):
    body = json.loads(CHANGES.to_json())
    forge(body)
    answer = verify(resealed(body), model, FRAME, seed=1)
    assert answer.outcome.name == "DOES_NOT_HOLD"
    assert where in {reason.where for reason in answer.reasons}
    assert all(len(str(reason)) < 300 for reason in answer.reasons)


@pytest.mark.parametrize(
    ("forge", "code"),
    [
        (lambda body: body["options"][0]["moves"][0].update(after=body["instance"][0]), "other_example"),
        (lambda body: body["options"][0].update(output=5.0), "other_example"),
        (lambda body: body.update(prediction=0.1), "other_model"),
        (lambda body: body["space"].update(fingerprint="table:0"), "other_space"),
    ],
)
def test_forged_answers_do_not_hold(forge, code):
    body = json.loads(CHANGES.to_json())
    forge(body)
    assert verify(resealed(body), model, FRAME, seed=1).codes == (code,)


def test_other_models_and_spaces_are_found_out():
    assert verify(CHANGES, lambda frame: model(frame) + 0.1, FRAME, seed=1).codes == ("other_model",)
    assert verify(CHANGES, model, FRAME.iloc[1:], seed=1).codes == ("other_space",)

    def elsewhere(frame):
        return np.where(np.asarray(frame["a"]) == FRAME["a"][ROW], model(frame), 0.0)

    assert not verify(CHANGES, elsewhere, FRAME, seed=1).holds

    def failing(frame):
        raise RuntimeError("down")

    assert verify(CHANGES, failing, FRAME, seed=1).codes == ("model_failed",)


def test_trees_that_cannot_be_read_leave_it_open():
    rows = FRAME.to_numpy()
    forest = RandomForestRegressor(5, max_depth=4, random_state=0, n_jobs=1).fit(rows, model(FRAME))
    found = Explainer(forest, rows, threshold=0.4).changes(rows[ROW])
    assert any(level.by_leaves for level in found.levels)
    assert verify(found, forest, rows, seed=1).holds
    assert verify(found, lambda rows: 1 * forest.predict(rows), rows, seed=1).codes == ("no_trees",)


def test_a_share_that_the_verifier_draws_otherwise_is_contradicted():
    """The maker's model turns everywhere on the recorded draws, and nowhere else."""
    recorded = set()

    class Remembering:
        is_open = True

        def __call__(self, frame):
            keys = [tuple(row) for row in frame.to_numpy().tolist()]
            recorded.update(keys if self.is_open else ())
            new = np.array([key not in recorded for key in keys])
            return np.where(new, -1.0, model(frame))

    dishonest = Remembering()
    limits = {"a": (None, 0.95), "b": (None, -0.5)}
    found = Explainer(dishonest, FRAME, task="number", threshold=0.4).changes(ROW, n_measure=300, allowed=limits)
    dishonest.is_open = False
    assert not found[0].share.is_exact
    answer = verify(found, dishonest, FRAME, seed=1)
    assert "contradicted" in answer.codes


def test_an_image_that_is_not_recorded_is_passed():
    image = np.linspace(0.0, 1.0, 64).reshape(8, 8)
    space = Image("grid", 0, n_segments=4)

    def bright(images):
        return images.mean(axis=(1, 2))

    found = Explainer(bright, space, threshold=0.4).changes(image)
    assert verify(found, bright, space, seed=1).codes == ("instance_needed",)
    assert verify(found, bright, space, seed=1, instance=image).holds
    assert verify(found, bright, space, seed=1, instance=image[::-1]).codes == ("other_instance",)


def test_tampered_texts_do_not_hold():
    text = CHANGES.to_json().replace('"n_queries":', '"n_queries":1')
    assert verify(text, model, FRAME).outcome.name == "DOES_NOT_HOLD"
    assert verify('{"kind": "changes"}', model, FRAME).outcome.name == "CANNOT_TELL"
    with pytest.raises(TamperedError):
        Changes.from_json(text)
    with pytest.raises(FormatError):
        Changes.from_json('{"kind": "changes"}')


def test_the_kindest_of_many_seeds_is_contradicted_by_more_draws():
    """Its limits miss the true share, but not by more than those of as few fresh draws are wide."""
    given, own = {"n": 1, "allowed": {"a": (None, 0.95), "b": (None, -0.5)}}, explainer()
    shares = [own.changes(ROW, n_measure=50, seed=seed, **given)[0].share for seed in range(150)]
    seed = max(range(150), key=lambda seed: shares[seed].low)
    assert shares[seed].low > own.changes(ROW, n_measure=20_000, **given)[0].share.high
    shopped = own.changes(ROW, n_measure=50, seed=seed, **given)
    assert verify(shopped, model, FRAME, seed=1).codes == ("contradicted",)
