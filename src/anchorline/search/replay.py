"""Ask and measure again what an earlier search asked and measured, for the sum that it found: no clock decides."""

from dataclasses import dataclass, replace

import numpy as np

from anchorline.errors import ParameterError
from anchorline.optimize import Problem, Solution, Status
from anchorline.optimize.relevance import rule_error
from anchorline.optimize.rows import SampleRows
from anchorline.search.case import Case
from anchorline.search.investigate import (
    Choice,
    Findings,
    candidate_pairs,
    conclude,
    effective,
    gather,
    plan,
    pose,
)
from anchorline.search.leaves.investigating import conclude_by_leaves, pose_by_leaves
from anchorline.search.pairs import stated_problem
from anchorline.search.sampling import EnumeratedFlips


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What an earlier search found: the scaled sum, how the search ended, and the bound that it reached.

    ``left_facts_out`` says whether it searched only among the facts whose effect can be distinguished from zero.
    ``pairs`` are those of the sum, whose contributions come last.
    """

    contributions: np.ndarray
    has_intercept: bool
    status: Status
    lower_bound: float
    left_facts_out: bool
    pairs: tuple[tuple[int, int], ...] = ()


def replay(case: Case, found: Found) -> Findings:
    """Query the neighbors of an earlier search in the same order, and measure the sum that it found.

    The sum, its status and its lower bound are taken as given. All else is computed: the answers, the objective,
    and every estimate. With ``n_samples="auto"`` the number of neighbors depends on the search, which needs the
    clock, so that is an error.
    """
    if case.leaves is not None:
        problem = pose_by_leaves(case, case.leaves)
        return conclude_by_leaves(case, case.leaves, problem, _as_found(case, problem, None, found))
    settings, flips = case.settings, plan(case)
    if flips is None:
        raise ParameterError("n_samples is 'auto', but only a fixed number of samples can be replayed.")
    exhaustive = isinstance(flips, EnumeratedFlips)
    evidence, rows = gather(case, flips, keep=exhaustive or settings.needs_rows)
    problem = pose(case, evidence)
    if settings.n_choose and not exhaustive:
        gather(case, case.stream("choose", settings.n_choose))
    return conclude(case, problem, _as_found(case, problem, rows, found), rows, exhaustive=exhaustive)


def _as_found(case: Case, problem: Problem, rows: SampleRows | None, found: Found) -> Choice:
    """Return the sum that was found, with its objective."""
    intercept = problem.prediction - float(found.contributions.sum()) if found.has_intercept else problem.origin
    objective = _objective(case, problem, rows, found)
    solution = Solution(
        contributions=found.contributions,
        intercept=intercept,
        objective=max(objective, found.lower_bound),
        lower_bound=found.lower_bound,
        status=found.status,
    )
    literals = effective(case, problem) if found.left_facts_out else np.arange(problem.n_literals)
    choice = Choice(solution, literals, problem.n_literals - len(literals), found.pairs)
    if case.settings.pairs is None or rows is None:
        return choice
    return replace(choice, n_pairs=candidate_pairs(case, problem, rows).counts)


def _objective(case: Case, problem: Problem, rows: SampleRows | None, found: Found) -> float:
    """Return the mean square that the search minimizes, for the sum that was found."""
    if rows is not None and found.pairs:
        return stated_problem(case.stating(found.pairs), problem, rows).objective(found.contributions)
    if rows is None or case.settings.objective == "fidelity":
        return problem.objective(found.contributions)
    support = tuple(np.flatnonzero(found.contributions).tolist())
    return rule_error(rows, support, case.law)
