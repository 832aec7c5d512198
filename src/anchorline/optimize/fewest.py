"""The fewest sets that cover enough rows: an integer program whose relaxation is nearly tight, solved by HiGHS."""

import math
from dataclasses import dataclass

import numpy as np

from anchorline.errors import SampleError

_NODE_LIMIT, _SECONDS = 1_000, 10.0  # per program; rules are mostly proven at the first node, random sets not
_ROUNDING = 1e-6  # HiGHS counts rows in floating point


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Chosen sets, how many rows they cover, and what is proven.

    No choice of as many sets covers more than ``most_covered`` rows. If ``is_fewest``, no smaller choice covers as
    many rows as were wanted.
    """

    chosen: tuple[int, ...]
    n_covered: int
    most_covered: int
    is_fewest: bool


def fewest_sets(covers: np.ndarray, wanted: int, max_sets: int) -> Cover:
    r"""Choose the fewest sets that cover ``wanted`` rows, and among them those that cover most.

    .. math:: \min \textstyle\sum_j x_j \quad\text{s.t.}\quad y_i \le \sum_j a_{ij} x_j,\
              \sum_i w_i y_i \ge \text{wanted},\ x \in \{0, 1\}^m,\ y \in [0, 1]^n

    ``covers`` (n, m) says which rows each set covers. If ``max_sets`` sets cannot cover ``wanted`` rows, they
    cover as many as possible, and ``is_fewest`` is False. Rows that the same sets cover count as one row with a
    weight. Mutates nothing.

    Examples
    --------
    >>> fewest_sets([[1, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 1]], wanted=4, max_sets=3).chosen
    (1, 2)
    """
    covers = np.asarray(covers, dtype=bool)
    if covers.ndim != 2:
        raise SampleError(f"covers has shape {covers.shape}, but it must have the shape (rows, sets).")
    patterns, weights = np.unique(covers[covers.any(axis=1)], axis=0, return_counts=True)
    program = _Program(patterns, weights)
    best, bound = program.most(min(max_sets, covers.shape[1]))
    if program.covered(best) < min(wanted, int(weights.sum())):
        return Cover(chosen=best, n_covered=program.covered(best), most_covered=bound, is_fewest=False)
    fewer, least = program.fewest(min(wanted, int(weights.sum())), best)
    chosen, bound = program.most(len(fewer))
    chosen = max((chosen, fewer), key=program.covered)  # a search that stopped early may find less
    n_covered = program.covered(chosen)
    return Cover(
        chosen=chosen,
        n_covered=n_covered,
        most_covered=max(bound, n_covered),
        is_fewest=least == len(chosen) and n_covered >= wanted,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """Distinct rows that some set covers (n, m), and how often each occurs (n,)."""

    patterns: np.ndarray
    weights: np.ndarray

    def covered(self, chosen: tuple[int, ...]) -> int:
        """Return how many rows some chosen set covers."""
        return int(self.weights[self.patterns[:, list(chosen)].any(axis=1)].sum())

    def most(self, n_sets: int) -> tuple[tuple[int, ...], int]:
        """Return at most ``n_sets`` sets that cover most rows, and how many no such choice exceeds."""
        n, m = self.patterns.shape
        greedy = self._greedy(n_sets)
        if not n or n_sets >= m:
            chosen = greedy if not n or self.covered(greedy) == self.weights.sum() else tuple(range(m))
            return chosen, self.covered(chosen)
        found, bound = self._solve(np.r_[np.zeros(m), -self.weights], (0, n_sets), (0, np.inf))
        chosen = max((greedy, found), key=self.covered)
        return chosen, max(self.covered(chosen), min(int(self.weights.sum()), math.floor(-bound + _ROUNDING)))

    def fewest(self, wanted: int, known: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """Return the fewest sets that cover ``wanted`` rows, as ``known`` do, and a lower bound."""
        n, m = self.patterns.shape
        if not n:
            return (), 0
        found, bound = self._solve(np.r_[np.ones(m), np.zeros(n)], (0, len(known)), (wanted, np.inf))
        is_better = len(found) < len(known) and self.covered(found) >= wanted
        return found if is_better else known, max(0, math.ceil(bound - _ROUNDING))

    def _greedy(self, n_sets: int) -> tuple[int, ...]:
        chosen, rest = list[int](), self.weights.copy()
        while len(chosen) < n_sets and rest.any():
            chosen.append(int(np.argmax(rest @ self.patterns)))
            rest[self.patterns[:, chosen[-1]]] = 0
        return tuple(sorted(chosen))

    def _solve(
        self, cost: np.ndarray, sizes: tuple[float, float], totals: tuple[float, float]
    ) -> tuple[tuple[int, ...], float]:
        """Return the chosen sets, none if none were found, and a lower bound of the cost."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415  heavy
        from scipy.sparse import csr_array, eye_array, hstack  # noqa: PLC0415

        n, m = self.patterns.shape
        joined = hstack([csr_array(-self.patterns.astype(np.float64)), eye_array(n)])
        rules = [
            LinearConstraint(joined, -np.inf, 0),
            LinearConstraint(np.r_[np.ones(m), np.zeros(n)][None], *sizes),
            LinearConstraint(np.r_[np.zeros(m), self.weights][None], *totals),
        ]
        options = {"node_limit": _NODE_LIMIT, "time_limit": _SECONDS}
        integral = np.r_[np.ones(m), np.zeros(n)]
        answer = milp(cost, constraints=rules, integrality=integral, bounds=Bounds(0, 1), options=options)
        chosen = () if answer.x is None else tuple(np.flatnonzero(answer.x[:m] > 0.5).tolist())
        bound = -np.inf if answer.mip_dual_bound is None else float(answer.mip_dual_bound)
        return chosen, bound if np.isfinite(bound) else float(min(0.0, cost.min() * n))
