"""The question and its answer: a Problem, the fit of one support, a Solution, and how a search can end."""

import enum
from dataclasses import dataclass

import numpy as np

from anchorline.errors import CertificateError, InfeasibleError, NotOptimalError, NumericalError, ParameterError
from anchorline.optimize.evidence import GRID, Evidence


class Status(enum.Enum):
    """How a search ended; the value of each member is the help text."""

    OPTIMAL = "Proved: on this sample there is no better answer to what was asked."
    LIMIT = "Stopped at a limit. `gap` bounds what is left; raise `time_limit` or `node_limit`."
    CHOSEN = "A second sample preferred it; on the first one another rule is better by at most `gap`."
    HEURISTIC = "No bound was sought. Use `solver='exact'` to obtain one."
    RELAXED = "A lower bound, not an explanation: more than k terms."
    INFEASIBLE = "No sum of at most k terms inside the box reaches the prediction; raise `k` or `box`."
    NUMERICAL = "The statistics are too ill-conditioned to decide; draw more samples."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """What a solver claims about one problem; `certify.check` recomputes it.

    ``contributions`` is dense, one a literal, and with ``intercept`` adds up to the prediction.
    ``lower_bound <= best objective on the sample <= objective``. ``n_nodes`` counts search nodes.
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
        if self.status is Status.INFEASIBLE:
            return
        if not self.gap >= -1e-9 * max(1.0, abs(self.objective)):  # catches NaN
            raise CertificateError.crossed(self.objective, self.lower_bound)

    @property
    def gap(self) -> float:
        """How far the objective may be above the best on this sample."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def support(self) -> np.ndarray:
        """Indices of the literals with a contribution."""
        return np.flatnonzero(self.contributions)

    def require_optimal(self) -> "Solution":
        """Return self if proved optimal, else raise `NotOptimalError`."""
        if self.status is not Status.OPTIMAL:
            raise NotOptimalError(f"{self.status.value} (gap {self.gap:.3g})")
        return self


_NEGLIGIBLE = 2 / GRID  # drops are rounded to 1 / GRID: a term this small is rounding, not a reason


@dataclass(frozen=True, slots=True)
class Variant:
    """At most ``size`` literals whose contributions add up to something in [low, high]."""

    size: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=False, eq=False)
class Problem:
    r"""Find the anchored sum of at most ``k`` terms that fits the evidence best.

    .. math:: \min_u\ \tfrac1n\|t - F u\|_2^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ \|u\|_0 + [u_0 \ne c] \le k,\ |u_j| \le \text{box},
              |u_0| \le \text{box}

    ``prediction`` is the scaled f(x); ``origin`` c is the scaled value of a zero output, so that an
    intercept equal to it is no term; ``box=None`` lifts the box. It is the better of two best-subset
    problems (`cases`): with intercept, k - 1 literals whose sum may be anything that keeps
    :math:`|u_0| \le` box; without, k literals that add up to f(x) - c.

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

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise ParameterError(f"k is {self.k!r}; needed a whole number of terms, at least 1.")
        for name in ("prediction", "origin"):
            if not np.isfinite(getattr(self, name)):
                raise ParameterError(f"{name} is {getattr(self, name)!r}; needed a finite number.")
        if self.box is not None and not (np.isfinite(self.box) and self.box > 0):
            raise ParameterError(f"box is {self.box!r}; needed a positive number, or None to lift it.")

    @property
    def n_literals(self) -> int:
        """Number of literals d."""
        return self.evidence.n_literals

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The best-subset problems whose better answer is the answer."""
        box = np.inf if self.box is None else self.box
        total = self.prediction - self.origin
        with_intercept = Variant(min(self.k - 1, self.n_literals), self.prediction - box, self.prediction + box)
        without = Variant(min(self.k, self.n_literals), total, total)
        # With every literal allowed beside the intercept, leaving the intercept out gains nothing.
        redundant = without.size == with_intercept.size
        return (with_intercept,) if redundant or abs(self.origin) > box else (with_intercept, without)

    def objective(self, contributions: np.ndarray) -> float:
        """Mean of ``(t - F u)^2`` over the sample, for dense contributions (d,)."""
        support = np.flatnonzero(contributions)
        values = np.asarray(contributions, dtype=np.float64)[support]
        gram = self.evidence.second_moments[np.ix_(support, support)]
        fitted = values @ gram @ values - 2 * self.evidence.cross_moments[support] @ values
        return max(0.0, float(self.evidence.drop_square + fitted))

    def fit(self, support: np.ndarray) -> tuple[np.ndarray, float]:
        """Best contributions (dense) and intercept with these literals; exact anchor, exact zeros.

        Raises `InfeasibleError` where the box does not let them reach the prediction.
        """
        support = np.unique(np.asarray(support, dtype=np.intp))
        for variant in self.variants:
            fitted = self.fit_variant(support, variant)
            if fitted is not None:
                return fitted
        raise InfeasibleError(
            f"No contributions of the {len(support)} literals {support.tolist()} inside the box "
            f"{self.box} add up, in at most {self.k} terms, to the prediction {self.prediction}."
        )

    def fit_variant(self, support: np.ndarray, variant: Variant) -> tuple[np.ndarray, float] | None:
        """`fit` within one case; None where the support is too large for it or nothing is feasible."""
        fitted = self._fit_all(support, variant) if len(support) <= variant.size else None
        if fitted is None:
            return None
        small = (np.abs(fitted) <= _NEGLIGIBLE) & (fitted != 0)
        if small.any():
            again = self.fit_variant(support[~small], variant)
            if again is not None:
                return again
        contributions = np.zeros(self.n_literals)
        contributions[support] = fitted
        if variant.low == variant.high:
            _shift_to(contributions, variant.low)
            return contributions, self.origin
        intercept = self.prediction - float(contributions.sum())
        total = self.prediction - self.origin
        if abs(intercept - self.origin) <= _NEGLIGIBLE and (contributions.any() or total == 0):
            _shift_to(contributions, total)
            intercept = self.origin
        return contributions, intercept

    def least_objective(self, support: np.ndarray, variant: Variant) -> float:
        """What the literals of a support reach, with terms however small; inf where nothing is feasible."""
        fitted, contributions = self._fit_all(support, variant), np.zeros(self.n_literals)
        if fitted is None:
            return np.inf
        contributions[support] = fitted
        return self.objective(contributions)

    def _fit_all(self, support: np.ndarray, variant: Variant) -> np.ndarray | None:
        gram = self.evidence.second_moments[np.ix_(support, support)]
        return fit_support(gram, self.evidence.cross_moments[support], variant.low, variant.high, self.box)

    def n_terms(self, contributions: np.ndarray, intercept: float) -> int:
        """Terms of a sum: its literals, and the intercept where it is not a zero output."""
        return int(np.count_nonzero(contributions)) + int(intercept != self.origin)


def _shift_to(contributions: np.ndarray, total: float) -> None:
    """Take the last rounding error of the sum out of the largest contribution, in place."""
    if contributions.any():
        largest = int(np.argmax(np.abs(contributions)))
        contributions[largest] -= float(contributions.sum()) - total


_RCOND = 1e-12  # singular values below this share of the largest are noise of the moments
_SLACK = 1e-12  # how far outside a bound still counts as on it
_STEEP = 1e-12  # a multiplier of the wrong sign but smaller than this gains nothing


def fit_support(
    second: np.ndarray, cross: np.ndarray, low: float, high: float, box: float | None
) -> np.ndarray | None:
    r"""Contributions of one support, or None where nothing is feasible.

    .. math:: \min_u u^\top G u - 2 h^\top u \quad\text{s.t.}\quad
              \text{low} \le \mathbf 1^\top u \le \text{high},\ |u_j| \le \text{box}

    ``second`` is G (s, s) and ``cross`` is h (s,), both uncentred and restricted to the support;
    G may be singular. Least squares, unless that leaves the box. Mutates nothing.
    """
    unit = float(second.diagonal().max(initial=0.0)) or 1.0  # rare flips make small moments, not degenerate ones
    second, cross, pinned = second / unit, cross / unit, np.zeros(len(cross))
    fitted = _stationary(second, cross, pinned, low if low == high else None)
    if fitted is not None and low != high and not low - _SLACK <= fitted.sum() <= high + _SLACK:
        fitted = _stationary(second, cross, pinned, low if fitted.sum() < low else high)
    if fitted is None or (box is not None and np.abs(fitted).max(initial=0.0) > box + _SLACK):
        return _active_set(second, cross, low, high, box)
    return fitted


def _stationary(
    second: np.ndarray, cross: np.ndarray, pinned: np.ndarray, total: float | None
) -> np.ndarray | None:
    """Minimum with the non-zero entries of ``pinned`` held, and the sum too where a total is given."""
    solution = pinned.copy()
    free = np.flatnonzero(pinned == 0)
    target = cross[free] - second[free] @ solution
    gram = second[free[:, None], free]
    if total is None:
        solution[free] = np.linalg.lstsq(gram, target, rcond=_RCOND)[0]
        return solution
    left = total - solution.sum()
    if not len(free):
        return solution if abs(left) <= _SLACK else None
    system = np.ones((len(free) + 1, len(free) + 1))  # bordered by the sum
    system[:-1, :-1], system[-1, -1] = gram, 0.0
    solution[free] = np.linalg.lstsq(system, np.append(target, left), rcond=_RCOND)[0][:-1]
    return solution


def _active_set(
    second: np.ndarray, cross: np.ndarray, low: float, high: float, box: float | None
) -> np.ndarray | None:
    """Walk from minimum to minimum, holding the bounds met and letting go of those that hold back.

    ``sides`` says for each literal, then for the sum, which bound is held (-1, 0, +1). Every step
    goes to the minimum with the held bounds, or to the first new bound on the way. Letting go of the
    bound of least index (Bland's rule) keeps it from cycling.
    """
    size = len(cross)
    if box is None or low > size * box + _SLACK or high < -size * box - _SLACK or not size:
        return None
    point = np.full(size, np.clip(0.0, low, high) / size)
    sides = np.zeros(size + 1, dtype=np.int8)
    sides[size] = 1 if low == high else 0
    for _ in range(100 * (size + 1)):
        total = None if not sides[size] else (high if sides[size] > 0 else low)
        goal = _stationary(second, cross, sides[:size] * box, total)
        step = point * 0 if goal is None else goal - point
        share, met = _first_bound(point, step, sides, low, high, box)
        point = point + share * step
        if met is not None:
            sides[met[0]] = met[1]
            continue
        loose = _held_back(second @ point - cross, sides, low == high)
        if loose is None:
            return np.asarray(np.clip(point, -box, box))
        sides[loose] = 0
    raise NumericalError(f"The fit of {size} literals inside the box {box} does not settle.")


def _first_bound(
    point: np.ndarray, step: np.ndarray, sides: np.ndarray, low: float, high: float, box: float
) -> tuple[float, tuple[int, int] | None]:
    """Share of the step up to the first bound that is not held yet, and that bound (index, side)."""
    values = np.append(point, point.sum())
    moves = np.append(step, step.sum())
    lows, highs = np.full(len(values), -box), np.full(len(values), box)
    lows[-1], highs[-1] = low, high
    room = np.where(moves > 0, highs - values, values - lows)
    over = (np.abs(moves) > room + _SLACK) & (sides == 0)
    if not over.any():
        return 1.0, None
    shares = np.where(over, np.maximum(room, 0.0) / np.where(over, np.abs(moves), 1.0), np.inf)
    first = int(np.argmin(shares))
    return float(shares[first]), (first, 1 if moves[first] > 0 else -1)


def _held_back(gradient: np.ndarray, sides: np.ndarray, equality: bool) -> int | None:
    """Index of the first held bound that the objective pulls away from, None at the optimum."""
    size = len(gradient)
    held = sides[:size] != 0
    price = 0.0
    if sides[size]:
        if not held.all():
            price = -float(gradient[~held].mean())
        else:  # any price between what the literals at their lower and upper bounds ask for
            least = (-gradient[sides[:size] < 0]).max(initial=-np.inf)
            most = (-gradient[sides[:size] > 0]).min(initial=np.inf)
            price = float(np.clip(0.0, min(least, most), max(least, most)))
    pull = np.append((gradient + price) * sides[:size], -price * sides[size])
    if equality:
        pull[size] = 0.0
    wrong = np.flatnonzero(pull > _STEEP)
    return int(wrong[0]) if len(wrong) else None
