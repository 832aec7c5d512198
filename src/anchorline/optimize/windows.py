r"""All sets of options that may be better than a known one, and the best of them.

At fixed multipliers, a set with a value below the known one gains more than a limit. Sorted by what options gain
per literal, a set is built from left to right, and no set that goes on at option i with s literals to go gains
more than s times what option i gains per literal. That closes almost everything: usually all but the last literal
are settled, and all choices of the last one are valued at once. Problems advance together, size by size.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.options import SIZES, Options, Sums

_MOST = 200_000  # sets of one size per problem; with more, another solver is needed
_CELLS = 2_000_000  # of a table that is made at once
_AT_ONCE = 400_000  # numbers of options times problems


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The best sets found: ``sets`` (n, d) and ``values`` (n,), inf if none is better; or too many to look at."""

    sets: np.ndarray
    values: np.ndarray
    too_many: np.ndarray


def best_in_window(
    options: Options, sums: Sums, multipliers: tuple[np.ndarray, np.ndarray], limits: np.ndarray, table: np.ndarray
) -> Window:
    """Return the best of all sets whose gains exceed ``limits`` (n,) at the multipliers (eta, mu).

    ``table`` (n, budget + 1) are the largest gains by size.
    """
    n, d = options.possible.shape[1:]
    found = Window(np.full((n, d), -1, dtype=np.int8), np.full(n, np.inf), np.zeros(n, dtype=bool))
    step = max(1, _AT_ONCE // (len(SIZES) * d))
    for start in range(0, n, step):
        own = np.arange(start, min(n, start + step))
        part = options.take(own)
        gains = part.gains(*(each[own] for each in multipliers))
        _search(part, sums.take(own), gains, limits[own], table[own], found, own)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """The options that may be in a better set, by gain per literal; (n, m) each, filled up with gains of -inf."""

    per_literal: np.ndarray
    attributes: np.ndarray
    numbers: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, gains: np.ndarray, limits: np.ndarray, table: np.ndarray) -> "_Ranked":
        """Keep options that exceed the limit with the best others, whatever attribute these are of."""
        n, d = gains.shape[1:]
        budget = table.shape[1] - 1
        per_literal: np.ndarray = np.full(gains.shape, -np.inf)
        for number, size in enumerate(SIZES.tolist()):
            if size <= budget:
                kept = gains[number] + table[:, budget - size, None] > limits[:, None]
                np.divide(gains[number], size, out=per_literal[number], where=kept)
        per_literal = per_literal.transpose(1, 0, 2).reshape(n, -1)
        m = int(np.count_nonzero(per_literal > -np.inf, axis=1).max(initial=0))
        order = np.argsort(-per_literal, axis=1, kind="stable")[:, :m]
        numbers = order // d
        return cls(np.take_along_axis(per_literal, order, axis=1), order % d, numbers, SIZES[numbers])


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """N sets so far: their problems, the places of their options, their gains and matrices, and literals left."""

    rows: np.ndarray
    places: np.ndarray
    gains: np.ndarray
    terms: np.ndarray
    left: np.ndarray

    def take(self, kept: np.ndarray) -> "_Nodes":
        """Return some of the sets."""
        return _Nodes(self.rows[kept], self.places[kept], self.gains[kept], self.terms[:, kept], self.left[kept])


def _search(
    options: Options,
    sums: Sums,
    gains: np.ndarray,
    limits: np.ndarray,
    table: np.ndarray,
    found: Window,
    own: np.ndarray,
) -> None:
    """Record the best sets of problems with the numbers ``own``."""
    ranked, n = _Ranked.of(gains, limits, table), len(own)
    waiting = [
        _Nodes(np.arange(n), np.zeros((n, 0), np.intp), np.zeros(n), np.zeros((6, n)), np.full(n, sums.budget))
    ]
    while waiting:
        nodes = waiting.pop()
        counts = _n_children(ranked, nodes, limits)
        many = np.bincount(nodes.rows, counts, minlength=n) > _MOST
        found.too_many[own[many]] = True
        counts[many[nodes.rows]] = 0
        if counts.sum() > _MOST and nodes.rows[0] != nodes.rows[-1]:  # one part after the other, to save memory
            first = nodes.rows <= (nodes.rows[0] + nodes.rows[-1]) // 2
            waiting += [nodes.take(~first), nodes.take(first)]
            continue
        nodes = _children(options, ranked, nodes, counts)
        if len(nodes.rows):
            _record(ranked, nodes, sums.take(nodes.rows).values(nodes.terms), found, own)
            nodes = nodes.take(nodes.left > 0)
        if len(nodes.rows):
            waiting.append(nodes)


def _n_children(ranked: _Ranked, nodes: _Nodes, limits: np.ndarray) -> np.ndarray:
    """Return how many options may continue each set: those after its last, with enough gain per literal."""
    needed, stops = (limits[nodes.rows] - nodes.gains) / nodes.left, np.zeros(len(nodes.rows), dtype=np.intp)
    step = max(1, _CELLS // ranked.per_literal.shape[1])
    for start in range(0, len(stops), step):  # a table of all sets and options may be too large
        part = slice(start, start + step)
        stops[part] = (ranked.per_literal[nodes.rows[part]] > needed[part, None]).sum(axis=1)
    return np.asarray(np.maximum(stops - _begins(nodes), 0))


def _begins(nodes: _Nodes) -> np.ndarray:
    """Return the place after the last option of each set."""
    return nodes.places[:, -1] + 1 if nodes.places.shape[1] else np.zeros(len(nodes.rows), dtype=np.intp)


def _children(options: Options, ranked: _Ranked, nodes: _Nodes, counts: np.ndarray) -> _Nodes:
    """Return all sets with one more option of another attribute."""
    parents = np.repeat(np.arange(len(counts)), counts)
    places = _begins(nodes)[parents] + np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = nodes.rows[parents]
    attributes, left = ranked.attributes[rows, places], nodes.left[parents] - ranked.sizes[rows, places]
    fits = left >= 0
    for column in nodes.places.T:
        fits &= ranked.attributes[rows, column[parents]] != attributes
    parents, places, rows, attributes, left = (each[fits] for each in (parents, places, rows, attributes, left))
    numbers = ranked.numbers[rows, places]
    return _Nodes(
        rows,
        np.column_stack([nodes.places[parents], places]),
        nodes.gains[parents] + ranked.per_literal[rows, places] * SIZES[numbers],
        nodes.terms[:, parents] + options.terms[:, numbers, rows, attributes],
        left,
    )


def _record(ranked: _Ranked, nodes: _Nodes, values: np.ndarray, found: Window, own: np.ndarray) -> None:
    """Keep the best set of every problem; the first of equal ones."""
    starts = np.flatnonzero(np.r_[True, nodes.rows[1:] != nodes.rows[:-1]])  # sets of a problem are adjacent
    least = np.minimum.reduceat(values, starts)
    group = np.cumsum(np.r_[True, nodes.rows[1:] != nodes.rows[:-1]]) - 1
    at = np.flatnonzero(values == least[group])
    at = at[np.unique(group[at], return_index=True)[1]]
    at = at[values[at] < found.values[own[nodes.rows[at]]]]
    rows = nodes.rows[at]
    found.values[own[rows]] = values[at]
    found.sets[own[rows]] = -1
    for column in nodes.places[at].T:
        found.sets[own[rows], ranked.attributes[rows, column]] = ranked.numbers[rows, column]
