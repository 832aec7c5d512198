"""Small generated ensembles, and plain enumeration of a neighborhood, which shares no code with the library."""

import itertools
import math
import re

import numpy as np

from anchorline.model.trees import Ensemble


def grow(rng, n_trees, depth, limits, categories=(), *, strict=False):
    """Return random trees; ``limits[j]`` are the thresholds of feature j, or its categories."""
    names = ("feature", "threshold", "left", "right", "missing_left", "category_set", "values")
    nodes = {name: [] for name in names}
    sets = []

    def add(level):
        at = len(nodes["feature"])
        for name, column in nodes.items():
            column.append(-1 if name in ("feature", "category_set") else 0)
        nodes["values"][at] = rng.normal(size=1)
        if level == 0 or (level < depth and rng.random() < 0.2):
            return at
        j = int(rng.integers(len(limits)))
        nodes["feature"][at], nodes["missing_left"][at] = j, bool(rng.random() < 0.5)
        if j in categories:
            nodes["category_set"][at] = len(sets)
            sets.append(np.sort(rng.choice(limits[j], size=1 + rng.integers(len(limits[j]) - 1), replace=False)))
        else:
            nodes["threshold"][at] = float(rng.choice(limits[j]))
        nodes["left"][at], nodes["right"][at] = add(level - 1), add(level - 1)
        return at

    roots = [add(depth) for _ in range(n_trees)]
    arrays = {name: np.array(column) for name, column in nodes.items()}
    arrays |= {"missing_left": arrays["missing_left"].astype(bool), "threshold": arrays["threshold"].astype(float)}
    return Ensemble(
        **arrays,
        roots=np.array(roots),
        base=rng.normal(size=1),
        categories=tuple(sets),
        strict=strict,
        dtype=np.dtype("float64"),
    )


def holds(text, values):
    """Return whether a literal's text is true of a row, given as a dict; conjunctions are about groups."""
    return all(_holds(part, values) for part in text.split(" and "))


def _holds(text, values):
    name = next(name for name in values if re.search(rf"\b{name}\b", text))
    value = values[name]
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    if text.endswith("is missing") or text.endswith("is not missing"):
        return missing == text.endswith("is missing")
    if missing:
        return False
    if isinstance(value, str):
        return text == f"{name} = {value}"
    return bool(eval(re.sub(r"(?<![<>])=", "==", text) if " = " in text else text, {name: value}))


def neighbors(rows, row, groups, literals, p, *, redraw=False):
    """Return (probability, row, flips) of every neighbor of a row; rows are dicts.

    ``groups`` lists the columns of each attribute, and ``literals`` (texts) those of each attribute; the first
    one is broken by every change.
    """
    choices = []
    for columns, texts in zip(groups, literals, strict=True):
        every = [{name: each[name] for name in columns} for each in rows]
        own = {name: row[name] for name in columns}
        broken = [each for each in every if not holds(texts[0], each)] if texts else []
        kept = [each for each in every if holds(texts[0], each)] if texts and redraw else []
        kept = kept or [own]
        p_here = p if broken else 0.0
        drawn = [((1 - p_here) / len(kept), each, [False] * len(texts)) for each in kept]
        drawn += [(p / len(broken), each, [not holds(text, each) for text in texts]) for each in broken]
        choices.append(drawn)
    for combination in itertools.product(*choices):
        values = dict(row)
        for _, each, _ in combination:
            values |= each
        flips = [flip for _, _, each in combination for flip in each]
        yield math.prod(share for share, _, _ in combination), values, flips
