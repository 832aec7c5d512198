"""Generated problems (P4), one per seed, and their optimum by enumeration. Shares no code with anchorline."""

import itertools
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
class Given:
    """The input of one problem, and the kind of ``trouble`` in it."""

    trouble: str
    flips: np.ndarray
    drops: np.ndarray
    weights: np.ndarray | None
    k: int
    prediction: float
    box: float | None

    @property
    def row_weights(self):
        """The weights, or ones if every row has the same weight."""
        return np.ones(len(self.drops)) if self.weights is None else self.weights

    def best(self):
        """Return the best objective by enumeration; inf if no support is feasible."""
        return enumerate_objective(self.flips, self.drops, self.row_weights, self.k, self.prediction, self.box)


def generate(seed: int) -> Given:
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
    if box is not None:  # enumeration tries 3^k patterns of active bounds per support
        k = min(k, 4) if d > 4 else k
    if "box_literal" in chosen:
        box = float(rng.choice([1.0, 0.6, 0.3]))
    return Given(trouble, flips, drops, weights, k, prediction, box)


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
    scale = 2.5 if "box_literal" in chosen else 1.5 if "box_intercept" in chosen else 0.4
    slopes = rng.normal(size=d) * scale
    if "box_intercept" in chosen:  # the sum of the contributions pushes the intercept beyond the box
        slopes = -np.sign(prediction) * np.abs(slopes)
    noise = rng.normal(size=n) * rng.choice([0.0, 0.05, 0.3])
    pairs = (flips[:, :1] & flips[:, -1:])[:, 0] * rng.normal() * 0.3
    return flips @ slopes + noise + pairs


def least_squares(flips, drops, weights, total=None):
    """Return the smallest weighted mean square of ``t - F u``, and u; with sum u = total if a total is given."""
    root = np.sqrt(weights / weights.sum())[:, None]
    n_columns = flips.shape[1]
    if total is None:
        if n_columns == 0:
            return np.sum((root[:, 0] * drops) ** 2), np.zeros(0)
        u = np.linalg.lstsq(root * flips, root[:, 0] * drops, rcond=1e-11)[0]
        return np.sum((root[:, 0] * (drops - flips @ u)) ** 2), u
    if n_columns == 0:
        return (np.sum((root[:, 0] * drops) ** 2), np.zeros(0)) if abs(total) < 1e-12 else (np.inf, None)
    design = flips[:, 1:] - flips[:, :1]  # the first contribution is the total minus the others
    value, rest = least_squares(design, drops - total * flips[:, 0], weights)
    return value, np.append(total - rest.sum(), rest)


def boxed_least_squares(flips, drops, weights, low, high, box):
    """Return the smallest weighted mean square in the box, by trying every pattern of active bounds."""
    best = np.inf
    for pattern in itertools.product((0.0, -1.0, 1.0), repeat=flips.shape[1]):
        sides = np.array(pattern)
        free, whole = sides == 0, sides * box
        rest = drops - flips[:, ~free] @ whole[~free]
        for total in (low,) if low == high else (None, low, high):
            left = None if total is None else total - whole[~free].sum()
            value, u = least_squares(flips[:, free], rest, weights, left)
            if u is None or value >= best:
                continue
            whole[free] = u
            if np.abs(whole).max(initial=0) <= box + 1e-10 and low - 1e-10 <= whole.sum() <= high + 1e-10:
                best = value
                if free.all() and (total is None or low == high):
                    return best  # no bound is active, so no other pattern can be better
    return best


def enumerate_objective(flips, drops, weights, k, prediction, box):
    """Return the best objective over all supports, with and without the constant; inf if none is feasible."""
    flips, bound, best = np.asarray(flips, dtype=float), np.inf if box is None else box, np.inf
    d = flips.shape[1]
    for size, low, high in ((k - 1, prediction - bound, prediction + bound), (k, prediction, prediction)):
        fixed = low if low == high else None
        scored = sorted(
            (least_squares(flips[:, chosen], drops, weights, fixed)[0], chosen)
            for chosen in itertools.combinations(range(d), min(d, size))
        )
        for value, chosen in scored:
            if value >= best:
                break
            if box is not None:
                value = boxed_least_squares(flips[:, chosen], drops, weights, low, high, box)
            best = min(best, value)
    return best


def enumerate_projection(values, k, total):
    """Return the nearest vector with at most k non-zeros that sum to ``total``, and its squared distance."""
    best, nearest = np.inf, None
    for chosen in itertools.combinations(range(len(values)), min(k, len(values))):
        projected = np.zeros(len(values))
        kept = values[list(chosen)]
        projected[list(chosen)] = kept - (kept.sum() - total) / len(chosen)
        distance = ((projected - values) ** 2).sum()
        if distance < best:
            best, nearest = distance, projected
    return nearest, best


def draw_flips(sigma, d, n, seed=0, shift=0.0):
    """Draw flips (n, d) with the probability 1 / (1 + e^sigma) plus ``shift``."""
    return np.random.default_rng([7, seed]).random((n, d)) < 1 / (1 + np.exp(sigma)) + shift


def moments(flips, weights=None):
    """Return the means (d,) and the second moments (d, d) of flips."""
    table = np.asarray(flips, dtype=float)
    share = np.full(len(table), 1 / len(table)) if weights is None else np.asarray(weights) / np.sum(weights)
    return share @ table, table.T @ (share[:, None] * table)


def all_flips(d, p):
    """Return all 2^d rows of flips with their probabilities."""
    flips = np.array(list(itertools.product((False, True), repeat=d)))
    return flips, np.prod(np.where(flips, p, 1 - p), axis=1)
