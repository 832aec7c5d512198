"""Fidelity and relevance errors by enumeration of all flips in {0, 1}^d. Shares no code with anchorline."""

import itertools

import numpy as np


def all_flips(d):
    """Return all 2^d rows of flips."""
    return np.array(list(itertools.product((0, 1), repeat=d)))


def exact_errors(predict, x, contributions, p, gap=0.0):
    """Return four numbers: fidelity error, relevance error, relevance error while no literal flips, and P[A].

    The second is the definition's, given the event A that the flipped contributions cancel. The third is given
    that no literal of the support is flipped.
    """
    x = np.asarray(x, dtype=float)
    flips = all_flips(len(x))
    weights = np.prod(np.where(flips == 1, p, 1 - p), axis=1)
    drops = (predict(x[None])[0] - predict(x * (1 - 2 * flips))) / 2
    sums = flips @ contributions
    fidelity = np.sum(weights * (drops - sums + gap / 2) ** 2)
    event = np.abs(sums) < 1e-9
    unflipped = ~flips[:, np.flatnonzero(contributions)].any(axis=1)
    relevance = np.sum(weights[event] * drops[event] ** 2) / weights[event].sum()
    subcube = np.sum(weights[unflipped] * drops[unflipped] ** 2) / weights[unflipped].sum()
    return fidelity, relevance, subcube, weights[event].sum()


def random_model(rng, d):
    """Return a small random network with smooth outputs, or with outputs -1 and +1."""
    weights, outputs = rng.normal(size=(d, 8)) / np.sqrt(d), rng.normal(size=8)
    is_classifier = rng.random() < 0.4

    def predict(rows):
        score = np.tanh(np.tanh(2 * rows @ weights) @ outputs)
        return np.where(score > 0.1, 1.0, -1.0) if is_classifier else score

    return predict


def random_contributions(rng, d):
    """Return sparse contributions, often with some that cancel: two that are opposite, or two against a third."""
    contributions = np.zeros(d)
    support = rng.choice(d, size=min(d, int(rng.integers(1, 6))), replace=False)
    contributions[support] = rng.uniform(-0.6, 0.6, len(support))
    kind = rng.integers(4)
    if kind == 1 and len(support) >= 2:
        contributions[support[0]] = -contributions[support[1]]
    if kind == 2 and len(support) >= 3:
        contributions[support[0]] = contributions[support[1]]
        contributions[support[2]] = -contributions[support[1]]
    if kind == 3 and len(support) >= 3:
        contributions[support[0]] = -(contributions[support[1]] + contributions[support[2]])
    return contributions
