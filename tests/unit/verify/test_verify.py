"""verify: every single change is caught, honest explanations hold."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.search.case import texts_digest
from anchorline.spaces.base import Literal
from anchorline.verify import Outcome
from helpers.makers import at, changed, leaves, tampered
from helpers.sealing import resealed

WEIGHTS = np.random.default_rng(5).normal(size=(14, 6)) / 3


def smooth(rows):
    return np.tanh(np.tanh(rows @ WEIGHTS) @ [1.0, -1.0, 0.5, 0.5, -0.7, 0.3])


def label(rows):
    return np.where(smooth(rows) > 0, "yes", "no")


X = np.random.default_rng(6).choice([-1, 1], 14)
CASES = {
    "number": (smooth, {"threshold": 0.1}),
    "label": (label, {"task": "label"}),
    "range": (lambda rows: 100 + 50 * smooth(rows), {"output_range": (40.0, 160.0)}),
    "tiny": (lambda rows: 1e-9 * smooth(rows), {"output_range": (-1e-9, 1e-9)}),
    "auto": (smooth, {"n_samples": "auto", "max_queries": 20_000, "tolerance": 0.1}),
    "enumerated": (lambda rows: smooth(np.hstack([rows, np.ones((len(rows), 6))])), {"x": X[:8]}),
    "node limit": (smooth, {"node_limit": 1, "k": 6}),
    "iht": (smooth, {"solver": "iht"}),
    "uncertified": (smooth, {"n_certify": 0}),
}


def made(name, **changes):
    model, settings = CASES[name]
    settings = {"n_samples": 1000, "seed": 3, "x": X} | settings | changes
    return model, al.explain(model, settings.pop("x"), **settings)


@pytest.mark.parametrize("name", CASES)
def test_an_honest_explanation_holds(name):
    model, e = made(name)
    assert e.verify(model).outcome is Outcome.HOLDS
    assert al.verify(e.to_json(), model).holds
    assert al.verify(e.to_json(), model, al.Hypercube()).holds


@pytest.mark.parametrize("name", ["number", "label", "auto", "enumerated"])
def test_every_tampered_field_is_caught_by_the_digest_alone(name):
    model, e = made(name)
    body = json.loads(e.to_json())
    for path in leaves(body):
        for new in changed(at(body, path)):
            assert not al.verify(json.dumps(tampered(body, path, new)), model).holds, path


@pytest.mark.parametrize("name", ["number", "label", "range", "auto", "enumerated", "node limit", "iht"])
def test_every_tampered_number_is_caught_also_when_the_digest_is_made_anew(name):
    model, e = made(name)
    body = json.loads(e.to_json())
    walked = 0
    for path in leaves(body):
        old = at(body, path)
        if path == ("sha256",) or isinstance(old, str):
            continue
        for new in changed(old):
            walked += 1
            verification = al.verify(resealed(tampered(body, path, new)), model)
            assert verification.outcome is not Outcome.HOLDS, f"{path}: {old} -> {new}"
    assert walked > 100


def test_figures_in_the_output_s_own_units_are_compared_in_them():
    """Half the range is 1e-9: what is small beside 1 may be all there is."""
    model, e = made("tiny")
    body = json.loads(e.to_json())
    paths = [path for path in leaves(body) if path[0] in ("contributions", "intercept", "prediction")]
    paths += [
        ("certificate", name, end) for name in ("typical_change", "baseline_change") for end in ("low", "high")
    ]
    for path in paths:
        old = at(body, path)
        verification = al.verify(resealed(tampered(body, path, old * 1.001 + 1e-14)), model)
        assert verification.outcome is not Outcome.HOLDS, path
    swapped = body | {"contributions": body["contributions"][1:] + body["contributions"][:1]}
    assert not al.verify(resealed(swapped), model).holds


def test_nothing_can_be_held_fixed_afterwards():
    model, e = made("number")
    body = json.loads(e.to_json()) | {"fixed": {"race": "held fixed as asked"}}
    assert not al.verify(resealed(body), model).holds
    assert not al.verify(resealed(body), model, al.Hypercube()).holds


@pytest.mark.parametrize("name", ["number", "label"])
def test_tampered_texts_are_caught_with_the_space(name):
    model, e = made(name)
    body = json.loads(e.to_json())
    for path in [("literals", 0, 1), ("literals", 3, 0), ("parameters", "space")]:
        text = resealed(tampered(body, path, "something else"))
        assert not al.verify(text, model, al.Hypercube()).holds


def test_a_model_that_answers_one_query_differently_is_caught():
    _, e = made("number")
    for wrong_row in (0, 17, 999):

        def other(rows, wrong_row=wrong_row):
            answers = smooth(rows)
            if len(rows) > wrong_row:
                answers[wrong_row] += 1e-5 * (1 if answers[wrong_row] < 0 else -1)
            return answers

        assert e.verify(other).outcome is Outcome.DOES_NOT_HOLD


def test_a_label_that_changes_on_one_query_is_caught():
    _, e = made("label")

    def other(rows):
        answers = label(rows)
        if len(rows) > 500:
            answers[500] = "no" if answers[500] == "yes" else "yes"
        return answers

    assert e.verify(other).outcome is Outcome.DOES_NOT_HOLD


def test_forged_words_are_caught_also_where_the_output_never_moves():
    model = lambda rows: np.full(len(rows), 0.4)  # noqa: E731
    e = al.explain(model, [1] * 14, n_samples=500, sampling="draw")
    assert e.verify(model).holds
    body = json.loads(e.to_json())
    body["literals"][0][1] = "race = white"
    literals = [Literal(*words) for words in body["literals"]]
    forgeries = [tampered(body, ("parameters", "texts"), texts_digest(literals))]
    body = json.loads(e.to_json())
    forgeries += [tampered(body, ("parameters", name), new) for name, new in (("seed", 5), ("audited", "yes"))]
    for forged in forgeries:
        assert not al.verify(resealed(forged), model).holds


def test_a_label_is_another_label_however_close():
    model = lambda rows: np.where(rows[:, 0] > 0, 10_000_000_001, 10_000_000_002)  # noqa: E731
    e = al.explain(model, [1, 1, 1], task="label")
    assert e.verify(model).holds
    assert not al.verify(resealed(json.loads(e.to_json()) | {"label": 10_000_000_002}), model).holds


def test_a_very_small_probability_is_compared_by_its_size():
    model, e = made("number", k=11, flip_probability=0.9, n_certify=2000)
    probability = e.certificate.event_probability
    assert probability < 1e-8
    body = tampered(json.loads(e.to_json()), ("certificate", "event_probability"), probability * 1.01)
    assert not al.verify(resealed(body), model).holds


def test_a_changed_seed_is_caught():
    model, e = made("number")
    body = json.loads(e.to_json())
    for seed in (0, 4, 10**6):
        assert not al.verify(resealed(tampered(body, ("parameters", "seed"), seed)), model).holds


def test_it_cannot_tell_where_it_cannot():
    _, e = made("number")

    def broken(rows):
        raise OSError("the server is down")

    verification = e.verify(broken)
    assert verification.outcome is Outcome.CANNOT_TELL
    assert "the server is down" in str(verification)

    noise = np.random.default_rng(0)
    moody = e.verify(lambda rows: np.clip(smooth(rows) + 0.01 * noise.random(len(rows)), -1, 1))
    assert moody.outcome is Outcome.CANNOT_TELL
    assert "two answers" in str(moody)


def test_it_cannot_tell_which_of_two_values_that_read_alike_a_row_has():
    """The record says that the value is missing: None and NaN are one to it, and two to this model."""
    holes = pd.Series([None, math.nan, "a", "b"] * 10, dtype=object)
    table = al.Table(pd.DataFrame({"x": holes, "y": np.arange(40.0)}))

    def model(frame):
        return np.array([0.8 if value is None else 0.1 for value in frame["x"]])

    explainer = al.Explainer(model, table, output_range=(0, 1))
    first, second = (explainer.explain(row, k=2, n_samples=200, n_certify=200) for row in (0, 1))
    assert (first.prediction, second.prediction) == (0.8, 0.1)
    assert al.verify(first.to_json(), model, table).holds
    verification = al.verify(second.to_json(), model, table)
    assert verification.outcome is Outcome.CANNOT_TELL
    assert "in 'x' several values read like the row's" in str(verification)
    other = al.verify(explainer.explain(2, k=2, n_samples=200).to_json(), lambda frame: model(frame) / 2, table)
    assert other.outcome is Outcome.DOES_NOT_HOLD


@pytest.mark.parametrize("twins", [[0.0, -0.0], [2**53, 2**53 + 1], [None, math.nan]])
def test_a_forgery_is_told_also_where_values_read_alike(twins):
    """Zeros and long numbers are recorded as they are; and the same answers are those of the same row."""
    table = al.Table(pd.DataFrame({"x": pd.Series([*twins, 5, 7] * 10, dtype=object), "y": np.arange(40.0)}))

    def model(frame):
        return frame["y"].to_numpy() / 40

    e = al.Explainer(model, table, output_range=(0, 1)).explain(0, k=2, n_samples=200, n_certify=200)
    assert al.verify(e.to_json(), model, table).holds
    forged = json.loads(e.to_json())
    forged["prediction"] += 0.25
    forged["intercept"] += 0.25
    assert al.verify(resealed(forged), model, table).outcome is Outcome.DOES_NOT_HOLD


def test_the_answer_reads_well():
    model, e = made("number")
    verification = e.verify(model)
    assert verification.reasons == (
        "every figure was reproduced, and fresh neighbors confirm its fidelity, relevance, stability, baselines "
        "and verdict (unreliable explanation)",
        "a figure more than 2.5 points outside its stated interval would have been noticed with a probability of "
        "99.9%",
    )
    assert str(verification) == f"The explanation holds: {'; '.join(verification.reasons)}."
    assert verification.verdict is e.verdict
    assert verification.fresh.stability != e.certificate.stability


def test_another_model_is_named_first_and_in_one_sentence():
    """Figures that follow from other answers are not listed."""
    _, e = made("number")
    stated, given = f"{e.prediction:.6g}", f"{0.9 * e.prediction:.6g}"
    assert e.verify(lambda rows: 0.9 * smooth(rows)).reasons == (
        f"the model answers differently: it gives {given} for this row, where the explanation states {stated}",
    )
    same_at_row = e.verify(lambda rows: np.where((rows == X).all(axis=1), smooth(rows), 0.9 * smooth(rows)))
    assert same_at_row.outcome is Outcome.DOES_NOT_HOLD
    assert same_at_row.reasons == (
        "the model answers differently: its answers to the recorded neighbors are not the recorded ones, or the "
        "record was changed",
    )
    labels = made("label")[1]
    other = "no" if labels.label == "yes" else "yes"
    swapped = labels.verify(lambda rows: np.where(label(rows) == "yes", "no", "yes"))
    assert swapped.reasons == (
        f"the model answers differently: it gives {other!r} for this row, where the explanation states "
        f"{labels.label!r}",
    )
    scores = labels.verify(lambda rows: np.column_stack([smooth(rows), -smooth(rows)]))
    assert scores.outcome is Outcome.DOES_NOT_HOLD
    assert scores.reasons[0].startswith("the model answers differently: ")


@pytest.mark.parametrize("seed", [-1, 3.0, True, "7"])
def test_a_wrong_seed_is_an_error_and_not_a_verdict(seed):
    model, e = made("number")
    with pytest.raises(al.AnchorlineError, match=r"seed is .*needed a whole number"):
        e.verify(model, seed=seed)
