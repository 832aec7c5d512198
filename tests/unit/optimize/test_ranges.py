"""Sums where zero lies outside the output range, or where outputs hardly move."""

import itertools
import warnings

import numpy as np
import pytest

import anchorline as al
from anchorline.optimize import Evidence, Limits, Problem, Status, audit, solve
from anchorline.optimize.relevance import relevant_rules, separate
from anchorline.optimize.rows import SampleRows
from anchorline.search.sampling import cancelling_event
from anchorline.spaces.base import Law


def both_needed(rows):
    """Return 90 if the first two coordinates are positive, otherwise 6."""
    return np.where((rows[:, :2] > 0).all(axis=1), 90.0, 6.0)


def test_a_range_that_moves_past_zero_does_not_change_the_sum():
    answers = [
        al.explain(both_needed, np.ones(5), k=2, output_range=(low, 100.0)) for low in (-2, 0, 0.1, 2, 5, 5.9)
    ]
    for e in answers:
        assert e.intercept == 0.0
        assert sorted(term.literal.name for term in e.terms) == ["x0", "x1"]
        assert [term.contribution for term in e.terms] == pytest.approx([45.0, 45.0], rel=1e-6)
        assert e.certificate.status is Status.OPTIMAL


def test_the_objective_does_not_jump_where_the_origin_leaves_the_box():
    rng = np.random.default_rng(4)
    flips = rng.random((300, 5)) < 0.3
    evidence = Evidence.from_sample(flips, flips @ np.array([0.6, 0.5, 0.1, 0.0, 0.0]))
    origins = np.array([-0.9, -1 + 1e-9, -1.0, -1 - 1e-9, -1.1])
    objectives = []
    for origin in origins:
        problem = Problem(evidence, 2, float(origin + 1.1), origin=float(origin))
        solution = solve(problem)
        audit.check(problem, solution)
        assert solution.intercept == origin
        objectives.append(solution.objective)
    assert objectives == pytest.approx([objectives[0]] * len(origins), abs=1e-12)


@pytest.mark.parametrize("method", ["scip", "gurobi", "relaxation"])
def test_other_solvers_know_sums_whose_origin_is_outside_the_box(method):
    pytest.importorskip({"scip": "pyscipopt", "gurobi": "gurobipy", "relaxation": "cvxpy"}[method])
    rng = np.random.default_rng(4)
    flips = rng.random((300, 5)) < 0.3
    evidence = Evidence.from_sample(flips, flips @ np.array([0.6, 0.5, 0.1, 0.0, 0.0]))
    problem = Problem(evidence, 2, 0.0, origin=-1.1)
    other, exact = solve(problem, method), solve(problem)
    assert exact.intercept == -1.1
    assert other.lower_bound <= exact.objective + 1e-9
    if method != "relaxation":
        assert other.objective == pytest.approx(exact.objective, abs=1e-9)


# --- terms stay in the box, and do not cancel -------------------------------------------------------------


def opposite(size, unit):
    """Return a problem and contributions that cancel in many ways."""
    rng = np.random.default_rng(size)
    flips = rng.random((60, size + 1)) < 0.4
    drops = flips @ np.resize([1.0, -1.0, 0.5, -0.5], size + 1) * unit
    contributions = np.append(np.resize([1.0, -1.0, 0.0], size), 0.0) * unit
    return Evidence.from_sample(flips, drops), contributions


@pytest.mark.parametrize("size", [2, 9, 16, 17, 18, 20])
@pytest.mark.parametrize("unit", [1.0, 1e-7])
@pytest.mark.parametrize("fixed_sum", [False, True])
def test_contributions_are_separated_for_any_number_of_literals(size, unit, fixed_sum):
    evidence, contributions = opposite(size, unit)
    if fixed_sum:
        contributions[0] = 0.75 * unit
    problem = Problem(evidence, size + 1, float(contributions.sum()) + 0.1 * unit, box=unit)
    separated = separate(problem, contributions, np.arange(size), fixed_sum=fixed_sum)
    event = cancelling_event(separated, Law.of_literals(size + 1, 0.3))
    assert event.is_literal
    assert np.flatnonzero(separated).tolist() == list(range(size))
    assert np.abs(separated).max() <= unit
    assert np.abs(separated - contributions).max() <= 1e-3 * unit
    if fixed_sum:
        assert separated.sum() == pytest.approx(contributions.sum(), abs=1e-12 * size * unit)


def test_a_rule_of_more_literals_than_are_listed_has_no_zero_contribution():
    evidence, contributions = opposite(45, 1.0)
    separated = separate(Problem(evidence, 46, 0.5), contributions, np.arange(45), fixed_sum=False)
    assert np.flatnonzero(separated).tolist() == list(range(45))
    assert np.abs(separated - contributions).max() <= 1e-3


def test_terms_of_a_rule_stay_in_the_box_where_the_starting_level_is_on_its_edge():
    flips = np.array(list(itertools.product((0, 1), repeat=4)), dtype=bool)
    drops = flips @ np.array([0.6, -0.6, 0.0, 0.0]) + 0.2 * (flips[:, 0] & flips[:, 1])
    rows = SampleRows.pack(flips, drops, np.full(16, 1 / 16))
    for prediction in (1.0, -1.0, 0.3):
        problem = Problem(Evidence.from_sample(flips, drops), 4, prediction)
        for rule in relevant_rules(rows, problem, Law.of_literals(4, 0.5), Limits()):
            assert cancelling_event(rule.contributions, Law.of_literals(4, 0.5)).is_literal
            assert np.abs(rule.contributions).max(initial=0) <= 1
            assert abs(rule.intercept) <= 1
            assert rule.intercept + rule.contributions.sum() == pytest.approx(prediction, abs=1e-12)


# --- predictions that the scale of the range cannot hold --------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 5.0, 1e20, -1e300, 1.7976931348623157e308])
def test_a_constant_of_any_size_is_its_own_starting_level(constant):
    table = al.Table(np.arange(40.0).reshape(20, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that answers the same everywhere
        e = al.Explainer(lambda rows: np.full(len(rows), constant), table, task="number").explain([2.0, 3.0], k=3)
    assert e.intercept == e.prediction == constant
    assert e.certificate.n_terms == (constant != 0)


def test_a_tiny_probability_is_not_an_empty_sum():
    def predict_proba(rows):
        return np.tile([1.0, 1e-17], (len(rows), 1))

    e = al.Explainer(predict_proba, al.Hypercube(), column=1).explain(np.ones(4), k=3)
    assert e.intercept == e.prediction == 1e-17
    assert e.certificate.n_terms == 1
    assert "zero" not in str(e)


@pytest.mark.parametrize("change", [1e-2, 1e-5, 2e-7, 3e-8])
def test_a_change_that_drops_can_hardly_hold_is_not_called_proved(change):
    def predict(rows):
        return 0.5 + change * (rows @ np.array([0.3, 0.2, 0.1, 0.0]) + 0.2 * rows[:, 0] * rows[:, 1])

    e = al.explain(predict, np.ones(4), k=3, output_range=(0.0, 1.0), task="number")
    assert e.certificate.status is (Status.OPTIMAL if change > 1e-6 else Status.NUMERICAL)
    assert ("Proven" in str(e)) == (change > 1e-6)
    own = [(change * value) ** 2 for value in (0.3, 0.2, 0.1)]
    assert e.certificate.lower_bound <= sum(own)
