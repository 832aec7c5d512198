"""Profiles: time is the part's that runs, parts name functions that exist, and everything is put back."""

import functools
import itertools

import numpy as np
import pytest

import anchorline as al
from anchorline.optimize import bounds, exact
from anchorline.optimize.evidence import Evidence
from benchmarks import profiles
from benchmarks.profiles import Parts

PARTS = {name: getattr(profiles, name) for name in ("_EXPLAIN", "_PROOF", "_COVERAGE", "_TABLE", "_PROCESSES")}


def ticking():
    """A clock that advances by one at every look."""
    return functools.partial(next, itertools.count())


def test_time_is_that_of_the_innermost_part():
    parts = Parts(ticking())
    inner = parts.timed(lambda: 7, "inner")
    outer = parts.timed(lambda: inner() + inner(), "outer")
    with parts.measuring({}):
        assert outer() == 14
    assert dict(parts.seconds) == {"the rest": 2, "outer": 3, "inner": 2}
    assert parts.calls == {"outer": 1, "inner": 2}
    rows = list(parts.rows("task", 1))
    assert rows[0] == {"task": "task", "part": "outer", "calls": 1.0, "milliseconds": 3000, "share": 3 / 7}
    assert sum(row["share"] for row in rows) == pytest.approx(1)


@pytest.mark.parametrize("name", PARTS)
def test_parts_name_functions_which_are_put_back(name):
    before = exact.roots_of, bounds.Centered.__dict__["row_max"], Evidence.__dict__["from_sample"]
    parts = Parts()
    with pytest.raises(KeyError), parts.measuring(PARTS[name]):
        raise KeyError
    assert before == (exact.roots_of, bounds.Centered.__dict__["row_max"], Evidence.__dict__["from_sample"])


def test_an_explanation_is_the_same_while_it_is_measured():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=30)
    explainer = al.Explainer(lambda z: np.tanh(z @ weights / 5), al.Hypercube())
    plain, parts = explainer.explain([1] * 30, n_samples=200), Parts()
    with parts.measuring(PARTS["_EXPLAIN"]):
        measured = explainer.explain([1] * 30, n_samples=200)
    assert measured == plain
    assert {"guess", "proof", "drawing", "certificate", "test of effects", "counting pairs"} <= {*parts.seconds}


def test_an_error_in_a_part_does_not_stop_the_measurement():
    parts = Parts(ticking())
    failing = parts.timed(lambda: 1 / 0, "failing")
    with parts.measuring({}):
        with pytest.raises(ZeroDivisionError):
            failing()
        assert parts._stack == ["the rest"]
