"""Changes of several facts: all combinations of the values tried, or the most promising ones first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.search.changes.questions import Questions

_MOST_AT_ONCE = 2_000_000  # combinations held in memory
_FIRST_BATCH = 256  # doubled from batch to batch
MORE = 1024  # queries per level to find more changes, once one is found
_PER_QUERY = 32  # combinations that are compared per query, from which the most promising are taken


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """Combinations (n, s) of candidates that did not turn, sorted by attribute, with their margins (n,)."""

    chosen: np.ndarray
    margins: np.ndarray
    is_complete: bool

    def without(self, kept: np.ndarray) -> "Tried":
        """Return only the rows to keep."""
        return Tried(self.chosen[kept], self.margins[kept], self.is_complete)


def count(sizes: np.ndarray, n_facts: int) -> int:
    """Return the number of combinations of ``n_facts`` values of different attributes that have these sizes."""
    totals = [1] + [0] * n_facts
    for size in sizes.tolist():
        for k in range(n_facts, 0, -1):
            totals[k] += totals[k - 1] * size
    return totals[n_facts]


def try_combinations(
    questions: Questions,
    base: Tried,
    before: Tried,
    turned: Sequence[frozenset[int]],
    *,
    wanted: int,
    budget: int,
    prediction_margin: float,
) -> tuple[Tried, list[np.ndarray], int, int]:
    """Extend the combinations ``before`` by the values of ``base``, and try them until enough sets turn.

    Return those that did not turn, those that did, the number tried, and the number of combinations there are. The
    most promising come first: margins are added up as if facts acted separately.
    """
    candidates = questions.candidates
    sizes = np.bincount(candidates.owner[base.chosen[:, 0]])
    n_grid = count(sizes, before.chosen.shape[1] + 1)
    most = min(_MOST_AT_ONCE, _PER_QUERY * max(0, budget))
    everything = before.is_complete and n_grid <= most
    chosen, estimates = _extended(questions, base, before, prediction_margin, None if everything else most)
    kept = ~_contains(candidates.owner[chosen], turned)
    if everything:
        n_grid = int(kept.sum())
    chosen, estimates = chosen[kept], estimates[kept]
    order = _most_promising_first(candidates.owner[chosen], estimates)[: max(0, budget)]
    rest, turning, n_tried, sets = list[tuple[np.ndarray, np.ndarray]](), [], 0, set[bytes]()
    size, end = _FIRST_BATCH, len(order)
    while n_tried < end and len(sets) < wanted:
        batch = chosen[order[n_tried : min(n_tried + size, end)]]
        reply = questions.ask(batch)
        n_tried, size = n_tried + len(batch), min(2 * size, 4096)
        rest.append((batch[~reply.reached], reply.margins[~reply.reached]))
        turning.append(batch[reply.reached])
        if len(turning[-1]):
            end = end if sets else min(end, n_tried + MORE)
            sets |= {row.tobytes() for row in candidates.owner[turning[-1]]}
    none = np.zeros((0, before.chosen.shape[1] + 1), dtype=np.intp)
    tried = Tried(
        np.concatenate([none, *(each for each, _ in rest)]),
        np.concatenate([np.zeros(0), *(margins for _, margins in rest)]),
        is_complete=everything and n_tried == len(chosen),
    )
    return tried, list(np.concatenate([none, *turning])), n_tried, n_grid


def _most_promising_first(owners: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """Return an order by estimate; if all are equal, in turn from every set of attributes, and scattered in each.

    A model that answers labels gives equal estimates, and neighboring values are likely to give equal answers.
    """
    if len(estimates) and estimates.min() < estimates.max():
        return np.argsort(-estimates, kind="stable")
    scattered = np.argsort((np.arange(len(estimates)) * 0.6180339887498949) % 1.0)
    ranks = _ranks(np.unique(_keys(owners[scattered]), return_inverse=True)[1])
    return np.asarray(scattered[np.argsort(ranks, kind="stable")])


def _keys(rows: np.ndarray) -> np.ndarray:
    """Return a number per row of whole numbers that only equal rows share, (n,)."""
    base, width = int(rows.max(initial=0)) + 1, rows.shape[1]
    if base**width < 2**62:  # much faster than comparing rows
        return np.asarray(rows @ base ** np.arange(width))
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _ranks(group: np.ndarray) -> np.ndarray:
    """Return the rank of every member in its group, from 0, in the order given."""
    by_group, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    ranks = np.empty(len(group), dtype=np.intp)
    ranks[by_group] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks


def _extended(
    questions: Questions, base: Tried, before: Tried, prediction_margin: float, most: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return combinations of one more fact, and the margins to expect if facts act separately.

    With ``most``, only about this many: the most promising before, by the most promising values.
    """
    owner = questions.candidates.owner
    gains = base.margins - prediction_margin
    if most is None:
        order = np.argsort(owner[base.chosen[:, 0]], kind="stable")
        values, gains = base.chosen[order, 0], gains[order]
        starts = np.searchsorted(owner[values], owner[before.chosen[:, -1]], side="right")
        lengths = len(values) - starts
        rows = np.repeat(np.arange(len(before.chosen)), lengths)
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        added = np.arange(len(rows)) - first + starts[rows]
        return np.column_stack([before.chosen[rows], values[added]]), before.margins[rows] + gains[added]
    few = _promising(owner[base.chosen], base.margins, math.isqrt(most))
    top = _promising(owner[before.chosen], before.margins, most // max(1, len(few)))
    rows, added = (grid.ravel() for grid in np.meshgrid(top, few, indexing="ij"))
    apart = (owner[before.chosen[rows]] != owner[base.chosen[added]]).all(axis=1)
    rows, added = rows[apart], added[apart]
    chosen = np.column_stack([before.chosen[rows], base.chosen[added]])
    estimates = before.margins[rows] + gains[added]
    chosen = np.take_along_axis(chosen, np.argsort(owner[chosen], axis=1, kind="stable"), axis=1)
    _, unique = np.unique(_keys(chosen), return_index=True)
    return chosen[unique], estimates[unique]


def _promising(owners: np.ndarray, margins: np.ndarray, most: int) -> np.ndarray:
    """Return the rows with the largest margins, in turn from every set of attributes."""
    order = np.argsort(-margins, kind="stable")
    group = np.unique(_keys(owners[order]), return_inverse=True)[1]
    return np.asarray(order[np.argsort(_ranks(group), kind="stable")][:most])


def _contains(owners: np.ndarray, sets: Sequence[frozenset[int]]) -> np.ndarray:
    """Return which rows of attributes (n, s) contain one of the sets, (n,)."""
    contains = np.zeros(len(owners), dtype=bool)
    for attributes in sets:
        contains |= np.all([(owners == a).any(axis=1) for a in attributes], axis=0)
    return contains
