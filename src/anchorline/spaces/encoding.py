"""Chooses how a column is encoded: the edges of intervals, and the levels that share a code."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.attributes import Attribute, Encoding, Intervals, Levels, build_attribute, level_texts
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, exact_text, level_of, readable_edges
from anchorline.spaces.natives import Natives
from anchorline.spaces.rows import Schema
from anchorline.spaces.values import all_same


def encode(
    schema: Schema,
    j: int,
    *,
    n_bins: int,
    cuts: Mapping[str, np.ndarray],
    rare: float,
    labels: Mapping[str, Mapping[str, str]],
) -> Encoding:
    """Return the levels of column j if it holds categories or booleans, or the intervals of numbers or dates."""
    name, column = schema.names[j], schema.columns[j]
    if name in labels and column.kind == NUMBER:
        texts = [
            ("" if gone else level_of(v, NUMBER)) for v, gone in zip(column.values, column.missing, strict=True)
        ]
        column = Column(CATEGORY, np.array(texts, dtype=object), column.missing)
    if column.kind in (CATEGORY, BOOLEAN) or column.missing.all():
        if name in cuts:
            raise ParameterError(
                f"cuts has {name!r}, which holds {column.kind}; it must name columns of numbers or dates. "
                f"Remove {name!r} from cuts."
            )
        return build_levels(name, column, rare if column.kind == CATEGORY else 0.0, labels.get(name, {}))
    return build_intervals(name, column, n_bins, cuts.get(name), " UTC" if schema.types[j].zoned else "")


def encode_attributes(
    schema: Schema, members: Mapping[str, Sequence[int]], **options: Any
) -> Iterator[tuple[Attribute, np.ndarray]]:
    """Yield the attributes with these columns, and for each the order of the rows; ``options`` are of `encode`."""
    for name, positions in members.items():
        encodings = [encode(schema, j, **options) for j in positions]
        yield build_attribute(name, positions, encodings, [schema.columns[j] for j in positions])


def with_uniformity(
    attributes: Sequence[Attribute], columns: Sequence[Column], pool: Natives
) -> tuple[Attribute, ...]:
    """Return the attributes with `Attribute.uniform`, if all have at most two combinations of codes."""
    if any(len(attribute.combinations) > 2 for attribute in attributes):  # no neighborhood is deterministic
        return tuple(attributes)
    return tuple(
        replace(a, uniform=tuple(_is_uniform(a, *ends, columns, pool) for ends in itertools.pairwise(a.starts)))
        for a in attributes
    )


def _is_uniform(attribute: Attribute, start: int, stop: int, columns: Sequence[Column], pool: Natives) -> bool:
    """Return whether rows of the pool have the same values.

    For dates this is always false, because some libraries hold nanoseconds that a comparison would miss.
    """
    return all(
        columns[j].kind != DATE and all_same(pool.pick(j, np.arange(start, stop))) for j in attribute.positions
    )


def build_levels(name: str, column: Column, rare: float, labels: Mapping[str, str]) -> Levels:
    """Number the levels by frequency; those with a share below ``rare`` get one code if there are several.

    If every level is rare (names, ids), each keeps its own code, because no row could break a common one.
    """
    frequencies = _frequencies(column)
    levels = sorted(frequencies)
    counts = np.array([frequencies[level] for level in levels], dtype=np.intp)
    order = np.argsort(-counts, kind="stable")
    below = counts[order] < rare * len(column.values)
    n_rare = int(below.sum())
    merged = 1 < n_rare < len(levels)
    first_rare = len(levels) - n_rare
    codes = {levels[i]: min(at, first_rare) if merged else at for at, i in enumerate(order)}
    if merged:
        return Levels(name, codes, first_rare + 1, first_rare, n_rare, labels)
    return Levels(name, codes, len(levels), None, 0, labels)


def _frequencies(column: Column) -> dict[str, int]:
    """Return how many rows have each level, without missing values."""
    there = np.flatnonzero(~column.missing)
    if column.ranks is None:
        return Counter(level_texts(column.taken(there)))
    counts = np.bincount(column.ranks.places[there], minlength=len(column.ranks.levels)).tolist()
    return {level: count for level, count in zip(column.ranks.levels, counts, strict=True) if count}


def build_intervals(name: str, column: Column, n_bins: int, cuts: np.ndarray | None, zone: str = "") -> Intervals:
    """Cut at the given cut points, or else at the quantiles and around every value that many rows share."""
    present = np.sort(column.values[~column.missing]) + 0.0  # so that -0 and 0 are the same number
    first = np.flatnonzero(np.r_[True, present[1:] != present[:-1]])
    values = present[first]
    if cuts is not None:
        edges = np.unique(np.asarray(cuts, dtype=np.float64))
        exact = [(float(edge), exact_text(float(edge), column.kind)) for edge in edges]
        return Intervals.from_edges(name, column.kind, exact, values, zone)
    quantiles = _quantile_edges(present, first, n_bins)
    finite = quantiles[np.isfinite(quantiles)]
    pairs = readable_edges(finite, values[np.isfinite(values)], column.kind) if len(finite) else []
    pairs += [(float(edge), exact_text(float(edge), column.kind)) for edge in quantiles[len(finite) :]]  # infinity
    return Intervals.from_edges(name, column.kind, pairs, values, zone)


def _quantile_edges(present: np.ndarray, first: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the inner quantiles, and both sides of every value that at least a share 1 / n_bins of the rows has.

    ``present`` are all values, sorted, and ``first`` is where each distinct one begins. If there are at most
    n_bins distinct values, return an edge between any two of them.
    """
    values = np.asarray(present[first])
    if len(values) <= n_bins:
        return values[1:]
    finite = present[np.isfinite(present)]
    edges = np.quantile(finite, np.arange(1, n_bins) / n_bins, method="linear") if len(finite) else values[:0]
    counts = np.diff(np.r_[first, len(present)])
    heavy = np.flatnonzero(counts * n_bins >= len(present))
    after = heavy[heavy + 1 < len(values)] + 1
    return _distinct_splits(np.r_[edges, values[heavy], values[after]], values)


def _distinct_splits(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return one edge per way in which the edges split the values; drop edges with all values on one side."""
    edges = np.sort(edges[np.isfinite(edges)])
    below = np.searchsorted(values, edges, side="left")
    kept = (below > 0) & (below < len(values))
    _, first = np.unique(below[kept], return_index=True)
    return np.asarray(edges[kept][first])
