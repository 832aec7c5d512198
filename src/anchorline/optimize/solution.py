"""What a solver answers: a Solution, and the ways in which a search can end."""

import enum
from dataclasses import dataclass

import numpy as np

from anchorline.errors import CertificateError, NotOptimalError


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
