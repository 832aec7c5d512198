"""The problem every solver gets: evidence, a number of terms, a prediction, a box."""

from dataclasses import dataclass

import numpy as np

from anchorline.errors import InfeasibleError, ParameterError
from anchorline.evidence import GRID, Evidence
from anchorline.optimize.support import fit_support

_NEGLIGIBLE = 2 / GRID  # drops are rounded to 1 / GRID: a term this small is rounding, not a reason


@dataclass(frozen=True, slots=True)
class Case:
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
    >>> from anchorline.evidence import Evidence
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.0, 0.5])
    >>> Problem(evidence, k=2, prediction=0.75).cases
    (Case(size=1, low=-0.25, high=1.75), Case(size=2, low=0.75, high=0.75))
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
    def cases(self) -> tuple[Case, ...]:
        """The best-subset problems whose better answer is the answer."""
        box = np.inf if self.box is None else self.box
        total = self.prediction - self.origin
        with_intercept = Case(min(self.k - 1, self.n_literals), self.prediction - box, self.prediction + box)
        without = Case(min(self.k, self.n_literals), total, total)
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
        for case in self.cases:
            fitted = self.fit_case(support, case)
            if fitted is not None:
                return fitted
        raise InfeasibleError(
            f"No contributions of the {len(support)} literals {support.tolist()} inside the box "
            f"{self.box} add up, in at most {self.k} terms, to the prediction {self.prediction}."
        )

    def fit_case(self, support: np.ndarray, case: Case) -> tuple[np.ndarray, float] | None:
        """`fit` within one case; None where the support is too large for it or nothing is feasible."""
        fitted = self._fit_all(support, case) if len(support) <= case.size else None
        if fitted is None:
            return None
        small = (np.abs(fitted) <= _NEGLIGIBLE) & (fitted != 0)
        if small.any():
            again = self.fit_case(support[~small], case)
            if again is not None:
                return again
        contributions = np.zeros(self.n_literals)
        contributions[support] = fitted
        if case.low == case.high:
            _shift_to(contributions, case.low)
            return contributions, self.origin
        intercept = self.prediction - float(contributions.sum())
        total = self.prediction - self.origin
        if abs(intercept - self.origin) <= _NEGLIGIBLE and (contributions.any() or total == 0):
            _shift_to(contributions, total)
            intercept = self.origin
        return contributions, intercept

    def least_objective(self, support: np.ndarray, case: Case) -> float:
        """What the literals of a support reach, with terms however small; inf where nothing is feasible."""
        fitted, contributions = self._fit_all(support, case), np.zeros(self.n_literals)
        if fitted is None:
            return np.inf
        contributions[support] = fitted
        return self.objective(contributions)

    def _fit_all(self, support: np.ndarray, case: Case) -> np.ndarray | None:
        gram = self.evidence.second_moments[np.ix_(support, support)]
        return fit_support(gram, self.evidence.cross_moments[support], case.low, case.high, self.box)

    def n_terms(self, contributions: np.ndarray, intercept: float) -> int:
        """Terms of a sum: its literals, and the intercept where it is not a zero output."""
        return int(np.count_nonzero(contributions)) + int(intercept != self.origin)


def _shift_to(contributions: np.ndarray, total: float) -> None:
    """Take the last rounding error of the sum out of the largest contribution, in place."""
    if contributions.any():
        largest = int(np.argmax(np.abs(contributions)))
        contributions[largest] -= float(contributions.sum()) - total
