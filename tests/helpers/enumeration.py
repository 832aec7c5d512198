"""Fidelity and relevance of any contributions by listing all of {0, 1}^d. Shares no code with anchorline."""

import itertools

import numpy as np


def all_flips(d):
    return np.array(list(itertools.product((0, 1), repeat=d)))


def exact_errors(predict, x, contributions, p, gap=0.0):
    """(fidelity error, relevance error by the definition, relevance error on the unflipped support, P[A])."""
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
    """A small random network: smooth, or its sign."""
    weights, outputs = rng.normal(size=(d, 8)) / np.sqrt(d), rng.normal(size=8)
    sharp = rng.random() < 0.4

    def predict(rows):
        score = np.tanh(np.tanh(2 * rows @ weights) @ outputs)
        return np.where(score > 0.1, 1.0, -1.0) if sharp else score

    return predict


def random_contributions(rng, d):
    """Sparse contributions; often some that cancel: equal and opposite, or equal pairs against one."""
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
