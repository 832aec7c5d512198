"""The outcome of a check of a claim."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.tasks import SEED

N_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Finding:
    """Our figure as text, and whether it agrees with the published one; None if there is nothing to compare."""

    text: str
    agrees: bool | None

    @property
    def verdict(self) -> str:
        """The verdict: "agrees", "disagrees", or "-" if there is nothing to compare."""
        return {True: "agrees", False: "disagrees", None: "-"}[self.agrees]


def bootstrap_interval(samples: Sequence[np.ndarray], statistic: Callable[[np.ndarray], float]) -> str:
    """Return the 95% bootstrap interval of a statistic, with instances resampled from the measured ones.

    Each sample (n, c) has one row per instance of a data set and one column per averaged quantity; the statistic
    is computed from the means (number of samples, c). With few instances and long tails, the interval tends to be
    too narrow.
    """
    rng, values = np.random.default_rng(SEED), []
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(N_RESAMPLES):
            means = [sample[rng.integers(0, len(sample), len(sample))].mean(axis=0) for sample in samples]
            values.append(statistic(np.array(means)))
    low, high = np.nanquantile(values, [0.025, 0.975])
    return f"{low:.1f} to {high:.1f}"


NOT_MEASURED = Finding("not measured in this run", None)
