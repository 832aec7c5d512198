r"""Moments of a sum of trees under the independent law, as finite sums over leaves: no sample, no query, no error.

A leaf admits a set of values of each attribute on its path. Let :math:`\mu_{\ell a}` be the probability of that
set: q times the share of the pool in it, plus 1 - q if the row's own value is in it. Then

.. math:: \mathbb E f = \sum_\ell v_\ell \prod_i \mu_{\ell i}, \qquad
          g_a(u) = \mathbb E[f \mid z_a = u]
                 = \sum_\ell [\ell \text{ admits } u]\, \frac{v_\ell}{\mu_{\ell a}} \prod_i \mu_{\ell i}

and :math:`\mathbb E[f\,1(z_a \in c)]` is a sum of :math:`g_a` over the pool rows in cell c, and the own value.
Values that pass the same tests of an attribute form a *class*, on which :math:`g_a` is constant. Leaves below an
edge share the sets of the edges above, so that all sums are taken over edges: O(edges + classes) per row, whatever
the size of the pool. A leaf with :math:`\mu_{\ell a} = 0` adds nothing to any moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.laws import Random
from anchorline.model.trees import Ensemble
from anchorline.model.trees.ensemble import LEAF

_NOTHING = 1e-300  # divides 0 in place of 0
_MAX_PAIRS = 2**23  # pairs of an edge and a class that it admits, 16 bytes each
_MAX_TRIED = 2**26  # pairs of an edge and a class of one attribute, one byte each
_WALKS = 2**13  # walks down a tree that estimate the variance of a row, unless that would be very few neighbors
_FEWEST, _MOST = 32, 256


class NotSeparableError(Exception):
    """The sums cannot be taken leaf by leaf; the text says why, as a clause that follows "because"."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """What the attributes of one row do to a sum of trees f, over all neighbors.

    ``mean`` and ``variance`` are those of f. Minus the mean, ``own`` (attributes,) is E[f | the attribute keeps
    its value], and ``classes`` (classes,) is E[f | the attribute has a value of this class], of all attributes.
    """

    mean: float
    variance: float
    own: np.ndarray
    classes: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The edges of all trees; edge e leads from a test, ``node[e]``, to one of its two children.

    Edges are numbered level by level, in each level first the left and then the right edges of the same tests; the
    number of edges stands for the root, above all of them. ``above`` is the edge before on the path, ``before`` is
    the last edge before on the path that tests the same attribute, and ``chains`` are the edges with one such edge
    before, those with two, and so on. Leaves are numbered from left to right, tree after tree; those below edge e
    are ``first[e] <= leaf < last[e]``, and those of a tree begin at ``begins``. ``values`` (leaves,) are theirs
    minus a center per tree, so that large values do not cancel; ``constant`` is the sum of the base and of all
    centers.
    """

    levels: tuple[slice, ...]
    node: np.ndarray
    is_left: np.ndarray
    attribute: np.ndarray
    above: np.ndarray
    before: np.ndarray
    chains: tuple[np.ndarray, ...]
    first: np.ndarray
    last: np.ndarray
    leaf_edges: np.ndarray
    begins: np.ndarray
    values: np.ndarray
    constant: float

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.node)

    @classmethod
    def of(cls, ensemble: Ensemble, owners: np.ndarray) -> "Paths":
        """Return the edges of an ensemble with one output; ``owners`` (features,) are attributes."""
        tests = tests_of(ensemble)
        sizes = [2 * len(nodes) for nodes in tests]
        ends = np.cumsum(sizes).tolist()
        empty = np.empty(0, dtype=np.intp)
        node = np.concatenate([empty, *(np.tile(nodes, 2) for nodes in tests)])
        child = np.concatenate([empty, *(_children(ensemble, nodes) for nodes in tests)])
        number = np.full(len(ensemble.feature), len(node), dtype=np.intp)  # of the edge above each node
        number[child] = np.arange(len(node))
        above, attribute = number[node], owners[ensemble.feature[node]]
        before = _same_attribute(above, attribute)
        first, n_below = _leaves_below(ensemble, tests)
        leaves = np.concatenate([ensemble.roots.astype(np.intp), child])
        leaves = leaves[ensemble.feature[leaves] == LEAF]
        leaves = leaves[np.argsort(first[leaves])]
        values, begins = ensemble.values[leaves, 0], first[ensemble.roots]
        centers = np.zeros(0)
        if len(values):
            centers = np.minimum.reduceat(values, begins) / 2 + np.maximum.reduceat(values, begins) / 2
        return cls(
            levels=tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True)),
            node=node,
            is_left=ensemble.left[node] == child,
            attribute=attribute,
            above=above,
            before=before,
            chains=_chains(before),
            first=first[child],
            last=first[child] + n_below[child],
            leaf_edges=number[leaves],
            begins=begins,
            values=values - np.repeat(centers, n_below[ensemble.roots]),
            constant=float(ensemble.base[0] + centers.sum()),
        )


def tests_of(ensemble: Ensemble) -> list[np.ndarray]:
    """Return the nodes that are tests by depth."""
    levels, nodes = [], np.asarray(ensemble.roots, dtype=np.intp)
    while len(nodes := nodes[ensemble.feature[nodes] != LEAF]):
        levels.append(nodes)
        nodes = _children(ensemble, nodes)
    return levels


def _children(ensemble: Ensemble, nodes: np.ndarray) -> np.ndarray:
    return np.concatenate([ensemble.left[nodes], ensemble.right[nodes]]).astype(np.intp)


def _leaves_below(ensemble: Ensemble, tests: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the first leaf below every node, and how many leaves are below it."""
    left, right, roots = ensemble.left, ensemble.right, ensemble.roots
    n_below = (ensemble.feature == LEAF).astype(np.intp)
    for nodes in reversed(tests):
        n_below[nodes] = n_below[left[nodes]] + n_below[right[nodes]]
    first = np.zeros(len(n_below), dtype=np.intp)
    first[roots] = np.cumsum(n_below[roots]) - n_below[roots]
    for nodes in tests:
        first[left[nodes]] = first[nodes]
        first[right[nodes]] = first[nodes] + n_below[left[nodes]]
    return first, n_below


def _same_attribute(above: np.ndarray, attribute: np.ndarray) -> np.ndarray:
    """Return the last edge before each edge on its path that has the same attribute."""
    root, padded = len(above), np.append(attribute, -1)
    before = above.copy()
    while len(wrong := np.flatnonzero((before < root) & (padded[before] != attribute))):
        before[wrong] = above[before[wrong]]
    return before


def _chains(before: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the edges that have one earlier edge of their attribute, those that have two, and so on."""
    chains, done = [], before == len(before)
    waiting = np.flatnonzero(~done)
    while len(waiting):
        ready = done[before[waiting]]
        chains.append(waiting[ready])
        done[waiting[ready]] = True
        waiting = waiting[~ready]
    return tuple(chains)


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Which values the edges admit; the classes of all attributes are numbered together.

    Edge e admits the classes ``lows[e] <= class < highs[e]``, and those that ``pair_edges`` and ``pair_classes``
    list. ``shares`` (edges,) is the share of the pool in them. ``counts`` (classes,) is the number of pool rows in
    each class, ``attributes`` (classes,) its attribute, and ``codes`` (attributes, pool) the class of every row.
    """

    lows: np.ndarray
    highs: np.ndarray
    pair_edges: np.ndarray
    pair_classes: np.ndarray
    shares: np.ndarray
    counts: np.ndarray
    attributes: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, ensemble: Ensemble, paths: Paths, names: Sequence[str], pool: np.ndarray) -> "Classes":
        """Find the classes of attributes with these names; ``pool`` (n, m) are the features of the pool."""
        lows, highs = np.zeros((2, paths.n_edges), dtype=np.intp)
        codes = np.zeros((len(names), len(pool)), dtype=np.intp)
        pair_edges, pair_classes = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
        by_attribute = np.argsort(paths.attribute, kind="stable")
        ends = np.searchsorted(paths.attribute[by_attribute], np.arange(len(names) + 1))
        starts = [0]
        for number, name in enumerate(names):
            edges = by_attribute[ends[number] : ends[number + 1]]
            found = _classes_of(ensemble, paths, edges, pool, sum(map(len, pair_edges)))
            if found is None:
                raise NotSeparableError(f"the trees distinguish too many combinations of values of {name!r}")
            codes[number] = starts[-1] + found.codes
            lows[edges], highs[edges] = starts[-1] + found.lows, starts[-1] + found.highs
            pair_edges.append(edges[found.pairs[0]])
            pair_classes.append(starts[-1] + found.pairs[1])
            starts.append(starts[-1] + found.size)
        counts = np.bincount(codes.ravel(), minlength=starts[-1])
        edges_, classes_ = np.concatenate(pair_edges), np.concatenate(pair_classes)
        until = np.append(0, np.cumsum(counts))
        inside = until[highs] - until[lows] + np.bincount(edges_, counts[classes_], minlength=paths.n_edges)
        attributes = np.repeat(np.arange(len(names)), np.diff(starts))
        return cls(lows, highs, edges_, classes_, inside / len(pool), counts, attributes, codes)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The ``size`` classes of one attribute, counted from 0, and its edges, counted among themselves."""

    size: int
    codes: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    pairs: tuple[np.ndarray, np.ndarray]


def _classes_of(
    ensemble: Ensemble, paths: Paths, edges: np.ndarray, pool: np.ndarray, n_pairs: int
) -> _Found | None:
    """Return the classes of an attribute with these edges; None if they would list too many pairs.

    If all its tests are limits of one feature, classes are ordered, an edge admits a range of them, and the last
    class is that of missing values. Otherwise (categories, groups, several features per attribute) they are the
    rows of the pool that some test distinguishes, and every edge lists those that it admits.
    """
    nodes, is_left = paths.node[edges], paths.is_left[edges]
    features = np.unique(ensemble.feature[nodes]).tolist()
    codes = [codes_of(ensemble, nodes[ensemble.feature[nodes] == j], pool[:, j]) for j in features]
    none = np.zeros(len(edges), dtype=np.intp)
    no_pairs = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    if not codes:
        return _Found(1, np.zeros(len(pool), dtype=np.intp), none, none, no_pairs)
    place = np.full(paths.n_edges + 1, -1, dtype=np.intp)
    place[edges] = np.arange(len(edges))
    chains = [own[own >= 0] for own in (place[chain] for chain in paths.chains)]
    before = place[paths.before[edges]]
    if len(codes) == 1 and (ensemble.category_set[nodes] < 0).all():
        limits = np.unique(ensemble.threshold[nodes])
        at = np.searchsorted(limits, ensemble.threshold[nodes])
        lows, highs = np.where(is_left, 0, at + 1), np.where(is_left, at + 1, len(limits) + 1)
        missing = ensemble.missing_left[nodes] == is_left
        for chain in chains:
            lows[chain] = np.maximum(lows[chain], lows[before[chain]])
            highs[chain] = np.minimum(highs[chain], highs[before[chain]])
            missing[chain] &= missing[before[chain]]
        has_missing = bool((codes[0] == len(limits) + 1).any())
        admitting = np.flatnonzero(missing) if has_missing else no_pairs[0]
        pairs = admitting, np.full(len(admitting), len(limits) + 1)
        return _Found(len(limits) + 2, codes[0], lows, np.maximum(lows, highs), pairs)
    _, rows, code = np.unique(np.column_stack(codes), axis=0, return_index=True, return_inverse=True)
    if len(edges) * len(rows) > _MAX_TRIED:
        return None
    tests, test = np.unique(nodes, return_inverse=True)
    passed = np.array([ensemble.passes(i, pool[rows, ensemble.feature[i]]) for i in tests.tolist()])
    admitted = passed[test] == is_left[:, None]
    for chain in chains:
        admitted[chain] &= admitted[before[chain]]
    if n_pairs + np.count_nonzero(admitted) > _MAX_PAIRS:
        return None
    at, admitted_classes = np.nonzero(admitted)
    return _Found(len(rows), code.ravel(), none, none, (at, admitted_classes))


def codes_of(ensemble: Ensemble, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return numbers (n,) that are equal for values (n,) that pass the same ones of the tests of one feature."""
    with np.errstate(over="ignore"):
        cast = values.astype(ensemble.dtype).astype(np.float64)
    if (ensemble.category_set[nodes] >= 0).any():
        return np.asarray(np.unique(cast, return_inverse=True)[1])  # all NaN are equal
    limits = np.unique(ensemble.threshold[nodes])
    codes = np.searchsorted(limits, cast, side="right" if ensemble.strict else "left")
    return np.where(np.isnan(cast), len(limits) + 1, codes)


def admitted(ensemble: Ensemble, paths: Paths, features: np.ndarray) -> np.ndarray:
    """Return which edges admit the values of a row of features (m,): booleans (edges,)."""
    admits = ensemble.goes_left(paths.node, features[ensemble.feature[paths.node]]) == paths.is_left
    for chain in paths.chains:
        admits[chain] &= admits[paths.before[chain]]
    return np.asarray(admits)


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """A few neighbors, the same for every row: ``uniforms``, ``donors`` (attributes, n) and ``features`` (m, n).

    Attributes whose uniform number is at least q keep the row's own value, the others take that of a pool row.
    """

    uniforms: np.ndarray
    donors: np.ndarray
    features: np.ndarray

    @classmethod
    def of(cls, owners: np.ndarray, n_attributes: int, pool: np.ndarray, n_trees: int) -> "_Sample":
        """Draw the sample; the more trees, the fewer neighbors."""
        n = int(np.clip(_WALKS // max(n_trees, 1), _FEWEST, _MOST))
        random = Random.of(0, b"", "leaves")
        uniforms = random.uniforms(n_attributes, n)
        donors = (random.uniforms(n_attributes, n) * len(pool)).astype(np.intp)
        rows = np.append(donors, np.zeros((1, n), dtype=np.intp), axis=0)[owners]
        return cls(uniforms, donors, np.take_along_axis(pool.T, rows, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class LeafSums:
    """A sum of trees with one output, joined with a pool.

    ``owners`` (m,) are the attributes that decide the features, or their number for features that never change.
    """

    ensemble: Ensemble
    owners: np.ndarray
    paths: Paths
    classes: Classes
    _sample: _Sample

    @classmethod
    def of(cls, ensemble: Ensemble, owners: np.ndarray, names: Sequence[str], pool: np.ndarray) -> "LeafSums":
        """Join trees with the features (n, m) of a pool; ``names`` are those of the attributes.

        ``owners`` (m,) are as above; -1, too, stands for features that never change. Raise `NotSeparableError` if
        an attribute has too many classes.
        """
        owners = np.where(owners < 0, len(names), owners)
        paths = Paths.of(ensemble, owners)
        classes = Classes.of(ensemble, paths, names, pool)
        return cls(ensemble, owners, paths, classes, _Sample.of(owners, len(names), pool, len(ensemble.roots)))

    def least(self, allowed: np.ndarray, own: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a bound of the sum from below, and which edges can be reached, (edges,).

        Of each tree, the least value of the leaves that can be reached. ``allowed`` (classes,) says which classes
        of values may occur, ``own`` (edges,) which edges the row's own values pass where they may occur.
        """
        paths, classes = self.paths, self.classes
        until = np.concatenate([[0], np.cumsum(allowed)])
        alive = (until[classes.highs] > until[classes.lows]) | own
        alive |= np.bincount(classes.pair_edges, allowed[classes.pair_classes], minlength=len(alive)) > 0
        alive = np.append(alive, True)  # the root
        for level in paths.levels:
            alive[level] &= alive[paths.above[level]]
        values = np.where(alive[paths.leaf_edges], paths.values, np.inf)
        return float(np.minimum.reduceat(values, paths.begins).sum() + paths.constant), alive[:-1]

    def answer(self, features: np.ndarray) -> float:
        """Return what the trees answer to a row of features (m,)."""
        return float(self.ensemble.evaluate(features[None])[0, 0])

    def effects(self, features: np.ndarray, replace_probability: float) -> Effects:
        """Return the effects of the attributes of a row with these features (m,).

        All are exact, except that the variance of several trees is estimated in part; see `_interaction`.
        """
        paths, classes, q = self.paths, self.classes, replace_probability
        n_edges, n_attributes, n_pool = paths.n_edges, *classes.codes.shape
        kept = admitted(self.ensemble, self.paths, features)
        masses = np.ones(n_edges + 1)  # of the sets that edges admit; the last is the root's
        masses[:-1] = np.where(paths.attribute == n_attributes, kept, q * classes.shares + (1 - q) * kept)
        ratios = masses[:-1] / np.maximum(masses, _NOTHING)[paths.before]
        chances = np.ones(n_edges + 1)  # that a neighbor reaches the end of each edge
        for level in paths.levels:
            np.multiply(chances[paths.above[level]], ratios[level], out=chances[level])
        sums = np.zeros(len(paths.values) + 1)
        np.cumsum(paths.values * chances[paths.leaf_edges], out=sums[1:])
        mean, below = float(sums[-1]), sums[paths.last] - sums[paths.first]
        # What an edge does not leave to later edges of its attribute is spread over the set that it admits.
        later = np.bincount(paths.before, below, minlength=n_edges + 1)
        spread = (below - later[:-1]) / np.maximum(masses[:-1], _NOTHING)
        starts = paths.before == n_edges
        rest = -np.bincount(paths.attribute[starts], below[starts], minlength=n_attributes + 1)
        own = (rest + np.bincount(paths.attribute, spread * kept, minlength=n_attributes + 1))[:-1]
        size = len(classes.counts) + 1
        steps = np.bincount(classes.lows, spread, minlength=size)
        steps -= np.bincount(classes.highs, spread, minlength=size)
        each = np.cumsum(steps)[:-1] + rest[classes.attributes]
        each += np.bincount(classes.pair_classes, spread[classes.pair_edges], minlength=size)[:-1]
        if len(self.ensemble.roots) == 1:
            variance = float((paths.values - mean) ** 2 @ chances[paths.leaf_edges])
        else:
            variance = q / n_pool * float(classes.counts @ each**2) + (1 - q) * float(own @ own)
            variance += self._interaction(features, q, mean + paths.constant, own, each)
        return Effects(mean + paths.constant, variance, own, each)

    def _interaction(
        self, features: np.ndarray, q: float, mean: float, own: np.ndarray, classes: np.ndarray
    ) -> float:
        r"""Return the variance that interactions add to that of single attributes, estimated from a few neighbors.

        .. math:: \operatorname{Var} f = \sum_a \operatorname{Var} g_a(z_a)
                  + \mathbb E\Bigl(f - \mathbb E f - \sum_a (g_a(z_a) - \mathbb E f)\Bigr)^2

        because attributes are independent. The first sum is known. The last term would take all pairs of trees; it
        is a mean over a fixed sample of neighbors, which the trees answer without the model. The variance is the
        unit of "1% of Var t" only; no fact, effect or contribution depends on it otherwise.
        """
        sample = self._sample
        stays = sample.uniforms >= q
        of_features = np.append(stays, np.ones((1, stays.shape[1]), dtype=bool), axis=0)[self.owners]
        inputs = np.where(of_features, features[:, None], sample.features)
        drawn = classes[np.take_along_axis(self.classes.codes, sample.donors, axis=1)]
        single = np.where(stays, own[:, None], drawn).sum(axis=0)
        rest = self.ensemble.evaluate(np.ascontiguousarray(inputs.T))[:, 0] - mean - single
        return float((rest**2).mean())


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The classes of pool rows in the order of every view, in which the rows of a cell are adjacent.

    ``begins`` (runs,) is where runs of one class begin, in the rows of all views one after another: row r in the
    order of view v has number ``v * n_pool + r``. ``lengths`` and ``classes`` (runs,) are those of the runs.
    """

    begins: np.ndarray
    lengths: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, classes: Classes, attributes: np.ndarray, orders: Sequence[np.ndarray]) -> "Runs":
        """Return the runs of views of these ``attributes`` (views,), with ``orders`` (n_pool,) of pool rows."""
        parts = [classes.codes[a][order] for a, order in zip(attributes.tolist(), orders, strict=True)]
        codes = np.concatenate([np.empty(0, dtype=np.intp), *parts])
        begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
        return cls(begins, np.diff(begins, append=len(codes)), codes[begins])

    def sums(self, per_class: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return sums of numbers per class (classes,) over the rows ``begins <= row < ends``, both (m,): (m,)."""
        values = per_class[self.classes]
        until = np.zeros(len(values) + 1)
        np.cumsum(values * self.lengths, out=until[1:])
        bounds = np.stack([begins, ends])
        at = np.searchsorted(self.begins, bounds, side="right") - 1
        low, high = until[at] + values[at] * (bounds - self.begins[at])
        return np.asarray(high - low)
