"""The best sums of rows whose attributes change in one way each: their literals flip independently."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from anchorline.optimize import Problem, Solution, Status
from anchorline.optimize.independent import IndependentProblems, IndependentSums, solve_independent
from anchorline.search.case import Case
from anchorline.search.investigate import Choice

if TYPE_CHECKING:  # loaded for models that have trees
    from anchorline.search.leaves.row import LeafRow


@dataclass(frozen=True, slots=True, eq=False)
class BestSums:
    """The best sums of n rows, with one number per attribute of the table.

    ``changing`` (n, attributes) are the attributes that have a literal, and ``effective`` those of them whose
    literal has an effect. ``n_left_out`` (n,) is as in `Choice`.
    """

    sums: IndependentSums
    changing: np.ndarray
    effective: np.ndarray
    n_left_out: np.ndarray

    def choice(self, row: int, prediction: float, origin: float) -> Choice | None:
        """Return the sum of a row, whose scaled prediction and origin are given; None if it is not solved."""
        if not self.sums.solved[row]:
            return None
        contributions = self.sums.contributions[row, self.changing[row]]
        objective = float(self.sums.objectives[row])
        solution = Solution(
            contributions=contributions,
            intercept=prediction - float(contributions.sum()) if self.sums.with_level[row] else origin,
            objective=objective,
            lower_bound=objective,
            status=Status.OPTIMAL,
        )
        literals = np.flatnonzero(self.effective[row, self.changing[row]])
        return Choice(solution, literals, int(self.n_left_out[row]))


def best_sums(
    problems: IndependentProblems, changing: np.ndarray, limits: np.ndarray, *, keep_noise: bool
) -> BestSums:
    """Return the best sums of n rows; a covariance of at most ``limits`` (n,) is rounding, so it has no effect.

    As in `solve_without_noise`, the best of all sums is kept if all its facts have an effect.
    """
    effective = changing & (np.abs(problems.covariances) > limits[:, None])
    found, n_left_out = solve_independent(problems, changing), np.zeros(len(changing), dtype=np.intp)
    noisy = np.flatnonzero(((found.contributions != 0) & ~effective).any(axis=1))
    if keep_noise:
        return BestSums(found, changing, changing, n_left_out)
    if len(noisy):
        part = solve_independent(problems.take(noisy), effective[noisy])
        for name in ("contributions", "objectives", "with_level"):
            getattr(found, name)[noisy] = getattr(part, name)
        found.solved[noisy] &= part.solved
        n_left_out[noisy] = np.count_nonzero(changing[noisy] & ~effective[noisy], axis=1)
    return BestSums(found, changing, effective, n_left_out)


def solve_row(case: Case, leaves: "LeafRow", problem: Problem) -> Choice | None:
    """Return the best sum of one row, as `best_sums` finds it; None if another solver is needed."""
    if case.settings.solver != "exact" or not case.law.one_to_one:
        return None
    (mean, covariances), square = leaves.by_attribute, problem.evidence.drop_square
    changing = np.zeros((1, leaves.sums.n_attributes), dtype=bool)
    changing[0, leaves.attributes] = True
    problems = IndependentProblems(
        case.settings.flip_probability,
        np.array([mean]),
        covariances[:, 0][None],
        np.zeros(1),
        np.array([problem.prediction]),
        np.array([problem.origin]),
        problem.k,
        problem.box,
    )
    if case.settings.n_certify != 0:
        problems = replace(problems, rests=np.maximum(square - problems.squares, 0.0))
    limits = np.atleast_1d(leaves.sums.rounding(leaves.half_range))
    found = best_sums(problems, changing, limits, keep_noise=case.settings.keep_noise)
    return found.choice(0, problem.prediction, problem.origin)
