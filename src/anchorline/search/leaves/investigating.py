"""From an opened case to findings, if the model is a sum of trees: nothing is sampled to search."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from anchorline.optimize import Problem, Status
from anchorline.search.case import Case
from anchorline.search.investigate import Choice, Findings, certify, pose, solve_without_noise
from anchorline.search.leaves.assessing import assess_by_leaves
from anchorline.search.leaves.solving import solve_row
from anchorline.search.sampling import MAX_PATTERNS
from anchorline.search.select import Rivals, find_rivals

if TYPE_CHECKING:  # loaded for models that have trees
    from anchorline.search.leaves.row import LeafRow


def investigate_by_leaves(case: Case) -> Findings:
    """Search with the moments of the whole neighborhood, which are sums over leaves."""
    leaves = case.leaves
    assert leaves is not None  # otherwise `investigate` samples
    problem = pose_by_leaves(case, leaves)
    choice = solve_row(case, leaves, problem) or solve_without_noise(case, problem)
    rivals: Rivals | None = None
    if case.settings.alternatives:
        rivals = find_rivals(problem, choice.solution, choice.literals, None, case.settings)
    return conclude_by_leaves(case, leaves, problem, choice, rivals)


def pose_by_leaves(case: Case, leaves: "LeafRow") -> Problem:
    """Return the problem of the whole neighborhood.

    Without a certificate, or if the mean squared drop is a sum over too many pairs of leaves, the problem is that
    of the part of the drops that sums of facts can explain. Its best sums and gaps are the same; its objective is
    smaller by a constant.
    """
    return pose(case, leaves.evidence(None if case.settings.n_certify == 0 else leaves.drop_square))


def conclude_by_leaves(
    case: Case, leaves: "LeafRow", problem: Problem, choice: Choice, rivals: Rivals | None = None
) -> Findings:
    """Compute the quality of a solution over the whole neighborhood; measure it on fresh neighbors if need be."""
    solution, settings, assessment = choice.solution, case.settings, None
    few = np.count_nonzero(solution.contributions) <= MAX_PATTERNS
    if settings.n_certify != 0 and solution.status is not Status.RELAXED and few:
        assessment = assess_by_leaves(
            case, leaves, problem, solution.contributions, settings.n_fresh_without_search
        )
    reason: str | None = None
    if assessment is None:
        settings = replace(settings, n_certify=settings.n_fresh_without_search)
        assessment, reason = certify(replace(case, settings=settings), solution)
    return Findings(problem, solution, assessment, True, reason, rivals, 0.0, choice.n_left_out)
