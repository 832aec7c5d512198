"""What a check found in the results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.tasks import SEED

N_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Finding:
    """Our figure in words, and whether it agrees with the published one; None: nothing to compare with."""

    text: str
    agrees: bool | None

    @property
    def verdict(self) -> str:
        """Agrees, disagrees, or neither."""
        return {True: "agrees", False: "disagrees", None: "-"}[self.agrees]


def interval(samples: Sequence[np.ndarray], statistic: Callable[[np.ndarray], float]) -> str:
    """How far ten instances pin a figure down: its 95% interval when instances are drawn again from those at hand.

    A sample (n, c) has a row for each instance of a data set and a column for each thing averaged; the
    statistic is of their means (n samples, c). Few instances with long tails: rather too narrow than too wide.
    """
    rng, found = np.random.default_rng(SEED), []
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(N_RESAMPLES):
            again = [sample[rng.integers(0, len(sample), len(sample))].mean(axis=0) for sample in samples]
            found.append(statistic(np.array(again)))
    low, high = np.nanquantile(found, [0.025, 0.975])
    return f"{low:.1f} to {high:.1f}"


NOT_MEASURED = Finding("not measured in this run", None)
