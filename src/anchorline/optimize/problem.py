"""The problem and its answer: `Problem`, `Variant`, the fit of one support, `Solution` and `Status`."""

import enum
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import CertificateError, InfeasibleError, NotOptimalError, NumericalError, ParameterError
from anchorline.optimize.evidence import Evidence

# The drops are the unit of all these constants (`Problem.unit`).
_NEGLIGIBLE = 2.0**-20  # a term this small changes the objective by 1e-12 of mean t^2
_RCOND = 1e-12  # singular values below this share of the largest one are noise in the moments
_SLACK = 1e-12  # a value outside a bound by at most this share of its size counts as on the bound
_STEEP = 1e-12  # releasing a bound whose multiplier has the wrong sign but is smaller than this gains nothing
_OUT_OF_REACH = 1e-14  # a total beyond the box by at most this share is only rounded


@dataclass(frozen=True, kw_only=False, eq=False)
class Problem:
    r"""Find the anchored sum of at most ``k`` terms that fits the evidence best.

    .. math:: \min_u\ \tfrac1n\|t - F u\|_2^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ \|u\|_0 + [u_0 \ne c] \le k,\ |u_j| \le \text{box},
              |u_0| \le \text{box}

    ``prediction`` is the scaled f(x). ``origin`` is c, the scaled value of a zero output: an intercept that
    equals the origin does not count as a term. ``box=None`` removes the box. The problem is the better of
    two best-subset problems (`variants`). With starting level, k - 1 literals are chosen, and their sum may be
    any number that keeps :math:`|u_0| \le` box. Without starting level, k literals are chosen, and they must add
    up to f(x) - c. The origin is not a term, so the box does not limit it.

    ``groups`` (d,) numbers the attribute that each literal speaks about. Literals of one attribute may depend on
    each other strongly, for example an interval on its two bounds. The exact solver uses the groups to shorten its
    proofs; the best objective does not depend on them. None means that every literal is its own group.

    Examples
    --------
    >>> from anchorline.optimize.evidence import Evidence
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.0, 0.5])
    >>> Problem(evidence, k=2, prediction=0.75).variants
    (Variant(size=1, low=-0.25, high=1.75), Variant(size=2, low=0.75, high=0.75))
    """

    evidence: Evidence
    k: int
    prediction: float
    box: float | None = 1.0
    origin: float = 0.0
    groups: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.groups is not None:
            object.__setattr__(self, "groups", _check_groups(self.groups, self.n_literals))
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise ParameterError(f"k is {self.k!r}, but it must be a whole number of at least 1. Type, say, k=5.")
        for name in ("prediction", "origin"):
            if not np.isfinite(getattr(self, name)):
                raise ParameterError(
                    f"{name} is {getattr(self, name)!r}, but it must be a finite number. "
                    f"Type the scaled number, for example {name}=0.0."
                )
        if self.box is not None and not (np.isfinite(self.box) and self.box > 0):
            raise ParameterError(
                f"box is {self.box!r}, but it must be a positive number. "
                "Type box=1.0, or box=None to remove the box."
            )

    @property
    def n_literals(self) -> int:
        """Number of literals d."""
        return self.evidence.n_literals

    @cached_property
    def variants(self) -> "tuple[Variant, ...]":
        """The best-subset problems to solve; the better of their answers is the answer."""
        box = np.inf if self.box is None else self.box
        total = self.prediction - self.origin
        with_intercept = Variant(min(self.k - 1, self.n_literals), self.prediction - box, self.prediction + box)
        without_intercept = Variant(min(self.k, self.n_literals), total, total)
        # If the variant with starting level may use every literal and the origin, the other one cannot fit better.
        redundant = without_intercept.size == with_intercept.size and abs(self.origin) <= box
        return (with_intercept,) if redundant else (with_intercept, without_intercept)

    @cached_property
    def unit(self) -> float:
        """The size of the drops: the power of 2 nearest to their root mean square; of the sum if all are zero."""
        size = math.sqrt(self.evidence.drop_square) or max(abs(self.prediction), abs(self.origin)) or 1.0
        return 2.0 ** round(math.log2(size))

    @cached_property
    def scaled(self) -> "Problem":
        """The same problem in units of the drops; every number is divided by the `unit`, exactly."""
        return replace(
            self,
            evidence=self.evidence.scaled(1 / self.unit),
            prediction=self.prediction / self.unit,
            box=None if self.box is None else self.box / self.unit,
            origin=self.origin / self.unit,
        )

    def objective(self, contributions: np.ndarray) -> float:
        """Mean of ``(t - F u)^2`` over the sample, for dense contributions (d,)."""
        return self.evidence.mean_square(contributions)

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
        fitted = self._fit_all(support, variant) if len(support) <= variant.size else None
        if fitted is None:
            return None
        small = (np.abs(fitted) <= _NEGLIGIBLE * self.unit) & (fitted != 0)
        if small.any():
            refitted = self.fit_variant(support[~small], variant)
            if refitted is not None:
                return refitted
        contributions = np.zeros(self.n_literals)
        contributions[support] = fitted
        if variant.low == variant.high:  # without starting level
            return contributions, self.origin
        return self._anchor(contributions)

    def intercept(self, contributions: np.ndarray) -> float:
        """The starting level that anchors the contributions; rounding does not move it out of the box."""
        box = np.inf if self.box is None else self.box
        return min(max(self.prediction - float(contributions.sum()), -box), box)

    def _anchor(self, contributions: np.ndarray) -> tuple[np.ndarray, float]:
        """Add the intercept, or leave it out if it differs from the origin by a negligible amount only."""
        box, total = np.inf if self.box is None else self.box, self.prediction - self.origin
        intercept = self.intercept(contributions)
        if abs(intercept - self.origin) <= _NEGLIGIBLE * self.unit and (contributions.any() or total == 0):
            moved = _with_sum(contributions, total, total, box)
            if moved is not None:
                return moved, self.origin
        return contributions, intercept

    def smallest_objective(self, support: np.ndarray, variant: "Variant") -> float:
        """Objective of the literals of a support with negligible terms kept; inf if nothing is feasible."""
        fitted, contributions = self._fit_all(support, variant), np.zeros(self.n_literals)
        if fitted is None:
            return np.inf
        contributions[support] = fitted
        return self.objective(contributions)

    def _fit_all(self, support: np.ndarray, variant: "Variant") -> np.ndarray | None:
        unit, gram = self.unit, self.evidence.second_moments[np.ix_(support, support)]
        cross, box = self.evidence.cross_moments[support] / unit, None if self.box is None else self.box / unit
        fitted = fit_support(gram, cross, variant.low / unit, variant.high / unit, box)
        return None if fitted is None else fitted * unit

    def n_terms(self, contributions: np.ndarray, intercept: float) -> int:
        """Number of terms of a sum: its literals, and the intercept unless it equals the origin."""
        return int(np.count_nonzero(contributions)) + int(intercept != self.origin)


def _check_groups(groups: np.ndarray, n_literals: int) -> np.ndarray:
    """Renumber the groups 0, 1, ... without gaps."""
    groups = np.asarray(groups)
    if groups.shape != (n_literals,):
        raise ParameterError(
            f"groups has shape {groups.shape}, but the evidence is on {n_literals} literals, so it must have the "
            f"shape ({n_literals},). Type the number of its attribute for every literal, or groups=None."
        )
    numbers: np.ndarray = np.unique(groups, return_inverse=True)[1].astype(np.intp)
    numbers.setflags(write=False)
    return numbers


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the two variants of the sum: with or without the starting level.

    Both choose at most ``size`` literals whose contributions add up to a number in [low, high]. With starting
    level, the interval is the range that keeps the intercept inside the box. Without, low equals high.
    """

    size: int
    low: float
    high: float


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """The answer that a solver claims for one problem; `audit.check` recomputes it.

    ``contributions`` is dense, with one number per literal. Together with ``intercept`` the contributions add up
    to the prediction. ``lower_bound <= best objective on the sample <= objective``. ``n_nodes`` is the number of
    search nodes.
    """

    contributions: np.ndarray
    intercept: float
    objective: float
    lower_bound: float = 0.0  # a mean square is never negative
    status: "Status"
    n_nodes: int = 0

    def __post_init__(self) -> None:
        contributions = np.array(self.contributions, dtype=np.float64)
        contributions.setflags(write=False)
        object.__setattr__(self, "contributions", contributions)
        if self.status is Status.INFEASIBLE:
            return
        if not self.lower_bound <= self.objective:  # also catches NaN
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


class Status(enum.Enum):
    """How a search ended; the value of each member is its help text."""

    OPTIMAL = "Proved: on this sample, no other answer to the same question is better."
    LIMIT = "Stopped at a limit. `gap` bounds the possible improvement; raise `time_limit` or `node_limit`."
    CHOSEN = "A second sample preferred this rule; on the first sample another rule is better by at most `gap`."
    HEURISTIC = "The solver computed no bound. Use `solver='exact'` to obtain one."
    RELAXED = "This is a lower bound and not an explanation, because it has more than k terms."
    INFEASIBLE = "No sum of at most k terms inside the box reaches the prediction; raise `k` or `box`."
    NUMERICAL = "Rounding errors are too large for a proof; `gap` bounds the possible improvement."

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return getattr, (Status, self.name)  # by name, so that pickles survive a reworded text
