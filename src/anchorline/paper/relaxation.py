"""The paper's convex relaxation, with an L1 ball in place of "at most k terms": a bound, not an explanation."""

import threading
import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np

from anchorline.errors import BackendError
from anchorline.paper.mip import import_backend, require_box
from anchorline.paper.problem import UNLIMITED, Limits, Problem, Solution, Status

_TOLERANCE = 1e-10  # with a smaller tolerance Clarabel gives up and returns 1e-7
_SLACK = 1e-12  # a prediction outside by at most this share counts as reachable, because of rounding
_ANSWERS = ("optimal", "optimal_inaccurate", "user_limit")
_WARNINGS_LOCK = threading.Lock()  # warning filters belong to the process, and two threads would mix them up


@dataclass(frozen=True, slots=True)
class Polytope:
    r"""The feasible set of the relaxation, which contains every sum of at most k terms inside the box.

    .. math:: u_0 + \textstyle\sum_j u_j = f(x),\ |u_j| \le \text{box},\ |u_0| \le \text{box},\
              \|u\|_1 + |u_0| \le k\,\text{box}
    """

    n_literals: int
    prediction: float
    box: float
    radius: float  # of the L1 ball: k times the box

    @classmethod
    def from_problem(cls, problem: Problem) -> Self:
        """Build the polytope of a problem; raise `ParameterError` if the problem has no box."""
        box = require_box(problem)
        return cls(problem.n_literals, float(problem.prediction), box, problem.k * box)

    @property
    def is_empty(self) -> bool:
        """Whether no sum inside the box and the ball reaches the prediction."""
        reach = min(self.radius, (self.n_literals + 1) * self.box)
        return abs(self.prediction) > reach + _SLACK * max(self.radius, abs(self.prediction))

    def linear_lower_bound(self, slopes: np.ndarray) -> float:
        r"""Return a rigorous and tight lower bound of :math:`g^\top u` over the polytope.

        For every price :math:`\mu` of the anchor and toll :math:`\lambda \ge 0` of the ball,

        .. math:: g^\top u \ge \mu f(x) - \lambda\,\text{radius}
                  - \text{box} \textstyle\sum_{j \ge 0} \max(0, |g_j - \mu| - \lambda), \qquad g_0 = 0.

        A linear program finds the best pair. The value is computed by this formula, so it is a valid bound
        whatever the linear program returns.
        """
        slopes = np.append(slopes, 0.0)  # the intercept does not occur in the objective
        price, toll = self._multipliers(slopes)
        terms = self.box * np.maximum(0.0, np.abs(slopes - price) - toll).sum()
        return float(price * self.prediction - toll * self.radius - terms)

    def _multipliers(self, slopes: np.ndarray) -> tuple[float, float]:
        """Return the price and toll from HiGHS; all terms are split into positive and negative parts."""
        from scipy.optimize import linprog  # noqa: PLC0415  on first use only

        ones = np.ones((1, len(slopes)))
        answer = linprog(
            np.append(slopes, -slopes),
            A_ub=np.hstack([ones, ones]),
            b_ub=[self.radius],
            A_eq=np.hstack([ones, -ones]),
            b_eq=[self.prediction],
            bounds=(0.0, self.box),
            method="highs",
        )
        if answer.status != 0:  # the polytope is a point up to rounding, and any pair gives a valid bound
            return 0.0, 0.0
        return float(answer.eqlin.marginals[0]), max(0.0, -float(answer.ineqlin.marginals[0]))


def solve_relaxation(problem: Problem, limits: Limits = UNLIMITED) -> Solution:
    r"""Minimize the fidelity error over the `Polytope` that contains all sums of at most k terms.

    .. math:: \min_u\ Q(u) = u^\top G u - 2 h^\top u + \tfrac1n\|t\|_2^2
              \quad\text{s.t.}\quad u \in \text{Polytope}

    Clarabel finds u, through CVXPY. The lower bound does not rely on Clarabel: by convexity
    :math:`Q(v) \ge Q(u) + \nabla Q(u)^\top (v - u)` for every v, and the right-hand side is minimized
    over the polytope by duality. The answer is dense, so its status is `Status.RELAXED`: it is a bound and not an
    explanation. The problem must have a box. At a time limit u may lie outside the polytope, but the bound still
    holds. A node limit has no effect. Cost about d^3.
    """
    polytope = Polytope.from_problem(problem)
    zeros = np.zeros(problem.n_literals)
    if polytope.is_empty:
        return Solution(
            contributions=zeros, intercept=problem.prediction, objective=np.inf, status=Status.INFEASIBLE
        )
    contributions = _minimize(problem, polytope, limits)
    evidence = problem.evidence
    slopes = 2 * (evidence.second_moments @ contributions - evidence.cross_moments)
    objective = problem.objective(contributions)
    bound = objective + polytope.linear_lower_bound(slopes) - float(slopes @ contributions)
    return Solution(
        contributions=contributions,
        intercept=problem.prediction - float(contributions.sum()),
        objective=objective,
        lower_bound=max(0.0, min(objective, bound)),
        status=Status.RELAXED,
    )


def _minimize(problem: Problem, polytope: Polytope, limits: Limits) -> np.ndarray:
    """Minimize over the polytope with Clarabel, up to its tolerance or the time limit."""
    cvxpy = import_backend("cvxpy", extra="relax")
    import_backend("clarabel", extra="relax")
    evidence = problem.evidence
    scales, directions = np.linalg.eigh(evidence.second_moments)
    factor = directions * np.sqrt(np.clip(scales, 0.0, None))  # rounding may leave G slightly indefinite
    u = cvxpy.Variable(problem.n_literals)
    intercept = polytope.prediction - cvxpy.sum(u)
    # The matrix form has d fewer variables than the squares of factor' u and is ten times faster at d = 644.
    curved = cvxpy.quad_form(u, cvxpy.psd_wrap(factor @ factor.T))
    relaxed = cvxpy.Problem(
        cvxpy.Minimize(curved - 2 * (evidence.cross_moments @ u)),
        [
            cvxpy.abs(u) <= polytope.box,
            cvxpy.abs(intercept) <= polytope.box,
            cvxpy.norm1(u) + cvxpy.abs(intercept) <= polytope.radius,
        ],
    )
    settings = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), _TOLERANCE)
    if limits.time_limit is not None:
        settings["time_limit"] = float(limits.time_limit)
    with _WARNINGS_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CVXPY warns of inaccuracy, which the gap already measures
        try:
            relaxed.solve(solver="CLARABEL", **settings)
        except cvxpy.error.SolverError as error:
            raise BackendError(
                f"Clarabel failed: {error} The relaxation needs its answer. Use the solver 'exact' instead."
            ) from error
    if relaxed.status not in _ANSWERS or u.value is None:
        raise BackendError(
            f"Clarabel ended with status {relaxed.status!r}, but it must be one of {', '.join(_ANSWERS)}. "
            "Use the solver 'exact' instead."
        )
    return np.asarray(u.value, dtype=np.float64)
