"""The best sums of rows whose attributes change independently, for one row or for many at once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.optimize import Problem, Solution, Status
from anchorline.optimize.grouped import by_problem, solve_grouped
from anchorline.optimize.independent import IndependentProblems, solve_independent
from anchorline.optimize.options import GroupedProblems
from anchorline.search.case import Case
from anchorline.search.investigate import Choice

if TYPE_CHECKING:  # loaded for models that have trees
    from anchorline.search.leaves.row import LeafRow

_MOST_LITERALS = 3  # of one attribute


@dataclass(frozen=True, slots=True, eq=False)
class BestSums:
    """The best sums of n rows, with one number per possible literal of the table.

    ``changing`` (n, literals) are those that a row has, and ``effective`` those of them that have an effect.
    ``contributions`` (n, literals), ``objectives``, ``lower_bounds``, ``with_level`` and ``solved`` (n,) are those
    of the sums, and ``n_left_out`` (n,) is as in `Choice`.
    """

    changing: np.ndarray
    effective: np.ndarray
    contributions: np.ndarray
    objectives: np.ndarray
    lower_bounds: np.ndarray
    with_level: np.ndarray
    solved: np.ndarray
    n_left_out: np.ndarray

    def choice(self, row: int, prediction: float, origin: float) -> Choice | None:
        """Return the sum of a row, whose scaled prediction and origin are given; None if it is not solved."""
        if not self.solved[row]:
            return None
        contributions = self.contributions[row, self.changing[row]]
        solution = Solution(
            contributions=contributions,
            intercept=prediction - float(contributions.sum()) if self.with_level[row] else origin,
            objective=float(self.objectives[row]),
            lower_bound=float(self.lower_bounds[row]),
            status=Status.OPTIMAL,
        )
        literals = np.flatnonzero(self.effective[row, self.changing[row]])
        return Choice(solution, literals, int(self.n_left_out[row]))


def best_sums(
    problems: IndependentProblems | GroupedProblems, changing: np.ndarray, limits: np.ndarray, *, keep_noise: bool
) -> BestSums:
    """Return the best sums of n rows; a covariance of at most ``limits`` (n,) is rounding, so it has no effect.

    ``changing`` are the literals that rows have, in the shape of the covariances. As in `solve_without_noise`, the
    best of all sums is kept if all its facts have an effect.
    """
    effective = changing & (np.abs(problems.covariances) > limits[:, None])
    found, n_left_out = _solved(problems, changing), np.zeros(len(limits), dtype=np.intp)
    if not keep_noise:
        noisy = np.flatnonzero(((found["contributions"] != 0) & ~_flat(effective)).any(axis=1))
        if len(noisy):
            part = _solved(problems.take(noisy), effective[..., noisy, :])
            part["solved"] &= found["solved"][noisy]
            for name, values in part.items():
                found[name][noisy] = values
            n_left_out[noisy] = np.count_nonzero(_flat(changing & ~effective)[noisy], axis=1)
    kept = changing if keep_noise else effective
    return BestSums(_flat(changing), _flat(kept), **found, n_left_out=n_left_out)


def _solved(problems: IndependentProblems | GroupedProblems, allowed: np.ndarray) -> dict[str, np.ndarray]:
    """Solve by the closed form that applies."""
    found: Any
    if isinstance(problems, GroupedProblems):
        found = solve_grouped(problems, allowed)
    else:
        found = solve_independent(problems, allowed)
    names = ("objectives", "lower_bounds", "with_level", "solved")
    return {"contributions": _flat(found.contributions)} | {name: getattr(found, name).copy() for name in names}


def _flat(values: np.ndarray) -> np.ndarray:
    """Return what is known about literals row by row, in their order."""
    return by_problem(values) if values.ndim == 3 else values


def solve_row(case: Case, leaves: "LeafRow", problem: Problem) -> Choice | None:
    """Return the best sum of one row, as `best_sums` finds it; None if another solver is needed."""
    law, settings = case.law, case.settings
    n_literals = np.bincount(law.groups).max(initial=0)
    if settings.solver != "exact" or law.pairs or n_literals > _MOST_LITERALS:
        return None
    squares = None if settings.n_certify == 0 else np.array([problem.evidence.drop_square])
    outcomes = leaves.outcomes
    changing = outcomes.changing[0] if law.one_to_one else outcomes.changing
    posed = {
        "predictions": np.array([problem.prediction]),
        "origins": np.array([problem.origin]),
        "k": problem.k,
        "box": problem.box,
    }
    pose = outcomes.independent if law.one_to_one else outcomes.grouped
    problems = pose(settings.flip_probability, squares, posed)
    limits = np.atleast_1d(leaves.sums.rounding(leaves.half_range))
    found = best_sums(problems, changing, limits, keep_noise=settings.keep_noise)
    return found.choice(0, problem.prediction, problem.origin)
