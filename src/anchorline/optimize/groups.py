r"""What the literals of a node can gain, attribute by attribute.

The literals of one attribute form a *group*. They may depend on each other strongly: an interval is the sum of
its two bounds unless a value is missing. Literals of different groups are nearly independent. Let T be a set of r
literals with parts T_g, and K_T its remaining covariance. Whiten the groups, and let :math:`A_{gh}` be the
correlations between the directions of g and h. If :math:`\kappa_{gh} \ge \|A_{gh}\|`, and :math:`\rho_g` is at
least the sum of :math:`\kappa_{gh}` over the other groups of T, then

.. math:: K_T \succeq \operatorname{blockdiag}((1 - \rho_g)\,K_{T_g}), \qquad
          \text{gain}(T) \le \sum_g \frac{\text{gain}(T_g)}{1 - \rho_g}

because :math:`2 |x_g^\top A_{gh} x_h| \le \kappa_{gh} (|x_g|^2 + |x_h|^2)`: diagonal dominance, block by block.
More generally, with weights :math:`w_g > 0`, it is at most :math:`\kappa_{gh} (|x_g|^2 w_h / w_g + |x_h|^2 w_g /
w_h)`, so that :math:`\rho_g` may be the sum of :math:`\kappa_{gh} w_h / w_g`. Any weights are valid. Large
weights of groups that gain much keep these gains from growing. For a part of m literals, :math:`\rho_g` is the
sum of the r - m largest terms. The gain of one literal is :math:`(a_j^\top Y)^2`, that of a pair has a closed
form, and that of three or more is at most that of the span of the group, or of its largest parts without some
forbidden sets. The least concave majorant of (0, best literal, best pair, best span) gives each group at most
three *increments*. The r largest increments of all groups bound the node.

A *circuit* is a set of literals of one group whose contributions can shift the sum of all contributions at
almost no cost: a rarely broken literal, or an interval with its two bounds, where a third term does what the
starting level does. For sets with a circuit a price of the sum is nearly worthless, and for others it is the key
to a good bound. Therefore the search splits: one tree has the sets without any circuit, and for each circuit one
tree has the sets that hold it, where it is projected out. Any list of circuits is valid; it only affects the
time.

A circuit is *exact* if its literals are linearly dependent: the interval is the sum of its bounds. Then a set
with the circuit spans no more than the set without one of its literals, so that it fits no better than the
smaller set with a free starting level. Bounds of the variant with starting level, if they leave the sum free,
hold for sets with an exact circuit, too, which then need no trees of their own. Likewise, with a free sum, two
literals of an exact circuit fit as well as any other two of them.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

VANISHING = 1e-11  # a share of the variance below this is rounding noise
ALIGNED = 1e-9  # a remainder below this share of its parts is rounding noise
UNBOUNDED = 1e100  # stands for a gain without bound; far above every objective, and finite
INDEFINITE = 1 - 1e-9  # a rho from here on may be 1 but for rounding
_EMPTY = -1.0  # marks a place of a block without a literal
_LONG = 0.25  # groups that the chosen literals explain to a larger share are looked at one by one
_CHEAP = 3.0  # a direction that shifts the sum at a cost this many times below that of a literal makes a circuit
_RARE = 30.0  # the same for a single literal, compared with the others


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every literal, and the circuits inside the groups.

    If the sum of the contributions is free, two literals of an exact circuit span as much as any other two.
    Therefore every set has an equal one that holds none of ``redundant``.
    """

    numbers: np.ndarray  # (d,), without gaps
    circuits: np.ndarray  # (c, d): whether a circuit holds a literal
    exact: np.ndarray  # (c,): whether the literals of a circuit are linearly dependent
    redundant: np.ndarray  # (c', d): literals that are never broken, and all but one pair of exact circuits
    sums: np.ndarray  # (c'', 3): literals that are the sum of two others, which follow: exact circuits
    covariance: np.ndarray  # (d, d), in any unit
    variances: np.ndarray  # (d,), in the same unit

    @classmethod
    def of(
        cls,
        numbers: np.ndarray,
        pair_sums: np.ndarray,
        weight: float,
        covariance: np.ndarray,
        variances: np.ndarray,
    ) -> "Groups":
        """Find the circuits: rare literals, and literals that are the sum of two others, exactly or nearly."""
        d, sums = len(variances), np.diagonal(pair_sums)
        # A literal without variance correlates with nothing, so it is a group of its own.
        numbers = np.unique(np.where(variances > 0, numbers, d + np.arange(d)), return_inverse=True)[1]
        common = np.median(variances) if d else 0.0
        rare = np.flatnonzero(_RARE * variances < common)  # a rare literal shifts the sum at a low cost
        table = tabulate(numbers)
        triples = table[:, list(itertools.combinations(range(table.shape[1]), 3))].reshape(-1, 3)
        triples = triples[(triples >= 0).all(axis=1)]
        triples = np.take_along_axis(triples, np.argsort(-sums[triples], axis=1, kind="stable"), axis=1)
        whole, one, other = triples.T
        # The sum of (whole - one - other)^2 over the rows; exact, because all these sums are.
        off = sums[triples].sum(axis=1)
        off += 2 * (pair_sums[one, other] - pair_sums[whole, one] - pair_sums[whole, other])
        shares = sums[triples] / weight
        cheap = _CHEAP * off < weight * (shares * (1 - shares)).min(axis=1, initial=np.inf)
        triples, equal = triples[cheap], off[cheap] == 0
        circuits = np.concatenate([_sets(rare[:, None], d), _sets(triples, d)])
        pairs = np.concatenate([_sets(triples[equal][:, [0, i]], d) for i in (1, 2)])
        never = sums[rare] == 0
        redundant = np.concatenate([circuits[: len(rare)][never], pairs])
        exact = np.concatenate([never, equal])
        return cls(numbers, circuits, exact, redundant, triples[equal], covariance, variances)

    @cached_property
    def whitening(self) -> "Whitening":
        """Orthonormal directions of the groups."""
        return Whitening.of(self.numbers, self.covariance, self.variances)

    @cached_property
    def kappa(self) -> np.ndarray:
        """Norms of the correlations between two groups, (G, G)."""
        return self.whitening.kappa(self.covariance)

    @cached_property
    def order(self) -> np.ndarray:
        """All literals, in the order of their groups, (d,)."""
        return np.argsort(self.numbers, kind="stable")

    @cached_property
    def blocks(self) -> "Blocks":
        """All literals, in the order of their groups, before any of them is chosen."""
        index, table = arrange(self.numbers[self.order])
        inner = inside(self.covariance, self.order[table])
        return Blocks(index, table, in_units(inner, units_of(self.variances[self.order])[table]), self.kappa)


def inflation(rho: np.ndarray) -> np.ndarray:
    """``1 / (1 - rho)``, or a number that stands for no bound."""
    unbounded = rho >= INDEFINITE
    return np.where(unbounded, UNBOUNDED, 1 / np.where(unbounded, 1.0, 1 - rho))


def _sets(members: np.ndarray, d: int) -> np.ndarray:
    """Sets of literals (c, s) as masks (c, d)."""
    masks = np.zeros((len(members), d), dtype=bool, order="F")  # columns are picked much faster
    masks[np.arange(len(members))[:, None], members] = True
    return masks


def sizes_of(sets: np.ndarray) -> np.ndarray:
    """Numbers of literals of sets (c, d), which are small."""
    return np.asarray(np.add.reduce(sets.view(np.uint8), axis=1, dtype=np.uint8))


def rests_of(circuits: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    """What the chosen literals leave of each circuit, (c, d)."""
    if not chosen:
        return circuits
    rests = circuits.copy()
    rests[:, list(chosen)] = False
    return rests


def completing(circuits: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    """Whether each literal completes one of the circuits (c, d), as an array (d,)."""
    left = sizes_of(circuits) - sizes_of(circuits[:, list(chosen)])
    completes = circuits[left == 1].any(axis=0)
    completes[list(chosen)] = False
    return np.asarray(completes)


def tabulate(index: np.ndarray) -> np.ndarray:
    """Positions by group, (G, m), filled up with -1."""
    counts = np.bincount(index)
    table = np.full((len(counts), int(counts.max(initial=0))), -1)
    order = np.argsort(index, kind="stable")
    table[index[order], np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)] = order
    return table


@dataclass(frozen=True, eq=False)
class Spans:
    """Orthonormal directions of sets of literals of one group."""

    table: np.ndarray  # (B, m) positions, -1 where a set has fewer literals
    directions: np.ndarray  # (B, m, m), each a combination of the literals; zero where there are fewer
    null: np.ndarray | None  # (B, m, m), combinations without variance; None if there are none

    @classmethod
    def of(cls, table: np.ndarray, inner: np.ndarray) -> "Spans":
        """Whiten the sets of a table with correlations ``inner`` (B, m, m)."""
        empty, places = table < 0, np.arange(table.shape[1])
        inner = np.where(empty[:, :, None] | empty[:, None, :], 0.0, inner)
        inner[:, places, places] = np.where(empty, _EMPTY, 1.0)
        shares, vectors = np.linalg.eigh(inner)
        vectors, solid = vectors.transpose(0, 2, 1), shares > VANISHING
        null = (shares > _EMPTY / 2) & ~solid  # eigenvalues of empty places are computed, too, and rounded
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
            gains[off.max(axis=1) > ALIGNED * np.abs(y).max(axis=1)] = UNBOUNDED
        return np.asarray(gains)


@dataclass(frozen=True, eq=False)
class Whitening:
    """Orthonormal directions of all groups, and how far two groups depend on each other.

    A direction is a literal minus what the earlier ones of its group explain, divided by its length; a literal of
    which nothing is left has none, and its row is zero.
    """

    table: np.ndarray  # (G, m) literals of every group, filled up with -1
    directions: np.ndarray  # (G, m, m), each a combination of the literals of the group

    @classmethod
    def of(cls, numbers: np.ndarray, covariance: np.ndarray, variances: np.ndarray) -> "Whitening":
        """Orthonormalize groups with the numbers (d,), by the method of Gram and Schmidt."""
        table = tabulate(numbers)
        units, places = np.where(table < 0, 0.0, units_of(variances)[table]), np.arange(table.shape[1])
        inner = in_units(inside(covariance, table), units)
        inner[:, places, places] = 1.0
        weights, solid = _orthonormal(inner)
        solid &= table >= 0
        return cls(table, np.where(solid[:, :, None], weights * units[:, None, :], 0.0))

    def kappa(self, covariance: np.ndarray) -> np.ndarray:
        """Norms (G, G) of the correlations between the directions of two groups. Cost d^2."""
        from scipy.sparse import csr_array  # noqa: PLC0415  on first use only

        solid, used = self.directions.any(axis=2), self.directions != 0
        b, n_used, n_own = int(solid.sum()), used.sum(axis=2)[solid], solid.sum(axis=1)
        literals = np.broadcast_to(self.table[:, None, :], used.shape)[used]
        shape = (b, len(covariance))  # sparse, because a direction has few literals
        directions = csr_array((self.directions[used], literals, np.r_[0, np.cumsum(n_used)]), shape)
        shape = (len(self.table), b)  # 1 where a group has a direction
        members = csr_array((np.ones(b), np.arange(b), np.r_[0, np.cumsum(n_own)]), shape)
        across = directions @ (directions @ covariance).T
        across *= across
        kappa = np.asarray(members @ (members @ across).T)
        np.sqrt(kappa, out=kappa)
        np.fill_diagonal(kappa, 0.0)
        return kappa

    def projected(self, groups: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """Largest squared norm that a unit vector of each of the ``groups`` keeps in a projection, if below 1.

        ``residuals`` (p, groups, m) are the coordinates of their literals in the space of the projection. A norm
        of 1 belongs to a vector of that space, such as a chosen literal of the group: the projection leaves
        nothing of it.
        """
        along = np.einsum("gij,pgj->gip", self.directions[groups], residuals)
        squares = np.einsum("gip,gip->g", along, along)
        for i in np.flatnonzero(squares > _LONG).tolist():
            norms = np.linalg.eigvalsh(along[i] @ along[i].T)
            squares[i] = norms[norms < 1 - VANISHING].max(initial=0.0)
        return np.asarray(squares)


def _orthonormal(inner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions as combinations of the literals of each group, (G, m, m), and whether anything is left, (G, m).

    ``inner`` (G, m, m) are correlations.
    """
    shares, weights = np.zeros(inner.shape), np.zeros(inner.shape)
    left = np.ones(inner.shape[:2])
    scale = np.ones(inner.shape[:2])
    for i in range(inner.shape[1]):
        weights[:, i, i] = 1.0
        for j in range(i):
            known = np.einsum("gk,gk->g", shares[:, i, :j], shares[:, j, :j])
            shares[:, i, j] = (inner[:, i, j] - known) * scale[:, j]
            weights[:, i] -= shares[:, i, j, None] * weights[:, j]
        left[:, i] -= np.einsum("gk,gk->g", shares[:, i], shares[:, i])
        solid = left[:, i] > VANISHING
        scale[:, i] = np.where(solid, 1 / np.sqrt(np.where(solid, left[:, i], 1.0)), 0.0)
        weights[:, i] *= scale[:, i, None]
    return weights, scale > 0


def units_of(variances: np.ndarray) -> np.ndarray:
    """Factors that give literals unit variance; 0 where the variance is 0."""
    return np.where(variances > 0, 1 / np.sqrt(np.where(variances > 0, variances, 1.0)), 0.0)


def inside(covariance: np.ndarray, literals: np.ndarray) -> np.ndarray:
    """Covariances (G, m, m) of the literals (G, m) of each group."""
    return np.asarray(covariance[literals[:, :, None], literals[:, None, :]])


def in_units(inner: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Correlations (G, m, m), given covariances and the units (G, m) of the literals."""
    return np.asarray(inner * units[:, :, None] * units[:, None, :])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Candidates in the order of their groups, with correlations inside them and bounds on those across them."""

    index: np.ndarray  # (n,) group of each candidate
    table: np.ndarray  # (G, m) positions of the candidates, -1 where a group has fewer
    inner: np.ndarray  # (G, m, m) correlations inside the groups
    kappa: np.ndarray  # (G, G)

    def restrict(self, kept: np.ndarray) -> "Blocks":
        """Keep the candidates at the given positions."""
        groups = self.index[kept]
        index, table = arrange(groups)
        groups = groups[table[:, 0]]
        places = (kept - self.table[self.index[kept], 0])[table]
        inner = self.inner[groups[:, None, None], places[:, :, None], places[:, None, :]]
        return Blocks(index, table, inner, self.kappa[groups[:, None], groups])


def arrange(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The runs (n,) of equal numbers, and the positions by run, (G, m), filled up with -1."""
    begins = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=begins[1:])
    starts, index = np.flatnonzero(begins), np.cumsum(begins) - 1
    places = np.arange(len(numbers)) - starts[index]
    table = np.full((len(starts), int(places.max(initial=0)) + 1), -1)
    table[index, places] = np.arange(len(numbers))
    return index, table
