"""Explanations for the tests of text, tables, pages and plots: a small real one, and copies with given numbers."""

import dataclasses

import numpy as np

import anchorline as al

INSTANCE = [1, 1, -1, 1] + [1, -1, 1] * 3
LONG_NAME = "a very long statement about an attribute that nobody wants to read to its end, but has to"


def smooth_model(z):
    """Return one smooth score per row that has an interaction and many small effects."""
    return np.tanh(0.7 * z[:, 0] + 0.5 * z[:, 1] - 0.4 * z[:, 2] * z[:, 3] + 0.1 * z[:, 4:].sum(axis=1))


def smooth_explainer(**options):
    """Return an explainer of `smooth_model` for rows of the length of ``INSTANCE``."""
    return al.Explainer(smooth_model, al.Hypercube([f"x{j}" for j in range(13)]), output="score", **options)


def with_numbers(explanation, contributions, intercept=0.0, texts=None, **changes):
    """Return a copy with these contributions; the prediction is their sum with the intercept unless given.

    ``texts`` are the texts and names of the literals. ``changes`` replace any other field.
    """
    contributions = np.array(contributions, dtype=float)
    texts = [f"l{j}" for j in range(len(contributions))] if texts is None else texts
    fields = {
        "contributions": contributions,
        "intercept": float(intercept),
        "prediction": float(intercept + contributions.sum()),
        "literals": tuple(al.Literal(text, text) for text in texts),
        "instance": (1,) * len(contributions),
    }
    return dataclasses.replace(explanation, **fields | changes)
