"""The whole model: how an attribute acts, what groups of cases get, and what another threshold would do.

Nothing is explained here: the model's answers to rows are enough. Sentences are those of `render.statements`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from anchorline.errors import BudgetError
from anchorline.guarantees.intervals import binomial_interval
from anchorline.model.predictor import Predictor
from anchorline.render.statements import (
    acting_text,
    column_text,
    group_text,
    output_text,
    ranking_text,
    shown,
    threshold_text,
    value_text,
)
from anchorline.spaces.columns import DATE, NUMBER, Column, text_of
from anchorline.spaces.table import Table
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.problems import Problem

_ROWS, _POINTS, _LEVELS = 200, 20, 10
_BINS = 4  # groups of numbers and dates, about equally large
_FEW = 30  # cases; of a smaller group, no sentence is said
_CONFIDENCE = 0.95  # of all limits of one answer together
_THRESHOLDS = np.round(np.linspace(0.05, 0.95, 19), 2)


def acting(space: Table, j: int, predictor: Predictor, most: int) -> dict[str, Any]:
    """Return the outputs of training rows whose column ``j`` takes one value after another: mean and middle 80%.

    Values are training values. The rows are the same for all of them, and at most ``most`` answers are asked for.
    """
    schema = space.schema
    places = _values_to_try(schema.columns[j])
    if not len(places):
        raise Problem(422, f"Every value of {column_text(schema.names[j])} is missing, so that none can be tried.")
    n = min(_ROWS, schema.n_rows, most // max(1, len(places)))
    if n < 2:
        raise BudgetError(f"{most} answers of the model are too few to try {len(places)} values in several rows.")
    rows = np.sort(np.random.default_rng(0).choice(schema.n_rows, n, replace=False))
    columns = [schema.natives.pick(k, rows) for k in range(len(schema.names))]
    outputs = np.empty((len(places), n))
    for i, place in enumerate(places.tolist()):
        checkpoint()
        columns[j] = schema.natives.pick(j, np.full(n, place))
        inputs = schema.natives.of_columns(columns).rows(np.arange(n))
        outputs[i] = predictor.answer(inputs, n).outputs
    low, mean, high = np.quantile(outputs, 0.1, axis=1), outputs.mean(axis=1), np.quantile(outputs, 0.9, axis=1)
    column = schema.columns[j]
    texts = [_text(column, column.values[place], schema.names[j]) for place in places.tolist()]
    is_ordered = column.kind in (NUMBER, DATE)
    figures = zip(texts, column.values[places] if is_ordered else range(len(places)), mean, low, high, strict=True)
    return {
        "output": output_text(predictor.output),
        "name": column_text(schema.names[j]),
        "is_ordered": is_ordered,
        "is_probability": predictor.is_probability,
        "n_rows": n,
        "points": [
            dict(zip(("text", "place", "mean", "low", "high"), (text, *map(float, four)), strict=True))
            for text, *four in figures
        ],
        "text": acting_text(schema.names[j], predictor.output, texts, mean.tolist(), is_ordered=is_ordered),
    }


def _values_to_try(column: Column) -> np.ndarray:
    """Return rows that have a column's values in order: all of few numbers, else quantiles; or frequent levels."""
    known = np.flatnonzero(~column.missing)
    if column.kind in (NUMBER, DATE):
        known = known[np.isfinite(column.values[known])]
        values, first = np.unique(column.values[known], return_index=True)
        if len(values) > _POINTS:
            ordered = known[np.argsort(column.values[known], kind="stable")]
            places = ordered[(np.linspace(0.01, 0.99, _POINTS) * (len(ordered) - 1)).round().astype(int)]
            return np.asarray(places[np.unique(column.values[places], return_index=True)[1]])
        return np.asarray(known[first])
    _, first, counts = np.unique(column.values[known], return_index=True, return_counts=True)
    return np.asarray(known[first[np.argsort(-counts, kind="stable")[:_LEVELS]]])


def groups(
    name: str,
    column: Column,
    decisions: np.ndarray,
    rightness: np.ndarray | None,
    label: str,
) -> dict[str, Any]:
    """Return per group of cases how many get the decision ``label``, and how many decisions are wrong.

    ``decisions`` says of each case whether it gets that decision; ``rightness`` whether its decision is right (1),
    wrong (0) or unknown (-1). All limits hold together.
    """
    parts = list(_groups(column, name))
    known = rightness is not None and bool((rightness >= 0).any())
    confidence = 1 - (1 - _CONFIDENCE) / (len(parts) * (1 + known))
    found = []
    for text, members in parts:
        each: dict[str, Any] = {"text": text, "n": int(members.sum())}
        each["decided"] = _share(decisions[members], confidence)
        if known and rightness is not None:
            judged = rightness[members]
            each["wrong"] = _share(judged[judged >= 0] == 0, confidence)
        found.append(each)
    compared = [each for each in found if each["n"] >= _FEW]
    text = group_text(name, label, [(each["text"], each["decided"]) for each in compared])
    return {"name": column_text(name), "label": label, "groups": found, "text": text}


def _groups(column: Column, column_name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the groups of a column and which rows belong to them: levels, or quarters of numbers and dates."""
    missing = column.missing
    if column.kind in (NUMBER, DATE):
        values, known = column.values, column.values[~missing]
        quarters = np.arange(1, _BINS) / _BINS
        cuts = np.unique(np.quantile(known, quarters, method="nearest")) if len(known) else known
        texts = [_text(column, cut, column_name) for cut in cuts.tolist()]
        for i in range(len(cuts) + 1):
            members = (
                ~missing & (values >= cuts[i - 1] if i else True) & (values < cuts[i] if i < len(cuts) else True)
            )
            if members.any():
                first, last = i == 0, i == len(cuts)
                name = (
                    f"below {texts[0]}"
                    if first
                    else f"{texts[-1]} or more"
                    if last
                    else f"{texts[i - 1]} to {texts[i]}"
                )
                yield name, members
    else:
        levels, codes, counts = np.unique(column.values[~missing], return_inverse=True, return_counts=True)
        for code in np.argsort(-counts, kind="stable")[:_LEVELS].tolist():
            members = np.zeros(len(missing), dtype=bool)
            members[~missing] = codes == code
            yield _text(column, levels[code], column_name), members
    if missing.any():
        yield "missing", missing


def _text(column: Column, value: Any, name: str) -> str:
    return value_text(float(value), name) if column.kind == NUMBER else shown(text_of(value, column.kind))


def _share(true: np.ndarray, confidence: float) -> dict[str, Any] | None:
    if not len(true):
        return None
    limits = binomial_interval(int(true.sum()), len(true), confidence)
    return {"value": float(true.mean()), "low": limits.low, "high": limits.high}


def thresholds(scores: np.ndarray, is_label: np.ndarray, label: str, own: float) -> dict[str, Any]:
    """Return what share of cases each threshold decides wrongly, either way, and how well the score ranks them.

    ``is_label`` says whether ``label`` came true, and ``own`` is the server's threshold.
    """
    points = []
    for threshold in sorted({*_THRESHOLDS.tolist(), own}):
        decided = scores >= threshold
        wrongly, missed = float((decided & ~is_label).mean()), float((~decided & is_label).mean())
        points.append(
            {"threshold": threshold, "decided": float(decided.mean()), "wrongly": wrongly, "missed": missed}
        )
    now = next(point for point in points if point["threshold"] == own)
    best = min(points, key=lambda point: (point["wrongly"] + point["missed"], abs(point["threshold"] - own)))
    area = _area(scores, is_label)
    ranked = [] if area is None else [ranking_text(label, area)]
    return {
        "label": label,
        "n": len(scores),
        "own": own,
        "points": points,
        "area": area,
        "text": " ".join([threshold_text(label, now, best), *ranked]),
    }


def _area(scores: np.ndarray, is_label: np.ndarray) -> float | None:
    r"""Return the area under the ROC curve, or None if only one class came true.

    .. math:: P(s > s') + P(s = s') / 2, \quad s \text{ of the class}, s' \text{ of the other one}

    Mann and Whitney's count of pairs, by the ranks of the scores; cost O(n log n).
    """
    inside, others = scores[is_label], np.sort(scores[~is_label])
    if not len(inside) or not len(others):
        return None
    below, not_above = (np.searchsorted(others, inside, side).mean() for side in ("left", "right"))
    return float(below + not_above) / (2 * len(others))
