"""Explanations of every kind, and explanations with other numbers."""

import dataclasses
import functools

import numpy as np

import anchorline as al


def model(z):
    return 0.5 * z[:, 0] - 0.25 * z[:, 1] * z[:, 2]


@functools.cache
def explained(**options):
    return al.explain(model, [1, -1, 1], k=3, names=["income", ("debt", "no debt"), "owner"], **options)


@functools.cache
def kinds():
    """Explanations of every kind we can make: enumerated, drawn, limited, heuristic, labels, degenerate."""
    x = [1, -1] * 8
    return {
        "enumerated": explained(),
        "uncertified": explained(n_certify=0),
        "drawn": al.explain(model, x, n_samples=300),
        "limit": al.explain(model, x, n_samples=300, node_limit=0),
        "iht": al.explain(model, x, n_samples=300, solver="iht"),
        "label": al.explain(lambda z: np.where(z[:, 0] > 0, "yes", "no"), x, task="label", n_samples=300),
        "range": al.explain(lambda z: 1e5 + 1e4 * z[:, 0], x, output_range=(0, 3e5), n_samples=300),
        "clipped": al.explain(lambda z: z[:, :3].sum(axis=1) / 2, [1, -1, 1]),
        "degenerate": al.explain(lambda z: np.zeros(len(z)), x, n_samples=300),
        "no box": explained(box=None),
    }


def changed(e, contributions, intercept=0.0, **fields):
    """The explanation with other numbers; the prediction is their sum."""
    contributions = np.array(contributions, dtype=float)
    d = len(contributions)
    same = {
        "contributions": contributions,
        "intercept": float(intercept),
        "prediction": float(intercept + contributions.sum()),
        "literals": tuple(al.Literal(f"x{j}", f"x{j} = +1") for j in range(d)),
        "instance": (1,) * d,
    }
    n_facts = int(np.count_nonzero(contributions))
    residual = abs(same["intercept"] + contributions.sum() - same["prediction"])
    counted = {"n_facts": n_facts, "n_terms": n_facts + (intercept != 0), "anchoring_residual": float(residual)}
    same["certificate"] = dataclasses.replace(e.certificate, **counted)
    return dataclasses.replace(e, **same | fields)


def same_bits(one, other):
    return np.float64(one).tobytes() == np.float64(other).tobytes()
