"""`explain`: from a model and an instance to an explanation, as the paper writes it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import NotOptimalError, ParameterError
from anchorline.guarantees.intervals import Estimate, checked_count, checked_positive, estimate_mean
from anchorline.paper.backends import solve_relaxation, solve_with_gurobi, solve_with_scip
from anchorline.paper.exact import solve_exact
from anchorline.paper.iht import solve_iht
from anchorline.paper.neighborhood import MAX_PATTERNS, Neighborhood, Predict, cancelling_event
from anchorline.paper.problem import Evidence, Limits, Problem, Solution, Status
from anchorline.paper.theorems import iht_step, relevance_factor

_SOLVERS: dict[str, Callable[..., Solution]] = {
    "exact": solve_exact,
    "gurobi": solve_with_gurobi,
    "iht": solve_iht,
    "relaxation": solve_relaxation,
    "scip": solve_with_scip,
}
SOLVERS = tuple(_SOLVERS)
_CONFIDENCE = 0.975  # of each of the two intervals, so that both hold together with 95%
_ROUNDING = 1e-6  # drops are rounded, so that a loss may exceed its range by less than this


def solve(
    problem: Problem,
    solver: str = "exact",
    *,
    time_limit: float | None = None,
    node_limit: int | None = None,
    check: Callable[[], object] = tuple,
    **settings: Any,
) -> Solution:
    """Solve a problem by one of `SOLVERS`; at a limit, return the best known answer with its gap.

    ``check`` is called in every loop of the exact search, and may raise to interrupt.

    Examples
    --------
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.0, 0.5])
    >>> solution = solve(Problem(evidence, k=2, prediction=0.75))
    >>> solution.contributions.round(9).tolist(), solution.intercept, solution.status.name
    ([0.5, 0.0], 0.25, 'OPTIMAL')
    """
    return _solver(solver)(problem, Limits(time_limit, node_limit, check), **settings)


def _solver(name: str) -> Callable[..., Solution]:
    if name not in _SOLVERS:
        raise ParameterError(
            f"The solver {name!r} is unknown. It must be one of {', '.join(SOLVERS)}. Type solver='exact'."
        )
    return _SOLVERS[name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearExplanation:
    r"""A vector w with :math:`w \cdot x = f(x)`, and what is proved, measured and bounded about it.

    ``w`` (d + 1,) has the constant first, so that ``w[j + 1]`` is the weight of ``x[j]``. Three claims stay apart:

    - proved, for the sample of (P4): ``empirical_fidelity`` is :math:`\widehat{\mathsf F}(w)`, and no explanation
      of at most k terms in the box has less than ``lower_bound``; ``status`` says how the solver ended;
    - measured, on fresh neighbors: ``fidelity_error`` :math:`\mathsf F(w)` and ``relevance_error``
      :math:`\mathsf R(w)`, the mean of :math:`\ell(f(z), f(x))` given :math:`w \cdot z = w \cdot x`, weights that
      cancel included. Both intervals hold together with 95%. ``event_probability`` is that of the condition,
      without error. Relevance is None for more than 20 literals (a relaxation);
    - bounded by the lemma: ``lemma_bound``.
    """

    w: np.ndarray
    prediction: float
    k: int
    sigma: float
    n_samples: int
    solver: str
    seed: int
    empirical_fidelity: float
    lower_bound: float
    status: Status
    n_nodes: int
    fidelity_error: Estimate
    relevance_error: Estimate | None
    event_probability: float | None

    @property
    def support(self) -> np.ndarray:
        """Indices of the non-zero entries of w; 0 is the constant."""
        return np.flatnonzero(self.w)

    @property
    def gap(self) -> float:
        """Upper bound on how far the empirical fidelity error is above the best one."""
        return max(0.0, self.empirical_fidelity - self.lower_bound)

    @property
    def lemma_bound(self) -> float:
        r"""The lemma's bound on the relevance error, from the upper limit of the fidelity error.

        .. math:: \mathsf R(w) \le (1 + e^{-\sigma})^s\, \mathsf F(w)

        s counts the literals of w, at most k: the constant never flips. A bound of 1 or more says nothing.
        """
        return relevance_factor(self.sigma, int(np.count_nonzero(self.w[1:]))) * self.fidelity_error.high

    def require_optimal(self) -> "LinearExplanation":
        """Return self if it is proved optimal, otherwise raise `NotOptimalError`."""
        if self.status is not Status.OPTIMAL:
            raise NotOptimalError(f"{self.status.value} (gap {self.gap:.3g})")
        return self


def explain(
    predict: Predict,
    x: Any,
    k: int = 5,
    sigma: float = 1.0,
    n_samples: int = 5000,
    solver: str = "exact",
    seed: int = 0,
    time_limit: float | None = None,
) -> LinearExplanation:
    r"""Solve (P4) for one instance: the anchored linear function of at most k terms that fits a sample best.

    .. math:: \min_w\ \tfrac1m \sum_i \tfrac14 (w \cdot z_i - f(z_i))^2 \quad\text{s.t.}\quad
              w \cdot x = f(x),\ \|w\|_0 \le k,\ |w_j| \le 1

    The constant counts in k. Asks the model about ``n_samples`` neighbors for the search, as many to measure the
    fidelity error, and as many to measure the relevance error. "iht" is Algorithm 1, which has no box;
    "relaxation" returns a dense w, whose value bounds that of all explanations.

    Parameters
    ----------
    predict
        The black box: a function from rows (n, d) of -1 and +1 to n numbers in [-1, +1].
    x
        The instance, d values -1 or +1, without the constant.
    sigma
        Concentration: each coordinate of a neighbor differs with probability 1 / (1 + e^sigma).
    time_limit
        Seconds for the solver; None means no limit.

    Examples
    --------
    >>> e = explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 2], [1, -1, -1], k=2)
    >>> e.w.round(9).tolist(), e.support.tolist(), e.status.name
    ([0.0, 0.5, 0.0, 0.25], [1, 3], 'OPTIMAL')
    """
    n, k = checked_count("n_samples", n_samples), checked_count("k", k)
    if time_limit is not None:
        checked_positive("time_limit", time_limit, example=10.0)
    around = Neighborhood(predict, x, sigma, seed)
    _solver(solver)  # before the model is asked
    sample = around.sample(n)
    problem = Problem(Evidence.from_sample(sample.flips, sample.drops), k, around.prediction)
    settings: dict[str, Any] = {"step": iht_step(sigma)} if solver == "iht" else {}
    solution = solve(problem, solver, time_limit=time_limit, **settings)
    fidelity, relevance, probability = measure(around, solution.contributions, n)
    w = np.append(solution.intercept, solution.contributions * around.x) + 0.0  # without negative zeros
    w.setflags(write=False)
    return LinearExplanation(
        w=w,
        prediction=around.prediction,
        k=k,
        sigma=float(sigma),
        n_samples=n,
        solver=solver,
        seed=int(seed),
        empirical_fidelity=solution.objective,
        lower_bound=solution.lower_bound,
        status=solution.status,
        n_nodes=solution.n_nodes,
        fidelity_error=fidelity,
        relevance_error=relevance,
        event_probability=probability,
    )


def measure(
    around: Neighborhood, contributions: np.ndarray, n: int
) -> tuple[Estimate, Estimate | None, float | None]:
    """Measure the fidelity and the relevance error of anchored contributions (d,) on n fresh neighbors each.

    The third number is the probability of the event that relevance is conditioned on. Relevance is None for more
    than 20 literals.
    """
    # w.z lies between f(x) - 2 (sum of the positive contributions) and f(x) - 2 (sum of the negative ones).
    ends = [around.prediction - 2 * side.sum() for side in (contributions.clip(0), contributions.clip(None, 0))]
    largest = ((1 + max(map(abs, ends))) / 2 + _ROUNDING) ** 2
    losses = around.sample(n, "assess/all").losses(contributions)
    fidelity = estimate_mean(losses, loss_range=float(largest), confidence=_CONFIDENCE)
    if np.count_nonzero(contributions) > MAX_PATTERNS:
        return fidelity, None, None
    event = cancelling_event(contributions, around.flip_probability)
    drops = around.sample_event(event, n).drops
    return fidelity, estimate_mean(drops**2, confidence=_CONFIDENCE), event.probability
