"""Generated problems, one per seed, which include every known kind of degenerate input."""

from dataclasses import dataclass

import numpy as np

TROUBLES = (
    "plain",
    "duplicated",
    "complementary",
    "always",
    "never",
    "few_rows",
    "constant",
    "zero_prediction",
    "weighted",
    "box_literal",
    "box_intercept",
    "mixed",
)


@dataclass(frozen=True)
class Sample:
    """The input of one problem, and the kind of ``trouble`` in it."""

    trouble: str
    flips: np.ndarray
    drops: np.ndarray
    weights: np.ndarray | None
    k: int
    prediction: float
    box: float | None
    origin: float

    @property
    def row_weights(self):
        """The weights, or ones if every row has the same weight."""
        return np.ones(len(self.drops)) if self.weights is None else self.weights


def generate(seed: int) -> Sample:
    """Return the problem of a seed."""
    rng = np.random.default_rng([20, seed])
    trouble = TROUBLES[seed % len(TROUBLES)]
    d = int(rng.integers(1, 13))
    k = int(rng.integers(1, 5 if d > 8 else 6)) if rng.random() < 0.85 else d + int(rng.integers(0, 3))
    k = min(k, 6) if d > 7 else k
    n = int(rng.integers(1, d + 1)) if trouble == "few_rows" else int(rng.integers(5, 80))
    flips = rng.random((n, d)) < rng.uniform(0.05, 0.6)
    chosen = {trouble} if trouble != "mixed" else set(rng.choice(TROUBLES[:-1], 3, replace=False))
    _spoil(flips, chosen, rng)
    prediction = 0.0 if "zero_prediction" in chosen else float(rng.choice([1.0, -1.0, rng.uniform(-1, 1)]))
    drops = _drops(flips, chosen, rng, prediction)
    weights = rng.uniform(0, 1, n) + 1e-3 if "weighted" in chosen else None
    box = None if rng.random() < 0.5 and not {"box_literal", "box_intercept"} & chosen else 1.0
    if box is not None:  # the oracle tries 3^k patterns of active bounds per support
        k = min(k, 4) if d > 4 else k
    if "box_literal" in chosen:
        box = float(rng.choice([1.0, 0.6, 0.3]))
    origin = float(rng.choice([0.0, 0.0, -1.0, rng.uniform(-1, 1), 1.7]))
    return Sample(trouble, flips, drops, weights, k, prediction, box, origin)


def _spoil(flips, chosen, rng):
    d = flips.shape[1]
    for kind in sorted(chosen):
        i, j = rng.integers(0, d, 2)
        if kind == "duplicated":
            flips[:, i] = flips[:, j]
        elif kind == "complementary" and i != j:
            flips[:, i] = ~flips[:, j]
        elif kind == "always":
            flips[:, i] = True
        elif kind == "never":
            flips[:, i] = False


def _drops(flips, chosen, rng, prediction):
    n, d = flips.shape
    if "constant" in chosen:
        return np.zeros(n)
    if rng.random() < 0.4:  # a classifier, whose drops are 0 or +-1
        score = flips @ rng.normal(size=d) + 0.3 * rng.normal()
        return np.where(score > 0.5, np.sign(prediction) or 1.0, 0.0)
    scale = {"box_literal": 2.5, "box_intercept": 1.5}.get(next(iter(chosen)), 0.4)
    sign = -np.sign(prediction) if "box_intercept" in chosen else 1.0
    slopes = rng.normal(size=d) * scale
    if "box_intercept" in chosen:
        slopes = sign * np.abs(slopes)
    noise = rng.normal(size=n) * rng.choice([0.0, 0.05, 0.3])
    pairs = (flips[:, :1] & flips[:, -1:])[:, 0] * rng.normal() * 0.3
    return flips @ slopes + noise + pairs
