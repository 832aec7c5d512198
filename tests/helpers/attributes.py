"""Generated problems whose literals are bounds and intervals of attributes, one per seed."""

from dataclasses import dataclass

import numpy as np

from helpers.problems import Sample

TROUBLES = (
    "plain",
    "missing",
    "thresholds",
    "never",
    "always",
    "few_rows",
    "rare",
    "tight_box",
    "box_intercept",
    "opposite",
    "duplicated",
    "mixed",
)
MAX_LITERALS = 9


@dataclass(frozen=True)
class GroupedSample(Sample):
    """The input of one problem, and the group of every literal."""

    groups: np.ndarray


def generate_grouped(seed: int) -> GroupedSample:
    """Return the problem of a seed."""
    rng = np.random.default_rng([21, seed])
    trouble = TROUBLES[seed % len(TROUBLES)]
    chosen = {trouble} if trouble != "mixed" else set(rng.choice(TROUBLES[:-1], 3, replace=False))
    n = int(rng.integers(2, 9)) if "few_rows" in chosen else int(rng.integers(12, 90))
    columns, groups = _literals(n, chosen, rng)
    flips = np.stack(columns, axis=1)
    prediction = float(rng.choice([1.0, -1.0, 0.0, rng.uniform(-1, 1)]))
    drops = _drops(flips, groups, chosen, rng, prediction)
    box = None if rng.random() < 0.4 and not {"tight_box", "box_intercept"} & chosen else 1.0
    k = int(rng.integers(1, 6 if box is None else 5))
    if "tight_box" in chosen:
        box = float(rng.choice([0.6, 0.3, 0.1]))
    weights = rng.uniform(0, 1, n) + 1e-3 if rng.random() < 0.1 else None
    origin = float(rng.choice([0.0, 0.0, -1.0, rng.uniform(-1, 1)]))
    order = rng.permutation(len(groups)) if rng.random() < 0.3 else np.arange(len(groups))
    numbers = rng.permutation(100)[np.array(groups)]
    return GroupedSample(trouble, flips[:, order], drops, weights, k, prediction, box, origin, numbers[order])


def generate_thresholds(seed: int) -> GroupedSample:
    """Return a problem about attributes with up to three thresholds on each side, and the interval."""
    rng = np.random.default_rng([22, seed])
    n, p, columns, groups = int(rng.integers(30, 200)), rng.uniform(0.15, 0.7), [], []
    while True:
        n_below, n_above = rng.choice([(0, 1), (1, 0), (1, 1), (0, 3), (2, 1), (1, 2), (2, 2), (3, 3)])
        new = nested_cuts(n, p, n_below, n_above, rng)
        if len(columns) + len(new) > 12:
            break
        groups += [1 + max(groups, default=0)] * len(new)
        columns += new
    flips = np.stack(columns, axis=1)
    slopes = rng.normal(size=len(columns)) * 0.4 * (rng.random(len(columns)) < 0.7)
    drops = flips @ slopes + rng.normal(size=n) * rng.choice([0.0, 0.05, 0.3])
    prediction, box = float(rng.choice([1.0, -1.0, 0.0, rng.uniform(-1, 1)])), rng.choice([None, 1.0])
    rest = (int(rng.integers(2, 6)), prediction, box, float(rng.choice([0.0, -1.0])))
    return GroupedSample("thresholds", flips, drops, None, *rest, np.array(groups))


def nested_cuts(n, p, n_below, n_above, rng, weights=None):
    """Columns of one attribute: thresholds below, thresholds above, and the interval; some values are missing."""
    kinds = np.array([*range(-n_below, 0), *range(1, n_above + 1), 99])
    if weights is None:
        weights = rng.uniform(0.05, 1, len(kinds)) * rng.choice([1.0, 1.0, 0.03], len(kinds))
        weights[-1] *= rng.choice([0.0, 0.05, 0.3])
    drawn = np.where(rng.random(n) < p, rng.choice(kinds, n, p=weights / weights.sum()), 0)
    missing = drawn == 99
    new = [drawn <= -i for i in range(1, n_below + 1)] + [drawn >= i for i in range(1, n_above + 1)]
    new += [drawn != 0] if n_below and n_above else []
    return [column | missing for column in new]


def _literals(n, chosen, rng):
    """Columns of attributes: one interval; two bounds and an interval; or three nested cuts and the interval."""
    columns, groups, attribute = [], [], 0
    p = rng.uniform(0.15, 0.7)
    while len(groups) < int(rng.integers(3, MAX_LITERALS)):
        size = int(
            rng.choice(
                [1, 2, 3, 4], p=[0.25, 0.1, 0.35, 0.3] if "thresholds" in chosen else [0.25, 0.15, 0.5, 0.1]
            )
        )
        drawn = _draw(n, p, chosen, rng, attribute)
        lower, upper, far = drawn == -1, drawn >= 1, drawn >= 2
        missing = drawn == -9
        offered = {1: [lower | upper], 2: [lower, upper], 3: [lower, upper, lower | upper]}
        new = offered.get(size, [lower, upper, far, lower | upper])
        if len(groups) + len(new) > MAX_LITERALS:
            break
        columns += [column | missing for column in new]
        groups += [attribute] * len(new)
        attribute += 1
    if "duplicated" in chosen and len(columns) > 2:
        i, j = rng.integers(0, len(columns), 2)
        columns[i] = columns[j] if rng.random() < 0.5 else ~columns[j]
    return columns, groups


def _draw(n, p, chosen, rng, attribute):
    """Values of one attribute: 0 is the instance's own bin, -1 below, 1 and 2 above, -9 missing."""
    share = (
        {"never": 0.0, "always": 1.0}.get(next(iter(chosen & {"never", "always"}), ""), p) if attribute == 0 else p
    )
    flipped = rng.random(n) < share
    kinds = np.array([-1, 1, 2, -9])
    weights = np.array([1.0, 0.6, 0.6, 0.3 if "missing" in chosen else 0.0]) * rng.uniform(0.2, 1, 4)
    if "rare" in chosen:
        weights[rng.integers(0, 3)] *= 0.03
    return np.where(flipped, rng.choice(kinds, n, p=weights / weights.sum()), 0)


def _drops(flips, groups, chosen, rng, prediction):
    n, d = flips.shape
    if rng.random() < 0.3:  # a classifier, whose drops are 0 or +-1
        return np.where(flips @ rng.normal(size=d) > 0.4, np.sign(prediction) or 1.0, 0.0)
    slopes = rng.normal(size=d) * (2.0 if "tight_box" in chosen else 0.4) * (rng.random(d) < 0.7)
    if "opposite" in chosen:  # the two bounds of an attribute cancel in its interval
        slopes = np.where(np.arange(d) % 2, -1, 1) * np.abs(slopes)
    if "box_intercept" in chosen:
        slopes = -np.sign(prediction or 1.0) * np.abs(slopes) * 2
    noise = rng.normal(size=n) * rng.choice([0.0, 0.05, 0.3])
    pairs = (flips[:, :1] & flips[:, -1:])[:, 0] * rng.normal() * 0.3
    return flips @ slopes + noise + pairs
