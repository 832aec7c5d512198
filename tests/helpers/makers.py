"""Adversarial makers for tests: they have the model, choose everything else, and seal the result properly."""

import copy
import json

import numpy as np

from helpers.sealing import resealed


class Patched:
    """A model that answers `shown` on every row that it was asked about while an explanation was made.

    After `close`, it answers `hidden` on all other rows. Whoever recomputes the explanation asks about the same
    rows, and gets the same answers.
    """

    def __init__(self, shown, hidden):
        self.shown, self.hidden, self.seen, self.is_open = shown, hidden, set(), True

    def close(self):
        self.is_open = False
        return self

    def __call__(self, rows):
        values = np.asarray(rows)
        keys = [row.tobytes() for row in np.ascontiguousarray(values)]
        if self.is_open:
            self.seen.update(keys)
        known = np.array([key in self.seen for key in keys])
        shape = (len(keys),) + (1,) * (np.ndim(self.shown(rows)) - 1)
        return np.where(known.reshape(shape), self.shown(rows), self.hidden(rows))


def shopped(explain, is_wanted, n_seeds=2000):
    """Return the first explanation, over many seeds, whose certificate the maker likes."""
    return next(e for e in map(explain, range(n_seeds)) if is_wanted(e.certificate))


def leaves(value, path=()):
    """Yield the path of every single value in parsed JSON."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def at(body, path):
    """Return the value at a path."""
    for key in path:
        body = body[key]
    return body


def tampered(body, path, new):
    """Return a copy with another value at a path."""
    body = copy.deepcopy(body)
    at(body, path[:-1])[path[-1]] = new
    return body


def changed(old):
    """Return other values for a leaf: small and large changes of numbers, the other truth value, another text."""
    if isinstance(old, bool):
        return [not old]
    if isinstance(old, int):
        return [old + 1, -old] if old else [1]
    if isinstance(old, float):
        return [old * 1.001 + 1e-6, old - 1e-6, -old - 0.1]
    return [old + "x"] if isinstance(old, str) else [1]


def forged(explanation, path, new):
    """Return the JSON of an explanation with one value changed, under a seal that fits."""
    return resealed(tampered(json.loads(explanation.to_json()), path, new))
