r"""The paper's problem (P4) in terms of moments: `Evidence`, `Problem`, the fit of one support, and `Solution`.

An explanation is a vector w with a constant :math:`w_0` and one weight per literal. All solvers work with the
contributions :math:`u_j = w_j x_j` and the intercept :math:`u_0 = w_0`, so that anchoring reads
:math:`u_0 + \sum_j u_j = f(x)`. A *flip* :math:`F_j \in \{0, 1\}` says that a neighbor z differs from x in
literal j, and its *drop* is :math:`t = (f(x) - f(z)) / 2`. Then :math:`w \cdot z = f(x) - 2 F u`, and the
paper's loss is

.. math:: \tfrac14 (w \cdot z - f(z))^2 = (t - F u)^2
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import (
    CertificateError,
    InfeasibleError,
    NotOptimalError,
    NumericalError,
    ParameterError,
    SampleError,
)

_EPS = float(np.finfo(np.float64).eps)
_SMALLEST, _LARGEST = 1e-70, 1e70  # numbers whose ratios can still be squared
_RARE = 1e-9  # over n: the share of the weight below which the moments do not resolve a row
_ROWS_AT_ONCE = 2**12  # bounds the memory; float32 counts rows exactly up to 2^24
# The drops are the unit of the following constants (`Problem.unit`).
_NEGLIGIBLE = 2.0**-20  # a term this small changes the objective by 1e-12 of mean t^2
_RCOND = 1e-12  # singular values below this share of the largest one are noise in the moments
_SLACK = 1e-12  # a value outside a bound by at most this share of its size counts as on the bound
_STEEP = 1e-12  # releasing a bound whose multiplier has the wrong sign but is smaller than this gains nothing
_OUT_OF_REACH = 1e-14  # a total beyond the box by at most this share is only rounded
_ANCHOR_ROUNDING = 1e-12  # of sums, as a share of their terms
_OBJECTIVE_ROUNDING = 1e-9  # of objectives, as a share of mean t^2


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the time in seconds and on the number of search nodes; None means no limit.

    ``check`` is called in every loop of the exact search, and may raise to interrupt.
    """

    time_limit: float | None = None
    node_limit: int | None = None
    check: Callable[[], object] = tuple  # which does nothing


UNLIMITED = Limits()


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    r"""The moments of a sample: all that (P4) needs to know about it.

    With flips :math:`F \in \{0,1\}^{n \times d}` and drops :math:`t \in [-1, 1]^n`, ``flip_means`` is
    :math:`b = \overline F` (d,), ``second_moments`` :math:`G = \overline{F^\top F}` (d, d), ``cross_moments``
    :math:`h = \overline{F^\top t}` (d,), and ``drop_mean`` and ``drop_square`` are the means of t and t^2. The
    last is the fidelity error of the explanation that consists of the constant only. ``rare_square`` is the part
    of it that comes from rows whose weight is too small to be resolved by moments, about which they prove nothing.
    The arrays are read-only.

    Examples
    --------
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.25, 1.0])
    >>> evidence.flip_means.round(3).tolist(), round(evidence.drop_mean, 3)
    ([0.667, 0.667], 0.583)
    """

    flip_means: np.ndarray
    second_moments: np.ndarray
    cross_moments: np.ndarray
    drop_mean: float
    drop_square: float
    rare_square: float = 0.0

    def __post_init__(self) -> None:
        for array in (self.flip_means, self.second_moments, self.cross_moments):
            array.setflags(write=False)

    @classmethod
    def from_sample(cls, flips: Any, drops: Any, weights: Any = None) -> "Evidence":
        """Average a sample of flips (n, d) of 0/1 and drops (n,), with optional weights (n,) >= 0. Cost n d^2.

        Without weights, the sums of flips are exact, and so are those of drops on the grid of 2^-26.
        """
        flips, drops, weights = _checked_sample(flips, drops, weights)
        d, total = flips.shape[1], float(weights.sum())
        pairs, cross, equal = np.zeros((d, d)), np.zeros(d), bool((weights == weights[0]).all())
        for start in range(0, len(drops), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            table, own = flips[rows].astype(np.float32 if equal else np.float64), weights[rows]
            pairs += table.T @ table * weights[0] if equal else table.T @ (table * own[:, None])
            cross += (own * drops[rows]) @ flips[rows].astype(np.float64)
        return cls(
            flip_means=np.diagonal(pairs) / total,
            second_moments=pairs / total,
            cross_moments=cross / total,
            drop_mean=math.fsum(weights * drops) / total,
            drop_square=math.fsum(weights * drops * drops) / total,
            rare_square=math.fsum((weights * drops * drops)[weights < _RARE * total / max(1, len(drops))]) / total,
        )

    @property
    def n_literals(self) -> int:
        """Number of literals d."""
        return len(self.flip_means)

    def scaled(self, factor: float) -> "Evidence":
        """The evidence of the drops times ``factor``; exact if the factor is a power of 2."""
        return replace(
            self,
            cross_moments=self.cross_moments * factor,
            drop_mean=self.drop_mean * factor,
            drop_square=self.drop_square * factor * factor,
            rare_square=self.rare_square * factor * factor,
        )

    def mean_square(self, contributions: np.ndarray) -> float:
        """Mean of ``(t - F u)^2`` for dense contributions u (d,)."""
        gram, cross, values = self._on_support(contributions)
        return max(0.0, float(self.drop_square + (values @ gram @ values - 2 * cross @ values)))

    def blur(self, contributions: np.ndarray) -> float:
        """Most by which rounding may change the mean square of contributions that minimize it."""
        gram, cross, values = self._on_support(contributions)
        sizes = np.abs(values)
        own = float(4 * _EPS * sizes.max(initial=0.0)) ** 2  # at a minimum, their rounding counts by its square
        return own + 4 * _EPS * float(sizes @ gram @ sizes + 2 * np.abs(cross) @ sizes)

    def _on_support(self, contributions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        support = np.flatnonzero(contributions)
        values = np.asarray(contributions, dtype=np.float64)[support]
        return self.second_moments[np.ix_(support, support)], self.cross_moments[support], values


def _checked_sample(flips: Any, drops: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    flips, drops = np.asarray(flips), np.asarray(drops, dtype=np.float64)
    weights = np.ones(drops.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if flips.ndim != 2 or drops.shape != (len(flips),) or weights.shape != drops.shape or len(flips) == 0:
        raise SampleError(
            f"Flips, drops and weights have the shapes {flips.shape}, {drops.shape} and {weights.shape}. They "
            "must have the shapes (n, d), (n,) and (n,) with n >= 1. Type one row of flips per drop."
        )
    if flips.dtype != np.bool_ and not np.all((flips == 0) | (flips == 1)):
        raise SampleError(
            "Flips hold a value other than 0 and 1. Every flip must be 0 or 1. Type 1 for every broken literal."
        )
    if not np.isfinite(drops).all():
        raise SampleError(
            "Drops hold NaN or infinite values. Every drop must be finite. Remove those rows from the sample."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise SampleError(
            "Weights hold a negative, NaN or infinite value, or are all zero. Every weight must be finite and at "
            "least 0. Type the probability of each row."
        )
    largest = float(np.abs(drops).max())
    if largest and not _SMALLEST <= largest <= _LARGEST:
        raise _not_a_size("drop", largest)
    return flips.astype(bool), drops, weights


def _not_a_size(name: str, size: float) -> SampleError:
    return SampleError(
        f"The largest {name} has the size {size:.3g}, but it must be between {_SMALLEST:g} and {_LARGEST:g}, or "
        "0, because squares of other numbers are not computed exactly. Give the output another unit."
    )


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Problem (P4) with the box of (MIP): find the anchored sum of at most ``k`` terms that fits best.

    .. math:: \min_u\ \tfrac1n\|t - F u\|_2^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ \|u\|_0 + [u_0 \ne 0] \le k,\ |u_j| \le \text{box},
              |u_0| \le \text{box}

    ``prediction`` is f(x). ``box=None`` removes the box. The problem is the better of two best-subset problems
    (`variants`). With constant, k - 1 literals are chosen, and their sum may be any number that keeps
    :math:`|u_0| \le` box. Without constant, k literals are chosen, and they must add up to f(x).

    Examples
    --------
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.0, 0.5])
    >>> Problem(evidence, k=2, prediction=0.75).variants
    (Variant(size=1, low=-0.25, high=1.75), Variant(size=2, low=0.75, high=0.75))
    """

    evidence: Evidence
    k: int
    prediction: float
    box: float | None = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise ParameterError(f"k is {self.k!r}, but it must be a whole number of at least 1. Type, say, k=5.")
        if not np.isfinite(self.prediction):
            raise ParameterError(
                f"prediction is {self.prediction!r}, but it must be a finite number. Type the model's output at x."
            )
        if abs(self.prediction) > _LARGEST:
            raise _not_a_size("prediction", abs(self.prediction))
        if self.box is not None and not (np.isfinite(self.box) and self.box > 0):
            raise ParameterError(
                f"box is {self.box!r}, but it must be a positive number. "
                "Type box=1.0, or box=None to remove the box."
            )

    @property
    def n_literals(self) -> int:
        """Number of literals d."""
        return self.evidence.n_literals

    @property
    def limit(self) -> float:
        """The box, or infinity without one."""
        return math.inf if self.box is None else self.box

    @cached_property
    def variants(self) -> "tuple[Variant, ...]":
        """The best-subset problems to solve; the better of their answers is the answer."""
        d, total = self.n_literals, self.prediction
        with_constant = Variant(min(self.k - 1, d), total - self.limit, total + self.limit)
        without_constant = Variant(min(self.k, d), total, total)
        # A constant that may stand beside every literal can be zero, so that the other variant cannot fit better.
        redundant = without_constant.size == with_constant.size
        return (with_constant,) if redundant else (with_constant, without_constant)

    @cached_property
    def unit(self) -> float:
        """The size of the drops: the power of 2 nearest to their root mean square; of f(x) if all are zero."""
        size = math.sqrt(self.evidence.drop_square) or abs(self.prediction) or 1.0
        return 2.0 ** round(math.log2(size))

    @cached_property
    def scaled(self) -> "Problem":
        """The same problem in units of the drops; every number is divided by the `unit`, exactly."""
        return replace(
            self,
            evidence=self.evidence.scaled(1 / self.unit),
            prediction=self.prediction / self.unit,
            box=None if self.box is None else self.box / self.unit,
        )

    def objective(self, contributions: np.ndarray) -> float:
        r"""The empirical fidelity error :math:`\widehat{\mathsf F}`, mean of ``(t - F u)^2``, of u (d,)."""
        return self.evidence.mean_square(contributions)

    def n_terms(self, contributions: np.ndarray, intercept: float) -> int:
        """Number of terms of a sum: its literals, and the intercept unless it is zero."""
        return int(np.count_nonzero(contributions)) + int(intercept != 0)

    def fit(self, support: np.ndarray) -> tuple[np.ndarray, float]:
        """Best contributions (dense) and intercept for the literals of a support.

        The terms add up exactly to the prediction, and literals without a contribution are exactly zero.
        Raises `InfeasibleError` if these literals cannot reach the prediction inside the box.
        """
        support = np.unique(np.asarray(support, dtype=np.intp))
        fits = [self.fit_variant(support, variant) for variant in self.variants]
        feasible = [fitted for fitted in fits if fitted is not None]
        if feasible:
            return min(feasible, key=lambda fitted: self.objective(fitted[0]))
        raise InfeasibleError(
            f"The {len(support)} literals {support.tolist()} cannot add up to the prediction {self.prediction} "
            f"in at most {self.k} terms inside the box {self.box}. A larger k or a larger box is needed. "
            f"Type, for example, Problem(..., k={self.k + 1}) or Problem(..., box=None)."
        )

    def fit_variant(self, support: np.ndarray, variant: "Variant") -> tuple[np.ndarray, float] | None:
        """`fit` within one variant; None if the support is too large for the variant or nothing is feasible."""
        contributions = self._fit_all(support, variant) if len(support) <= variant.size else None
        if contributions is None:
            return None
        small = np.flatnonzero((np.abs(contributions) <= _NEGLIGIBLE * self.unit) & (contributions != 0))
        if len(small):
            refitted = self.fit_variant(np.setdiff1d(support, small), variant)
            if refitted is not None:
                return refitted
        return (contributions, 0.0) if variant.low == variant.high else self._anchored(contributions)

    def smallest_objective(self, support: np.ndarray, variant: "Variant") -> float:
        """Objective of the literals of a support with negligible terms kept; inf if nothing is feasible."""
        contributions = self._fit_all(support, variant)
        return np.inf if contributions is None else self.objective(contributions)

    def _anchored(self, contributions: np.ndarray) -> tuple[np.ndarray, float]:
        """Add the intercept; leave it out if it is negligible. Rounding does not move it out of the box."""
        intercept = min(max(self.prediction - float(contributions.sum()), -self.limit), self.limit)
        if abs(intercept) <= _NEGLIGIBLE * self.unit and (contributions.any() or self.prediction == 0):
            moved = _with_sum(contributions, self.prediction, self.prediction, self.limit)
            if moved is not None:
                return moved, 0.0
        return contributions, intercept

    def _fit_all(self, support: np.ndarray, variant: "Variant") -> np.ndarray | None:
        """Contributions (d,) of a sorted support, however small; None if nothing is feasible."""
        unit, gram = self.unit, self.evidence.second_moments[np.ix_(support, support)]
        cross, box = self.evidence.cross_moments[support] / unit, None if self.box is None else self.box / unit
        fitted = fit_support(gram, cross, variant.low / unit, variant.high / unit, box)
        if fitted is None:
            return None
        contributions = np.zeros(self.n_literals)
        contributions[support] = fitted * unit
        return contributions


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the two variants of the sum: with or without the constant.

    Both choose at most ``size`` literals whose contributions add up to a number in [low, high]. With constant, the
    interval is the range that keeps the intercept inside the box. Without, low equals high.
    """

    size: int
    low: float
    high: float


def fit_support(
    second: np.ndarray, cross: np.ndarray, low: float, high: float, box: float | None
) -> np.ndarray | None:
    r"""Contributions of one support, or None if nothing is feasible.

    .. math:: \min_u u^\top G u - 2 h^\top u \quad\text{s.t.}\quad
              \text{low} \le \mathbf 1^\top u \le \text{high},\ |u_j| \le \text{box}

    ``second`` is G (s, s) and ``cross`` is h (s,), both uncentered and restricted to the support; G may be
    singular. Solves by least squares, and by an active-set method if that solution leaves the box. Mutates
    nothing.
    """
    # Rare flips make all moments small. Scaling keeps them from looking degenerate.
    unit = float(second.diagonal().max(initial=0.0)) or 1.0
    second, cross, pinned = second / unit, cross / unit, np.zeros(len(cross))
    fitted = _stationary(second, cross, pinned, low if low == high else None)
    if fitted is not None and low != high:
        total, slack = fitted.sum(), _slack(fitted)
        if not low - slack <= total <= high + slack:
            fitted = _stationary(second, cross, pinned, low if total < low else high)
    if fitted is None or (box is not None and np.abs(fitted).max(initial=0.0) > box + _slack(fitted)):
        fitted = _active_set(second, cross, low, high, box)
    if fitted is None:
        return None
    limit = np.inf if box is None else box
    fitted = np.clip(fitted, -limit, limit)
    moved = _with_sum(fitted, low, high, limit)
    return fitted if moved is None else moved


def _with_sum(values: np.ndarray, low: float, high: float, box: float) -> np.ndarray | None:
    """Move the largest value that has room in the box so that the sum lies in [low, high]; None if none has.

    Only rounding errors and negligible amounts are moved. Mutates nothing.
    """
    total = float(values.sum())
    missing = min(max(total, low), high) - total
    if missing == 0:
        return values
    for j in np.argsort(-np.abs(values), kind="stable"):
        if values[j] != 0 and abs(values[j] + missing) <= box:
            moved = values.copy()
            moved[j] += missing
            return moved
    return None


def _slack(values: np.ndarray) -> float:
    return _SLACK * max(1.0, float(np.abs(values).max(initial=0.0)))


def _stationary(
    second: np.ndarray, cross: np.ndarray, pinned: np.ndarray, total: float | None
) -> np.ndarray | None:
    """Minimum with the non-zero entries of ``pinned`` held fixed, and also the sum if ``total`` is given."""
    solution = pinned.copy()
    free = np.flatnonzero(pinned == 0)
    target = cross[free] - second[free] @ solution
    gram = second[free[:, None], free]
    if total is None:
        solution[free] = np.linalg.lstsq(gram, target, rcond=_RCOND)[0]
        return solution
    remainder = total - solution.sum()
    if not len(free):
        return solution if abs(remainder) <= _SLACK * max(1.0, abs(total)) else None
    system = np.ones((len(free) + 1, len(free) + 1))  # the last row and column hold the sum constraint
    system[:-1, :-1], system[-1, -1] = gram, 0.0
    never = gram.diagonal() == 0  # such literals take the sum at no cost; left out, it cannot blur the others
    base = never * (remainder / max(1, never.sum()))
    right = np.append(target, 0.0 if never.any() else remainder)
    solution[free] = base + np.linalg.lstsq(system, right, rcond=_RCOND)[0][:-1]
    return solution


def _active_set(
    second: np.ndarray, cross: np.ndarray, low: float, high: float, box: float | None
) -> np.ndarray | None:
    """Solve `fit_support` inside the box by an active-set method; None if nothing is feasible.

    ``sides`` holds one entry per literal and a last one for the sum: which bound is held (-1, 0, +1). Every
    step goes to the minimum under the held bounds, or to the first new bound on the way. Releasing the
    bound of smallest index (Bland's rule) prevents cycles.
    """
    size = len(cross)
    if box is None or not size or max(low, -high) > size * box * (1 + _OUT_OF_REACH):
        return None
    point = np.full(size, np.clip(0.0, low, high) / size)
    sides = np.zeros(size + 1, dtype=np.int8)
    sides[size] = 1 if low == high else 0
    for _ in range(100 * (size + 1)):
        total = None if not sides[size] else (high if sides[size] > 0 else low)
        target = _stationary(second, cross, sides[:size] * box, total)
        step = point * 0 if target is None else target - point
        share, hit = _first_bound(point, step, sides, low, high, box)
        point = point + share * step
        if hit is not None:
            sides[hit[0]] = hit[1]
            continue
        released = _bound_to_release(second @ point - cross, sides, low == high, _STEEP * _slack(point) / _SLACK)
        if released is None:
            return point
        sides[released] = 0
    raise NumericalError(
        f"The fit of {size} literals inside the box {box} did not converge. Better conditioned statistics are "
        "needed: draw more samples."
    )


def _first_bound(
    point: np.ndarray, step: np.ndarray, sides: np.ndarray, low: float, high: float, box: float
) -> tuple[float, tuple[int, int] | None]:
    """Share of the step up to the first bound that is not held yet, and that bound (index, side)."""
    values = np.append(point, point.sum())
    moves = np.append(step, step.sum())
    lows, highs = np.full(len(values), -box), np.full(len(values), box)
    lows[-1], highs[-1] = low, high
    room = np.where(moves > 0, highs - values, values - lows)
    over = (np.abs(moves) > room + _slack(values)) & (sides == 0)
    if not over.any():
        return 1.0, None
    shares = np.where(over, np.maximum(room, 0.0) / np.where(over, np.abs(moves), 1.0), np.inf)
    first = int(np.argmin(shares))
    return float(shares[first]), (first, 1 if moves[first] > 0 else -1)


def _bound_to_release(gradient: np.ndarray, sides: np.ndarray, equality: bool, steep: float) -> int | None:
    """Index of the first held bound whose release lowers the objective; None at the optimum."""
    size = len(gradient)
    held = sides[:size] != 0
    price = 0.0
    if sides[size]:
        if not held.all():
            price = -float(gradient[~held].mean())
        else:  # any price between those required by the literals at their lower and at their upper bounds
            from_lower = (-gradient[sides[:size] < 0]).max(initial=-np.inf)
            from_upper = (-gradient[sides[:size] > 0]).min(initial=np.inf)
            price = float(np.clip(0.0, min(from_lower, from_upper), max(from_lower, from_upper)))
    pull = np.append((gradient + price) * sides[:size], -price * sides[size])
    if equality:
        pull[size] = 0.0
    wrong = np.flatnonzero(pull > steep)
    return int(wrong[0]) if len(wrong) else None


class Status(enum.Enum):
    """How a solver ended; the value of each member is its help text."""

    OPTIMAL = "Proved: on this sample, no explanation with at most k terms in the box fits better."
    LIMIT = "Stopped at a limit. `gap` bounds the possible improvement; raise `time_limit`."
    HEURISTIC = "The solver computed no bound. Use `solver='exact'` to obtain one."
    RELAXED = "This is a lower bound and not an explanation, because it has more than k terms."
    INFEASIBLE = "No sum of at most k terms inside the box reaches the prediction; raise `k` or `box`."
    NUMERICAL = "Rounding errors are too large for a proof; `gap` bounds the possible improvement."

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return getattr, (Status, self.name)  # by name, so that pickles survive a reworded text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """The answer that a solver claims for one problem; `check` recomputes it.

    ``contributions`` is dense, with one number per literal. Together with ``intercept`` the contributions add up
    to the prediction. ``lower_bound <= best objective on the sample <= objective``. ``n_nodes`` is the number of
    search nodes.
    """

    contributions: np.ndarray
    intercept: float
    objective: float
    lower_bound: float = 0.0  # a mean square is never negative
    status: Status
    n_nodes: int = 0

    def __post_init__(self) -> None:
        contributions = np.array(self.contributions, dtype=np.float64)
        contributions.setflags(write=False)
        object.__setattr__(self, "contributions", contributions)
        if self.status is not Status.INFEASIBLE and not self.lower_bound <= self.objective:  # also catches NaN
            raise CertificateError.crossed(self.objective, self.lower_bound)

    @property
    def gap(self) -> float:
        """Upper bound on how far the objective is above the best one on this sample."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def support(self) -> np.ndarray:
        """Indices of the literals with a contribution."""
        return np.flatnonzero(self.contributions)

    def require_optimal(self) -> "Solution":
        """Return self if it is proved optimal, otherwise raise `NotOptimalError`."""
        if self.status is not Status.OPTIMAL:
            raise NotOptimalError(f"{self.status.value} (gap {self.gap:.3g})")
        return self


def check(problem: Problem, solution: Solution) -> None:
    """Raise `CertificateError` unless objective, anchor, sparsity and box are as claimed.

    The lower bound is not recomputed, because only another proof can confirm it.
    """
    if solution.status is Status.INFEASIBLE:
        return
    u, intercept = solution.contributions, solution.intercept
    residual, terms = abs(intercept + u.sum() - problem.prediction), abs(intercept) + np.abs(u).sum()
    if not residual <= _ANCHOR_ROUNDING * max(terms, abs(problem.prediction)):
        raise CertificateError(
            f"The terms miss the prediction by {residual:.3g}, but they may miss it by at most "
            f"{_ANCHOR_ROUNDING:g} of the size of the terms, which is rounding."
        )
    objective = problem.objective(u)
    if not abs(objective - solution.objective) <= _OBJECTIVE_ROUNDING * max(
        problem.evidence.drop_square, objective
    ):
        raise CertificateError(
            f"The solution claims the objective {solution.objective!r}, but recomputing it gives {objective!r}."
        )
    if solution.status is Status.RELAXED:
        return
    if problem.n_terms(u, intercept) > problem.k:
        raise CertificateError(
            f"The solution has {problem.n_terms(u, intercept)} terms, but at most k = {problem.k} are allowed."
        )
    largest = max(np.abs(u).max(initial=0.0), abs(intercept))
    if solution.status is not Status.HEURISTIC and largest > problem.limit:
        raise CertificateError(
            f"A term has the size {largest!r}, but no term may be larger than the box {problem.box}."
        )
