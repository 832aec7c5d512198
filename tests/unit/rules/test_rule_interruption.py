"""A search for a rule can be interrupted anywhere, soon, and ends by itself."""

import contextlib
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube

SOON = 1.0  # seconds between two checks, on a busy machine; most are below 0.05
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(500, 16)).round(2), columns=[f"c{i}" for i in range(16)])
MODEL = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(FRAME, FRAME.sum(axis=1) > 0)
WEIGHTS = np.random.default_rng(3).normal(size=12)


class StopError(Exception):
    pass


def scores(rows):
    return MODEL.predict_proba(rows)


def cube(rows):
    return np.where(rows @ WEIGHTS + 2 * rows[:, 0] * rows[:, 1] > 0, "yes", "no")


CASES = {
    "drawn": (Explainer(scores, FRAME), FRAME.iloc[3], {}),
    "most": (Explainer(scores, FRAME), FRAME.iloc[3], {"holds": None}),
    "trees": (Explainer(MODEL, FRAME), FRAME.iloc[3], {"holds": 1}),
    "listed": (Explainer(cube, Hypercube()), [1] * 12, {"holds": 0.9999}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_check_interrupts_wherever_it_raises(name):
    explainer, row, keywords = CASES[name]
    n_calls = 0

    def count():
        nonlocal n_calls
        n_calls += 1

    explainer.rule(row, check=count, **keywords)
    assert n_calls > 20
    for last in np.unique(np.linspace(1, n_calls, 6).astype(int)).tolist():
        left = [last]

        def stop(left=left):
            left[0] -= 1
            if left[0] == 0:
                raise StopError

        with pytest.raises(StopError):
            explainer.rule(row, check=stop, **keywords)


@pytest.mark.parametrize("name", CASES)
def test_the_most_expensive_rule_is_checked_often(name):
    """k=12 takes long; the checks come so often that a client who left frees the machine soon."""
    explainer, row, keywords = CASES[name]
    explainer.table_answers()
    begin = last = time.perf_counter()
    longest = 0.0

    def look():
        nonlocal last, longest
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
        if now - begin > 4.0:
            raise StopError

    with contextlib.suppress(StopError):
        explainer.rule(row, check=look, k=12, **keywords)
    assert max(longest, time.perf_counter() - last) < SOON
    assert time.perf_counter() - begin < 4.0 + SOON


def test_a_rule_of_many_facts_ends_by_itself(monkeypatch):
    """The limit of steps is constant, so that the same rule is found on a slow machine."""
    from anchorline.optimize import boxes

    steps = []
    monkeypatch.setattr(boxes.Attributes, "_step", counting(boxes.Attributes._step, steps))
    grown = list(boxes.grow_rules(*problem(), most=50))
    assert 50 <= len(steps) <= 50 + 4 * 66  # a set that was begun is finished
    assert len(grown) < 12


def counting(step, steps):
    def counted(self, *arguments):
        steps.append(1)
        return step(self, *arguments)

    return counted


def problem():
    from anchorline.optimize.boxes import Goal
    from anchorline.rules.find import _boxes, _of_law
    from anchorline.settings import Settings

    case = CASES["drawn"][0].case(FRAME.iloc[3], Settings(k=12))
    case.predictor.open(case.neighborhood.original)
    draws, _ = _of_law(case, "rule/law", 0, 500)
    return _boxes(case, draws), list(range(12)), 12, Goal(0.999, 1.0)
