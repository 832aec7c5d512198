"""One row and its whole neighborhood: the evidence that sums over leaves give, without a sample."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.optimize.evidence import Evidence
from anchorline.search.leaves.moments import leaf_moments, reached
from anchorline.search.leaves.outcomes import Outcomes
from anchorline.search.leaves.pairs import n_pairs, second_moment
from anchorline.search.leaves.sums import Drawn, LeafSums
from anchorline.search.sampling import Event
from anchorline.spaces.base import Law, Source

MAX_PAIRS = 5_000_000  # edges times leaves; more take longer than certifying with 5,000 fresh neighbors


@dataclass(frozen=True, eq=False)
class LeafRow:
    """A row as the trees see it: ``values`` (1, m) are its features, and ``answer`` is what the trees answer.

    ``half_range`` is half the output range, which is 1 on the scale of the drops. Drops are not clipped: an output
    beyond the output range counts with its own value. ``known`` is what `by_attribute` returns, if it was computed
    together with other rows.
    """

    sums: LeafSums
    values: np.ndarray
    sources: tuple[Source, ...]
    law: Law
    answer: float
    half_range: float
    known: tuple[float, np.ndarray] | None = None

    @property
    def n_leaves(self) -> int:
        """Number of leaves that the sums go over; 1 if no tree has a test."""
        return max(1, self.sums.paths.n_leaves)

    @cached_property
    def _drawn(self) -> Drawn:
        """How the attributes of the table are drawn."""
        return Drawn.of_row(self.law, self.sources, self.sums.n_attributes)

    @property
    def weights(self) -> np.ndarray:
        """The probabilities of the outcomes of all attributes of the table, (attributes, 1 + ways, 1)."""
        return self._drawn.weights

    @cached_property
    def _shares(self) -> np.ndarray:
        """Which share of the values of every outcome each edge admits, (1 + ways, edges, 1)."""
        return self.sums.shares(self.values, self._drawn)

    def _parts(self, weights: np.ndarray) -> np.ndarray:
        """Return the probabilities of the outcomes with a value of the edge's set, (1 + ways, edges, 1)."""
        return self.sums.weighted(self._shares, weights)

    @cached_property
    def by_attribute(self) -> tuple[float, np.ndarray]:
        """Mean drop, and the covariances of the drop with the outcomes of all attributes, (attributes, ways)."""
        if self.known is not None:
            return self.known
        paths = self.sums.paths
        mean, covariances = leaf_moments(paths, self._parts(self.weights), self.weights, paths.values[:, 0])
        return self.sums.drops(self.answer, mean[0], covariances[..., 0], self.half_range)

    @property
    def moments(self) -> tuple[float, np.ndarray]:
        """Mean drop, and the covariances of the drop with the outcomes of the law, (outcomes,)."""
        mean, covariances = self.by_attribute
        attributes, ways = np.nonzero(self.law.shares)
        return mean, covariances[self.attributes[attributes], ways]

    @cached_property
    def attributes(self) -> np.ndarray:
        """The attributes of the table that can change, (attributes of the law,)."""
        return np.array([source.attribute for source in self.sources], dtype=np.intp)

    @property
    def _breaks(self) -> np.ndarray:
        """Which literals of an attribute its outcomes break, (3, attributes, ways, 1)."""
        groups = self.law.groups
        numbers = np.arange(len(groups)) - np.searchsorted(groups, groups)  # literals of an attribute are adjacent
        breaks = np.zeros((3, self.sums.n_attributes, self.weights.shape[1] - 1, 1), dtype=bool)
        breaks[numbers, self.attributes[groups], :, 0] = self.law.breaks[:, 1:]
        return breaks

    @property
    def outcomes(self) -> Outcomes:
        """What changes of attributes do, for attributes with at most three literals."""
        mean, covariances = self.by_attribute
        n_ways = self.weights.shape[1] - 1  # `known` may have more, which are never taken
        return Outcomes(self.weights, self._breaks, np.array([mean]), covariances[:, :n_ways, None])

    @cached_property
    def explainable(self) -> float:
        r"""The mean square of the best sum of all literals, which no mean squared drop is below.

        .. math:: (E t)^2 + \sum_a \Bigl(\sum_w \frac{c_{aw}^2}{\mu_{aw}} + \frac{(\sum_w c_{aw})^2}{1 - p}\Bigr)

        c are the covariances and :math:`\mu` the probabilities of the outcomes.
        """
        mean, covariances = self.moments
        attributes, ways = np.nonzero(self.law.shares)
        p, chances = self.law.flip_probability, self.law.flip_probability * self.law.shares[attributes, ways]
        per_attribute = np.bincount(attributes, covariances, minlength=self.law.n_attributes)
        return mean**2 + float((covariances**2 / chances).sum()) + float((per_attribute**2).sum() / (1 - p))

    def evidence(self, square: float | None = None) -> Evidence:
        """Return the evidence of the whole neighborhood; ``square`` is the mean squared drop.

        Without it, the evidence is that of the part of the drops that sums of literals can explain. The rest adds
        the same to the error of every sum, so the best sums are the same.
        """
        mean, covariances = self.moments
        attributes, ways = np.nonzero(self.law.shares)
        chances = self.law.flip_probability * self.law.shares[attributes, ways]
        pairs = np.where(attributes[:, None] == attributes, 0.0, np.outer(chances, chances))
        np.fill_diagonal(pairs, chances)
        outcomes = Evidence(
            n_rows=self.n_leaves,
            weight=1.0,
            flip_sums=chances,
            pair_sums=pairs,
            cross_sums=(covariances + mean * chances)[:, None],
            drop_sums=(mean,),
            square_sums=(self.explainable if square is None else max(square, self.explainable),),
        )
        return outcomes if self.law.one_to_one else outcomes.mapped(self.law.incidence)

    @cached_property
    def has_effect(self) -> np.ndarray:
        """Whether the flips of each literal change the mean output by more than rounding, (literals,)."""
        _, covariances = self.moments
        effects = np.einsum("oj,o->j", self.law.incidence.astype(np.float64), covariances)
        return np.asarray(np.abs(effects) > self.sums.rounding(self.half_range))

    @cached_property
    def drop_square(self) -> float | None:
        """The mean squared drop over all neighbors; None if there are too many pairs of leaves."""
        return self.mean_square(self.weights, MAX_PAIRS)

    def drop_square_given(self, event: Event, n_events: int = 1) -> float | None:
        """Return the mean squared drop given one of some events; None if there are too many pairs of leaves."""
        if not len(event.attributes):  # no fact is held
            return self.drop_square
        total, most = 0.0, MAX_PAIRS // (n_events * len(event.shares))
        for number, share in enumerate(event.shares.tolist()):
            square = self.mean_square(self.weights_given(event, number), most)
            if square is None:
                return None
            total += share * square
        return total

    def mean_square(self, weights: np.ndarray, most: int | None = None) -> float | None:
        """Return the mean squared drop if outcomes have these weights; None beyond ``most`` pairs of leaves."""
        paths, by_number = self.sums.paths, {source.attribute: source for source in self.sources}
        chances = reached(paths, self._parts(weights).sum(axis=0))[:, 0]
        if most is not None and n_pairs(paths, chances) > most:
            return None
        factors = self.sums.factors(self.values, by_number, weights[..., 0], chances > 0)
        return second_moment(paths, factors, chances, self._changes) / (2 * self.half_range) ** 2

    @cached_property
    def largest_output(self) -> float:
        """No output is larger than this in absolute value, on the scale [-1, +1] of the output range at the row.

        The scale is that of the row's own drops: an output f is at :math:`(f(x) - f) / h` from the prediction.
        """
        paths = self.sums.paths
        n_trees = int(paths.leaf_trees[-1]) + 1 if paths.n_leaves else 0
        low, high = np.zeros(n_trees), np.zeros(n_trees)
        np.minimum.at(low, paths.leaf_trees, self._changes)
        np.maximum.at(high, paths.leaf_trees, self._changes)
        return 1.0 + max(float(high.sum()), -float(low.sum())) / self.half_range

    @cached_property
    def _changes(self) -> np.ndarray:
        """By how much each leaf changes the output, compared with the leaf of its tree that the row reaches."""
        paths = self.sums.paths
        own = reached(paths, self.sums.kept(self.values).astype(np.float64))[paths.leaf_edges, 0] > 0
        per_tree = np.zeros(int(paths.leaf_trees[-1]) + 1 if paths.n_leaves else 0)
        per_tree[paths.leaf_trees[own]] = paths.values[own, 0]
        return np.asarray(paths.values[:, 0] - per_tree[paths.leaf_trees])

    def weights_given(self, event: Event, number: int) -> np.ndarray:
        """Return the probabilities of the outcomes, given one of the patterns of an event."""
        weights = self.weights.copy()
        for place, attribute in enumerate(event.attributes.tolist()):
            members = np.flatnonzero(event.classes[place][event.patterns[number, place]])
            at = self.sources[attribute].attribute
            weights[at] = 0.0
            weights[at, members, 0] = self.law.odds(attribute, members)
        return weights
