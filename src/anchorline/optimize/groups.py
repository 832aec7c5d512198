r"""What the literals of a node can gain, attribute by attribute.

The literals of one attribute form a *group*. They may depend on each other strongly: an interval is the sum of
its two bounds unless a value is missing. Literals of different groups are nearly independent. Let T be a set of r
literals with parts T_g, and K_T its remaining covariance. Whiten the groups, and let :math:`A_{gh}` be the
correlations between the directions of g and h. If :math:`\kappa_{gh} \ge \|A_{gh}\|`, and :math:`\rho_g` is at
least the sum of :math:`\kappa_{gh}` over the other groups of T, then

.. math:: K_T \succeq \operatorname{blockdiag}((1 - \rho_g)\,K_{T_g}), \qquad
          \text{gain}(T) \le \sum_g \frac{\text{gain}(T_g)}{1 - \rho_g}

because :math:`2 |x_g^\top A_{gh} x_h| \le \kappa_{gh} (|x_g|^2 + |x_h|^2)`: diagonal dominance, block by block.
Parts of groups have smaller :math:`\kappa`, so :math:`\rho_j`, the sum of the r - 1 largest :math:`\kappa_{jh}`
of a single literal, bounds parts of one literal, and the r - m largest :math:`\kappa_{gh}` bound parts of m
literals. The gain of one literal is :math:`(a_j^\top Y)^2`, that of a pair has a closed form, and that of three
or more is at most that of the span of the group. The least concave majorant of (0, best literal, best pair, span)
gives each group at most three *increments*. The r largest increments of all groups bound the node, and groups of
one literal give the plain bound.

A *circuit* is a set of literals of one group whose contributions can shift the sum of all contributions at almost
no cost: a rarely broken literal, or an interval with its two bounds, where a third term does what the starting
level does. For sets with a circuit a price of the sum is worthless, and for others it is the key to a good bound.
Therefore the search splits: one tree has the sets without any circuit, and one tree has those with a circuit, at
price 0. Any list of circuits is valid; it only affects the time.
"""

from dataclasses import dataclass

import numpy as np

VANISHING = 1e-11  # a share of the variance below this is rounding noise
ALIGNED = 1e-9  # a remainder below this share of its parts is rounding noise
_INDEFINITE = 1 - 1e-9  # a rho from here on may be 1 but for rounding
_EMPTY = -1.0  # marks a place of a block without a literal
_CHEAP = 3.0  # a direction that shifts the sum at a cost this many times below that of a literal makes a circuit
_RARE = 30.0  # the same for a single literal, compared with the others
_MEMBER = 0.05  # literals with a smaller share of such a direction are not part of the circuit


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every literal, and the circuits inside the groups."""

    numbers: np.ndarray  # (d,), without gaps
    circuits: np.ndarray  # (c, d): whether a circuit holds a literal

    @classmethod
    def of(cls, numbers: np.ndarray, correlations: np.ndarray, scale: np.ndarray) -> "Groups":
        """Find the circuits; ``scale`` (d,) is 1 / standard deviation, and 0 for a literal without variance."""
        d = len(scale)
        # A literal without variance correlates with nothing, so it is a group of its own.
        numbers = np.unique(np.where(scale > 0, numbers, d + np.arange(d)), return_inverse=True)[1]
        prices = np.where(scale > 0, scale, np.inf) ** 2  # how cheaply each literal shifts the sum
        found = [[int(j)] for j in np.flatnonzero(prices > _RARE * np.median(prices))] if d else []
        table = tabulate(numbers)
        shares, vectors = np.linalg.eigh(_blocks(correlations, table))
        ones = np.where(table >= 0, scale[table], 0.0)
        moved = np.einsum("gl,gls->gs", ones, vectors) ** 2
        limits = _CHEAP * (ones**2).max(axis=1, initial=0.0)[:, None]
        for group, pos in np.argwhere((shares != _EMPTY) & (moved > limits * np.maximum(shares, VANISHING))):
            weights = np.abs(vectors[group, :, pos])
            found.append(table[group][(weights > _MEMBER * weights.max()) & (table[group] >= 0)].tolist())
        circuits = np.zeros((len(found), d), dtype=bool)
        for row, literals in zip(circuits, found, strict=True):
            row[literals] = True
        return cls(numbers, circuits)

    def rests(self, chosen: tuple[int, ...]) -> np.ndarray:
        """What the chosen literals leave of each circuit, (c, d)."""
        rests = self.circuits.copy()
        rests[:, list(chosen)] = False
        return rests

    def completing(self, chosen: tuple[int, ...]) -> np.ndarray:
        """Whether each literal completes a circuit, (d,)."""
        rests = self.rests(chosen)
        return np.asarray(rests[rests.sum(axis=1) == 1].any(axis=0))


def tabulate(index: np.ndarray) -> np.ndarray:
    """Positions by group, (G, m), filled up with -1."""
    counts = np.bincount(index)
    table = np.full((len(counts), int(counts.max(initial=0))), -1)
    order = np.argsort(index, kind="stable")
    table[index[order], np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)] = order
    return table


def _blocks(correlations: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Correlations inside the groups, (G, m, m)."""
    blocks, empty = correlations[table[:, :, None], table[:, None, :]], table < 0
    blocks[empty[:, :, None] | empty[:, None, :]] = 0.0
    places = np.arange(table.shape[1])
    blocks[:, places, places] = np.where(empty, _EMPTY, 1.0)
    return np.asarray(blocks)


@dataclass(frozen=True, eq=False)
class Spans:
    """Orthonormal directions of sets of literals of one group."""

    table: np.ndarray  # (B, m) positions, -1 where a set has fewer literals
    directions: np.ndarray  # (B, m, m), each a combination of the literals; zero where there are fewer
    null: np.ndarray | None  # (B, m, m), combinations without variance; None if there are none

    @classmethod
    def of(cls, correlations: np.ndarray, table: np.ndarray) -> "Spans":
        """Whiten the sets of a table."""
        shares, vectors = np.linalg.eigh(_blocks(correlations, table))
        vectors, solid = vectors.transpose(0, 2, 1), shares > VANISHING
        null = (shares != _EMPTY) & ~solid
        scale = np.where(solid, 1 / np.sqrt(np.where(solid, shares, 1.0)), 0.0)
        return cls(table, vectors * scale[:, :, None], vectors * null[:, :, None] if null.any() else None)

    def gains(self, y: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """Gain of each whole set, (B,); unbounded where a combination without variance is not zero."""
        y, lost = y[self.table], lost[self.table]
        along = np.abs(np.einsum("gsl,gl->gs", self.directions, y))
        along += np.einsum("gsl,gl->gs", np.abs(self.directions), lost)
        gains = np.einsum("gs,gs->g", along, along)
        if self.null is not None:
            off = np.abs(np.einsum("gsl,gl->gs", self.null, y)) - np.einsum("gsl,gl->gs", np.abs(self.null), lost)
            gains[off.max(axis=1) > ALIGNED * np.abs(y).max(axis=1)] = np.inf
        return np.asarray(gains)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Candidates by group, with the correlations inside and across the groups."""

    correlations: np.ndarray  # (n, n), 1 on the diagonal
    index: np.ndarray  # (n,) group of each candidate
    table: np.ndarray  # (G, m) positions of the candidates, -1 where a group has fewer
    near: np.ndarray  # (n, G): kappa of a candidate and another group
    spans: Spans | None = None  # None if every group has one candidate
    apart: np.ndarray | None = None  # (G, G): kappa of two groups

    @classmethod
    def of(cls, correlations: np.ndarray, numbers: np.ndarray) -> "Blocks":
        """Arrange candidates by the numbers of their groups. Cost n^2."""
        index = np.unique(numbers, return_inverse=True)[1]
        table, n = tabulate(index), len(index)
        if table.shape[1] <= 1:
            near = np.abs(correlations)
            near[np.arange(n), np.arange(n)] = 0.0
            return cls(correlations, index, table, near)
        spans = Spans.of(correlations, table)
        along = np.einsum("ngl,gsl->ngs", correlations[:, table], spans.directions)
        near = np.sqrt(np.einsum("ngs,ngs->ng", along, along))
        near[np.arange(n), index] = 0.0
        across = np.einsum("gtl,glhs->gths", spans.directions, along[table])
        apart = np.sqrt(np.einsum("gths,gths->gh", across, across))
        np.fill_diagonal(apart, 0.0)
        return cls(correlations, index, table, near, spans, apart)


def top_sums(sizes: np.ndarray, n_top: int) -> np.ndarray:
    """Sum of the ``n_top`` largest sizes of each row."""
    n = sizes.shape[1]
    if n_top <= 0 or not n:
        return np.zeros(len(sizes))
    return np.asarray(
        (np.partition(sizes, n - n_top, axis=1)[:, n - n_top :] if n_top < n - 1 else sizes).sum(axis=1)
    )


def factors(rho: np.ndarray) -> np.ndarray:
    """``1 / (1 - rho)``, infinite where the gain has no bound."""
    unbounded = rho >= _INDEFINITE
    return np.where(unbounded, np.inf, 1 / np.where(unbounded, 1.0, 1 - rho))


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of groups that may be chosen together, with their factors 1 / (1 - rho)."""

    index: np.ndarray  # (n,) group of each candidate
    table: np.ndarray  # (G, m) positions of the candidates, -1 where a group has fewer
    one: np.ndarray  # (n,) factors of single candidates
    many: np.ndarray  # (3, G) factors of parts of one, two and more literals; the rest matters if m > 1
    pairs: np.ndarray  # (2, P) places of the pairs of a group in its row of the table
    overlaps: np.ndarray  # (G, P) correlations of the pairs, NaN if they may not be chosen together
    bases: tuple[np.ndarray, Spans] | None  # groups (B,) and spans of the largest parts of more than two literals
    spans: Spans | None  # of whole groups
    required: (
        tuple[np.ndarray, np.ndarray] | None
    )  # groups and sizes of rests of circuits; one of them must be chosen

    @property
    def steps(self) -> int:
        """Number of ascent steps that pay."""
        return 2 if self.table.shape[1] == 1 else 3

    @classmethod
    def of(cls, blocks: Blocks, rests: np.ndarray, r: int, *, whole: bool) -> "Parts":
        """Split the candidates; ``rests`` (c, n) of circuits are required if ``whole``, else forbidden."""
        one, n_groups = factors(top_sums(blocks.near, r - 1)), len(blocks.table)
        owners = blocks.index[rests.argmax(axis=1)] if rests.size else np.zeros(0, dtype=np.intp)
        required = (owners, rests.sum(axis=1)) if whole else None
        if blocks.spans is None or blocks.apart is None:
            many = np.zeros((3, n_groups))
            many[:, blocks.index] = one
            none = np.zeros((0, 0))
            return cls(blocks.index, blocks.table, one, many, none, none, None, None, required)
        many = factors(np.stack([top_sums(blocks.apart, r - m) for m in (1, 2, 3)]))
        pairs = np.array(np.triu_indices(blocks.table.shape[1], 1))
        first, second = blocks.table[:, pairs[0]], blocks.table[:, pairs[1]]
        overlaps = np.where(second < 0, np.nan, blocks.correlations[first, second])
        larger = np.flatnonzero((blocks.table >= 0).sum(axis=1) > 2)
        sets = [(int(group), blocks.table[group]) for group in larger]
        if not whole:
            for rest in rests[rests.sum(axis=1) == 2]:
                overlaps[rest[first] & rest[second] & (second >= 0)] = np.nan
            sets = [part for group, row in sets for part in _without(rests[owners == group], group, row)]
        bases = None
        if sets:
            bases = (
                np.array([group for group, _ in sets]),
                Spans.of(blocks.correlations, np.array([row for _, row in sets])),
            )
        return cls(blocks.index, blocks.table, one, many, pairs, overlaps, bases, blocks.spans, required)


def _without(rests: np.ndarray, group: int, row: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The largest parts of a group, if they have more than two literals, that lack a literal of the first rest."""
    if not len(rests):
        return [(group, row)]
    parts = [np.where(row == literal, -1, row) for literal in np.flatnonzero(rests[0])]
    return [(group, part) for part in parts if (part >= 0).sum() > 2]
