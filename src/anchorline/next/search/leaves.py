r"""Moments of a sum of trees under the independent law, as finite sums over leaves: no sample, no query, no error.

A leaf admits a set of values of each attribute on its path. If :math:`\mu_{\ell a}` is the probability of that set,
q times the share of the pool in it plus 1 - q if the row's own value is in it, then

.. math:: \mathbb E f = \sum_\ell v_\ell \prod_a \mu_{\ell a}, \qquad
          g_a(u) = \mathbb E[f \mid z_a = u] = \sum_\ell \frac{v_\ell}{\mu_{\ell a}}\,[\ell \text{ admits } u]
          \prod_i \mu_{\ell i}

and every :math:`\mathbb E[f\,1(\text{cell } c \text{ of } a)]` is a sum of :math:`g_a` over the pool rows in c. Values
that pass the same tests of an attribute form a *class*, on which :math:`g_a` is constant. All leaves below an edge
share the sets of the edges above, so that all sums are taken over edges: O(edges + classes) per row, whatever the
size of the pool. A leaf with :math:`\mu_{\ell a} = 0` adds nothing to any moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.model.trees import Ensemble
from anchorline.next.laws import Random

_LEAF = -1
_NOTHING = 1e-300  # divides 0 in place of 0
_MAX_PAIRS = 2**23  # pairs of an edge and a class that it admits, 16 bytes each
_WALKS = 2**13  # walks down a tree that estimate the variance of a row, unless that would be very few neighbors
_FEWEST, _MOST = 32, 256


class NotSeparableError(Exception):
    """The sums cannot be taken leaf by leaf; the text says why, as a clause that follows "because"."""


@dataclass(frozen=True, eq=False)
class Effects:
    """What the attributes of one row do to a sum of trees f, over all neighbors.

    ``mean`` is E[f]. ``own`` (attributes,) is E[f | the attribute keeps its value], and ``classes`` (classes,) is
    E[f | the attribute has a value of this class], for the classes of all attributes. ``variance`` is that of f.
    """

    mean: float
    own: np.ndarray
    classes: np.ndarray
    variance: float


@dataclass(frozen=True, eq=False)
class LeafSums:
    r"""A sum of trees with one output, joined with a pool of rows.

    Edge e leads from a test to one of its two children. Edges are numbered level by level, in each level first the
    left and then the right edges of the same tests; their number stands for the root, above all edges. ``above`` is
    the edge before on the path, ``before`` the last edge before on the path whose test is on the same attribute, and
    ``chains`` are the edges that have one such edge before, those that have two, and so on. The last ``attribute``
    stands for all features that never change. Leaves are numbered from left to right; those below edge e are
    ``first[e] <= leaf < last[e]``, and ``values`` (leaves,) are theirs minus a center per tree, so that large values
    do not cancel. ``constant`` is the sum of the base and of all centers.

    Edge e admits the classes ``lows[e] <= class < highs[e]``, and those that ``pair_edges`` and ``pair_classes`` list.
    ``shares`` (edges,) is the share of the pool in them, ``counts`` (classes,) the number of pool rows per class,
    ``class_attributes`` their attributes, and ``codes`` (attributes, pool) the class of every row of the pool.
    """

    ensemble: Ensemble
    owners: np.ndarray
    levels: tuple[slice, ...]
    node: np.ndarray
    is_left: np.ndarray
    above: np.ndarray
    before: np.ndarray
    chains: tuple[np.ndarray, ...]
    attribute: np.ndarray
    first: np.ndarray
    last: np.ndarray
    leaf_edges: np.ndarray
    values: np.ndarray
    constant: float
    lows: np.ndarray
    highs: np.ndarray
    pair_edges: np.ndarray
    pair_classes: np.ndarray
    shares: np.ndarray
    counts: np.ndarray
    class_attributes: np.ndarray
    codes: np.ndarray
    sample: "Sample"

    @classmethod
    def of(cls, ensemble: Ensemble, owners: np.ndarray, names: Sequence[str], pool: np.ndarray) -> "LeafSums":
        """Join trees with the features (n, m) of a pool.

        ``owners`` (m,) are the attributes that decide the features, -1 for features that never change; ``names`` are
        those of the attributes. Raise `NotSeparableError` if an attribute has too many classes to list.
        """
        paths = _Paths.of(ensemble, np.where(owners < 0, len(names), owners))
        classes = _Classes(ensemble, paths, len(names), len(pool))
        for number, name in enumerate(names):
            classes.add(number, name, pool)
        joined = classes.joined()
        return cls(
            ensemble=ensemble,
            owners=owners,
            **vars(paths),
            **joined,
            sample=Sample.of(owners, len(names), pool, len(ensemble.roots)),
        )

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.node)

    @property
    def n_pool(self) -> int:
        """Number of rows of the pool."""
        return int(self.codes.shape[1])

    def answer(self, features: np.ndarray) -> float:
        """Return what the trees answer to one row of features (m,)."""
        return float(self.ensemble.evaluate(features[None])[0, 0])

    def kept(self, features: np.ndarray) -> np.ndarray:
        """Return which edges admit the values of a row of features (m,): booleans (edges,)."""
        passed = self.ensemble.goes_left(self.node, features[self.ensemble.feature[self.node]])
        kept = passed == self.is_left
        for edges in self.chains:
            kept[edges] &= kept[self.before[edges]]
        return np.asarray(kept)

    def effects(self, features: np.ndarray, replace_probability: float) -> Effects:
        """Return the effects of the attributes of a row with these features (m,)."""
        n_edges, n_attributes, q = self.n_edges, len(self.codes), replace_probability
        kept = self.kept(features)
        masses = np.ones(n_edges + 1)  # of the sets that edges admit; the last is the root's
        masses[:-1] = np.where(self.attribute == n_attributes, kept, q * self.shares + (1 - q) * kept)
        np.maximum(masses, _NOTHING, out=masses)
        ratios = masses[:-1] / masses[self.before]
        ratios[masses[:-1] == _NOTHING] = 0.0  # a set that is empty stays empty
        chances = np.ones(n_edges + 1)  # that a neighbor reaches the end of each edge
        for level in self.levels:
            np.multiply(chances[self.above[level]], ratios[level], out=chances[level])
        sums = np.zeros(len(self.values) + 1)
        np.cumsum(self.values * chances[self.leaf_edges], out=sums[1:])
        mean, below = float(sums[-1]), sums[self.last] - sums[self.first]
        # What is left of an edge after the next edges on the same attribute is spread over the set that it admits.
        further = np.bincount(self.before, below, minlength=n_edges + 1)
        spread = (below - further[:-1]) / masses[:-1]
        starts = self.before == n_edges
        rest = mean - np.bincount(self.attribute[starts], below[starts], minlength=n_attributes + 1)
        own = rest + np.bincount(self.attribute, spread * kept, minlength=n_attributes + 1)
        size = len(self.counts) + 1
        steps = np.bincount(self.lows, spread, minlength=size) - np.bincount(self.highs, spread, minlength=size)
        classes = np.cumsum(steps)[:-1] + rest[self.class_attributes]
        classes += np.bincount(self.pair_classes, spread[self.pair_edges], minlength=size)[:-1]
        own = own[:-1] - mean
        classes -= mean
        first_order = q / self.n_pool * float((self.counts * classes**2).sum()) + (1 - q) * float((own**2).sum())
        variance = first_order + self._interaction(features, q, mean + self.constant, own, classes)
        mean += self.constant
        return Effects(mean, own + mean, classes + mean, variance)

    def _interaction(
        self, features: np.ndarray, q: float, mean: float, own: np.ndarray, classes: np.ndarray
    ) -> float:
        r"""Return the variance that interactions add to the effects of single attributes, from a fixed sample.

        .. math:: \operatorname{Var} f = \sum_a \operatorname{Var} g_a(z_a)
                  + \mathbb E\Bigl(f - \mathbb E f - \sum_a (g_a(z_a) - \mathbb E f)\Bigr)^2

        because attributes are independent. The first sum is known; the last term is the mean over a few neighbors,
        which the trees answer without the model. ``own`` and ``classes`` are minus the mean.
        """
        sample = self.sample
        stays = sample.uniforms >= q
        of_features = np.append(stays, np.ones((1, stays.shape[1]), dtype=bool), axis=0)[self.owners]
        inputs = np.where(of_features, features[:, None], sample.features)
        drawn = classes[np.take_along_axis(self.codes, sample.donors, axis=1)]
        single = np.where(stays, own[:, None], drawn).sum(axis=0)
        rest = self.ensemble.evaluate(np.ascontiguousarray(inputs.T))[:, 0] - mean - single
        return float((rest**2).mean())


@dataclass(frozen=True, eq=False)
class Sample:
    """A few neighbors, the same for every row: ``uniforms`` and ``donors`` (attributes, n), ``features`` (m, n).

    Attributes whose uniform number is at least q keep the row's own value, the others take that of a pool row.
    """

    uniforms: np.ndarray
    donors: np.ndarray
    features: np.ndarray

    @classmethod
    def of(cls, owners: np.ndarray, n_attributes: int, pool: np.ndarray, n_trees: int) -> "Sample":
        """Draw the sample; the more trees, the fewer neighbors."""
        n = int(np.clip(_WALKS // max(n_trees, 1), _FEWEST, _MOST))
        random = Random.of(0, b"", "leaves")
        uniforms = random.uniforms(n_attributes, n)
        donors = (random.uniforms(n_attributes, n) * len(pool)).astype(np.intp)
        rows = np.append(donors, np.zeros((1, n), dtype=np.intp), axis=0)[owners]
        return cls(uniforms, donors, np.take_along_axis(pool.T, rows, axis=1))


@dataclass(frozen=True, eq=False)
class _Paths:
    """The edges of all trees; the fields are those of `LeafSums`."""

    levels: tuple[slice, ...]
    node: np.ndarray
    is_left: np.ndarray
    above: np.ndarray
    before: np.ndarray
    chains: tuple[np.ndarray, ...]
    attribute: np.ndarray
    first: np.ndarray
    last: np.ndarray
    leaf_edges: np.ndarray
    values: np.ndarray
    constant: float

    @classmethod
    def of(cls, ensemble: Ensemble, owners: np.ndarray) -> "_Paths":
        """Return the edges of an ensemble; ``owners`` (features,) are attributes."""
        tests = _tests(ensemble)
        sizes = 2 * np.array([len(nodes) for nodes in tests], dtype=np.intp)
        ends = np.cumsum(sizes).tolist()
        levels = tuple(slice(end - size, end) for end, size in zip(ends, sizes.tolist(), strict=True))
        empty = np.empty(0, dtype=np.intp)
        node = np.concatenate([empty, *(np.tile(nodes, 2) for nodes in tests)])
        child = np.concatenate([empty, *(_children(ensemble, nodes) for nodes in tests)])
        n_edges = len(node)
        number = np.full(len(ensemble.feature), n_edges, dtype=np.intp)  # of the edge above each node
        number[child] = np.arange(n_edges)
        above, attribute = number[node], owners[ensemble.feature[node]]
        n_below = (ensemble.feature == _LEAF).astype(np.intp)
        for nodes in reversed(tests):
            n_below[nodes] = n_below[ensemble.left[nodes]] + n_below[ensemble.right[nodes]]
        first, roots = np.zeros(len(n_below), dtype=np.intp), np.asarray(ensemble.roots)
        first[roots] = np.cumsum(n_below[roots]) - n_below[roots]
        for nodes in tests:
            first[ensemble.left[nodes]] = first[nodes]
            first[ensemble.right[nodes]] = first[nodes] + n_below[ensemble.left[nodes]]
        leaves = np.concatenate([roots, child])
        leaves = leaves[ensemble.feature[leaves] == _LEAF]
        leaves = leaves[np.argsort(first[leaves])]
        values = ensemble.values[leaves, 0]
        begins = first[roots]
        centers = (np.minimum.reduceat(values, begins) + np.maximum.reduceat(values, begins)) / 2
        before = _same_attribute(above, attribute)
        return cls(
            levels=levels,
            node=node,
            is_left=ensemble.left[node] == child,
            above=above,
            before=before,
            chains=_chains(before),
            attribute=attribute,
            first=first[child],
            last=first[child] + n_below[child],
            leaf_edges=number[leaves],
            values=values - np.repeat(centers, n_below[roots]),
            constant=float(ensemble.base[0] + centers.sum()),
        )


def _tests(ensemble: Ensemble) -> list[np.ndarray]:
    """Return the nodes that are tests by depth."""
    levels, nodes = [], np.asarray(ensemble.roots, dtype=np.intp)
    while len(nodes := nodes[ensemble.feature[nodes] != _LEAF]):
        levels.append(nodes)
        nodes = _children(ensemble, nodes)
    return levels


def _children(ensemble: Ensemble, nodes: np.ndarray) -> np.ndarray:
    return np.concatenate([ensemble.left[nodes], ensemble.right[nodes]]).astype(np.intp)


def _same_attribute(above: np.ndarray, attribute: np.ndarray) -> np.ndarray:
    """Return the last edge before each edge on its path that has the same attribute."""
    n_edges = len(above)
    padded_above, padded = np.append(above, n_edges), np.append(attribute, -1)
    before = above.copy()
    while len(wrong := np.flatnonzero((before < n_edges) & (padded[before] != attribute))):
        before[wrong] = padded_above[before[wrong]]
    return before


def _chains(before: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the edges that have one earlier edge of their attribute, those that have two, and so on."""
    chains, done = [], np.append(before == len(before), True)
    waiting = np.flatnonzero(~done)
    while len(waiting):
        ready = done[before[waiting]]
        chains.append(waiting[ready])
        done[waiting[ready]] = True
        waiting = waiting[~ready]
    return tuple(chains)


class _Classes:
    """Collects the classes of all attributes: values that pass the same tests.

    If all tests of an attribute are limits of one feature, classes are ordered, an edge admits a range of them, and
    the last one is that of missing values. Otherwise (categories, groups, several features per attribute) the
    classes are the distinct rows of the pool, and every edge lists those that it admits.
    """

    def __init__(self, ensemble: Ensemble, paths: _Paths, n_attributes: int, n_pool: int) -> None:
        self._ensemble, self._paths = ensemble, paths
        self._by_attribute = np.argsort(paths.attribute, kind="stable")
        self._ends = np.searchsorted(paths.attribute[self._by_attribute], np.arange(n_attributes + 1))
        self._lows, self._highs = np.zeros((2, len(paths.node)), dtype=np.intp)
        self._pairs: list[tuple[np.ndarray, np.ndarray]] = []
        self._codes = np.zeros((n_attributes, n_pool), dtype=np.int32)
        self._sizes: list[int] = []
        self._n_pairs = 0

    def add(self, attribute: int, name: str, pool: np.ndarray) -> None:
        """Add the classes of the next attribute."""
        edges = self._by_attribute[self._ends[attribute] : self._ends[attribute + 1]]
        nodes, start = self._paths.node[edges], sum(self._sizes)
        features = np.unique(self._ensemble.feature[nodes])
        codes = [self._codes_of(int(feature), nodes, pool[:, feature]) for feature in features]
        if not codes:
            self._codes[attribute] = start
            self._sizes.append(1)
        elif len(codes) == 1 and (self._ensemble.category_set[nodes] < 0).all():
            limits = np.unique(self._ensemble.threshold[nodes])
            self._codes[attribute] = start + codes[0]
            self._sizes.append(len(limits) + 2)
            self._add_ranges(edges, limits, start, has_missing=bool((codes[0] == len(limits) + 1).any()))
        else:
            _, rows, code = np.unique(np.column_stack(codes), axis=0, return_index=True, return_inverse=True)
            self._codes[attribute] = start + code.ravel()
            self._sizes.append(len(rows))
            self._add_listed(edges, pool[rows], start, name)

    def _codes_of(self, feature: int, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return numbers (n,) that are equal for values (n,) that pass the same tests of a feature."""
        ensemble = self._ensemble
        own = nodes[ensemble.feature[nodes] == feature]
        with np.errstate(over="ignore"):
            cast = values.astype(ensemble.dtype).astype(np.float64)
        if (ensemble.category_set[own] >= 0).any():
            return np.asarray(np.unique(cast, return_inverse=True)[1])  # NaN are equal
        limits = np.unique(ensemble.threshold[own])
        codes = np.searchsorted(limits, cast, side="right" if ensemble.strict else "left")
        return np.where(np.isnan(cast), len(limits) + 1, codes)

    def _add_ranges(self, edges: np.ndarray, limits: np.ndarray, start: int, has_missing: bool) -> None:
        ensemble, paths = self._ensemble, self._paths
        nodes, is_left = paths.node[edges], paths.is_left[edges]
        at = np.searchsorted(limits, ensemble.threshold[nodes])
        self._lows[edges] = start + np.where(is_left, 0, at + 1)
        self._highs[edges] = start + np.where(is_left, at + 1, len(limits) + 1)
        missing = np.zeros(len(paths.node), dtype=bool)
        missing[edges] = ensemble.missing_left[nodes] == is_left
        for chain in self._own_chains(edges):
            before = paths.before[chain]
            self._lows[chain] = np.maximum(self._lows[chain], self._lows[before])
            self._highs[chain] = np.minimum(self._highs[chain], self._highs[before])
            missing[chain] &= missing[before]
        self._highs[edges] = np.maximum(self._lows[edges], self._highs[edges])  # an empty set
        if has_missing:
            admitting = np.flatnonzero(missing)
            self._pairs.append((admitting, np.full(len(admitting), start + len(limits) + 1)))

    def _add_listed(self, edges: np.ndarray, rows: np.ndarray, start: int, name: str) -> None:
        ensemble, paths = self._ensemble, self._paths
        if len(edges) * len(rows) > 4 * _MAX_PAIRS:
            raise NotSeparableError(f"the trees distinguish too many combinations of values of {name!r}")
        place = np.full(len(paths.node) + 1, -1, dtype=np.intp)
        place[edges] = np.arange(len(edges))
        nodes, is_left = paths.node[edges], paths.is_left[edges]
        tests, test = np.unique(nodes, return_inverse=True)
        admitted = np.empty((len(edges), len(rows)), dtype=bool)
        passed = np.array([ensemble.passes(node, rows[:, ensemble.feature[node]]) for node in tests.tolist()])
        admitted[:] = passed[test] == is_left[:, None]
        for chain in self._own_chains(edges):
            admitted[place[chain]] &= admitted[place[paths.before[chain]]]
        at, classes = np.nonzero(admitted)
        self._n_pairs += len(at)
        if self._n_pairs > _MAX_PAIRS:
            raise NotSeparableError(f"the trees distinguish too many combinations of values of {name!r}")
        self._pairs.append((edges[at], start + classes))

    def _own_chains(self, edges: np.ndarray) -> list[np.ndarray]:
        """Return those of the chains that are among some edges."""
        own = np.zeros(len(self._paths.node), dtype=bool)
        own[edges] = True
        return [chain[own[chain]] for chain in self._paths.chains]

    def joined(self) -> dict[str, np.ndarray]:
        """Return the fields of `LeafSums` that tell about classes."""
        sizes, n_pool = np.array(self._sizes, dtype=np.intp), self._codes.shape[1]
        n_classes = int(sizes.sum())
        counts = np.bincount(self._codes.ravel(), minlength=n_classes)
        empty = np.empty(0, dtype=np.intp)
        pair_edges = np.concatenate([empty, *(edges for edges, _ in self._pairs)])
        pair_classes = np.concatenate([empty, *(classes for _, classes in self._pairs)])
        ends = np.concatenate([[0], np.cumsum(counts)])
        inside = ends[self._highs] - ends[self._lows]
        inside = inside + np.bincount(pair_edges, counts[pair_classes], minlength=len(inside))
        return {
            "lows": self._lows,
            "highs": self._highs,
            "pair_edges": pair_edges,
            "pair_classes": pair_classes,
            "shares": inside / n_pool,
            "counts": counts,
            "class_attributes": np.repeat(np.arange(len(sizes)), sizes),
            "codes": self._codes,
        }


@dataclass(frozen=True, eq=False)
class Runs:
    """Classes along the order of every view: ``begins`` (runs,) in the row numbers of all views, one after another.

    Within a view, the pool is sorted in such a way that the rows of a cell are adjacent. ``classes`` (runs,) are
    those of the attribute that the view divides.
    """

    n_pool: int
    begins: np.ndarray
    lengths: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, sums: LeafSums, attributes: np.ndarray, orders: Sequence[np.ndarray]) -> "Runs":
        """Return the runs of views; ``orders`` are pool rows (n,) per view, ``attributes`` (views,) what it divides."""
        parts = [sums.codes[a][order] for a, order in zip(attributes.tolist(), orders, strict=True)]
        codes = np.concatenate([np.empty(0, dtype=np.int32), *parts])
        begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
        return cls(sums.n_pool, begins, np.diff(begins, append=len(codes)), codes[begins].astype(np.intp))

    def sums(self, per_class: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return sums of numbers per class (classes,) over the rows between consecutive ``starts`` (m,), (m - 1,).

        Starts do not decrease; row r of the order of view v has number ``v * n_pool + r``.
        """
        values = per_class[self.classes]
        ends = np.zeros(len(values) + 1)
        np.cumsum(values * self.lengths, out=ends[1:])
        at = np.searchsorted(self.begins, starts, side="right") - 1
        return np.diff(ends[at] + values[at] * (starts - self.begins[at]))
