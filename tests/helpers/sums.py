"""Generated problems about sums of facts, as explicit rows; and the best sum by plain enumeration.

Nothing here uses `anchorline.optimize`: moments, values and optima are computed from rows and weights.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from anchorline.facts import Candidates

Q = 0.54  # the probability that a neighbor takes another row's value
EMPTY = 1e-7  # of the largest singular value: columns of flips that depend on each other


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with weights that add up to 1: the cell of each view (views, n), and the drop (n,)."""

    candidates: Candidates
    cells: np.ndarray
    drops: np.ndarray
    weights: np.ndarray

    @property
    def flips(self):
        """Which facts each row breaks, (n, facts)."""
        candidates = self.candidates
        columns = []
        for view, first, last in zip(candidates.views, candidates.first, candidates.last, strict=True):
            columns.append([not first <= cell < last for cell in self.cells[view]])
        return np.array(columns, dtype=float).reshape(candidates.n_facts, -1).T

    @property
    def mean_square(self):
        return float(self.weights @ self.drops**2)

    def cell_drops(self):
        """The mean of t over each cell, (cells,), and the probability of each cell."""
        drops, chances = np.zeros(self.candidates.n_cells), np.zeros(self.candidates.n_cells)
        for row in self.cells:
            np.add.at(drops, row, self.weights * self.drops)
            np.add.at(chances, row, self.weights)
        return drops, chances


def every_sum(candidates, k, offered=None):
    """All sets of as many facts about different attributes as are allowed, (sets, facts).

    Smaller sets are contained in them, and a further fact never fits worse, because its effect may be 0.
    """
    numbers = range(candidates.n_facts) if offered is None else np.flatnonzero(offered).tolist()
    attributes = {}
    for fact in numbers:
        attributes.setdefault(int(candidates.attributes[candidates.views[fact]]), []).append(fact)
    size = min(k, len(attributes))
    chosen = itertools.combinations(sorted(attributes), size)
    return [facts for some in chosen for facts in itertools.product(*(attributes[a] for a in some))]


def errors_of(rows, sums):
    """The mean squared error of the best effects of each set of facts, by least squares on the rows, (sets,)."""
    roots = np.sqrt(rows.weights)
    flips, drops = rows.flips * roots[:, None], rows.drops * roots
    if not sums or not sums[0]:
        return np.full(max(len(sums), 1), float(drops @ drops))
    columns = flips[:, np.array(sums)].transpose(1, 0, 2)
    sizes = np.linalg.norm(columns, axis=1, keepdims=True)
    u, singular, _ = np.linalg.svd(columns / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    fitted = np.einsum("snk,n->sk", u, drops) * (singular > EMPTY * np.maximum(singular[:, :1], EMPTY))
    return ((drops - np.einsum("snk,sk->sn", u, fitted)) ** 2).sum(axis=1)


def best_error(rows, k, offered=None):
    """The smallest mean squared error of all sums of at most k facts."""
    return float(errors_of(rows, every_sum(rows.candidates, k, offered)).min())


def make_candidates(rng, n_attributes, n_values, groups=True):
    """Facts about attributes, with the cell of each of their values; and per attribute the cells (views, values).

    Views of 2 or more cells, the last of them sometimes for missing values; one or several views per attribute.
    Facts are some of the ranges of cells with the instance's own cell, sometimes all cells: a fact that nothing
    breaks.
    """
    attributes, starts, own, views, first, last, maps = [], [0], [], [], [], [], []
    for attribute in range(n_attributes):
        maps.append([])
        for _ in range(int(rng.integers(1, 4)) if groups and rng.random() < 0.2 else 1):
            size, start = int(rng.integers(2, n_values[attribute] + 1)), starts[-1]
            cell = int(rng.integers(size))
            is_missing = rng.random() < 0.2  # the last cell holds missing values, which break every bound
            end = size - 1 if is_missing and cell < size - 1 else size
            ranges = [(low, high) for low in range(cell + 1) for high in range(cell + 1, end + 1)]
            if is_missing and cell == size - 1:
                ranges = [(cell, size)]
            if rng.random() < 0.9 and len(ranges) > 1:
                ranges = [pair for pair in ranges if pair != (0, size)]
            for low, high in ranges:
                views.append(len(attributes))
                first.append(start + low)
                last.append(start + high)
            values = np.concatenate([np.arange(size), rng.integers(size, size=n_values[attribute] - size)])
            maps[-1].append(start + rng.permutation(values))
            attributes.append(attribute)
            starts.append(start + size)
            own.append(start + cell)
    ranks = np.array(last) - np.array(first)
    shares = np.concatenate([np.full(size, 1 / size) for size in np.diff(starts)])
    arrays = (attributes, starts, shares, own, views, first, last, ranks)
    return Candidates(*map(np.array, arrays)), [np.array(cells) for cells in maps]


def make_drops(rng, flips, kind):
    """Drops of one of six kinds: a sum, a sum with noise, noise, products, few values (ties), far from 0."""
    n, m = flips.shape
    effects = rng.normal(size=m) * (rng.random(m) < 0.5)
    noise = rng.normal(size=n)
    drops = {
        0: lambda: flips @ effects,
        1: lambda: flips @ effects + 0.3 * noise,
        2: lambda: noise,
        3: lambda: (flips @ effects) * (flips @ rng.normal(size=m)) + 0.1 * noise,
        4: lambda: np.round(flips @ np.round(effects)),
        5: lambda: flips @ effects + 0.3 * noise + rng.normal() * 20,
    }[kind]()
    return drops * 10.0 ** rng.uniform(-6, 6)


def make_product(seed):
    """All rows of a product law of 2 to 7 attributes, with their probabilities."""
    rng = np.random.default_rng([7, seed])
    n_attributes = int(rng.integers(2, 8))
    n_values = rng.integers(2, {2: 9, 3: 7, 4: 5, 5: 4}.get(n_attributes, 3), size=n_attributes)
    candidates, maps = make_candidates(rng, n_attributes, n_values)
    chances = []
    for size in n_values:
        chance = rng.dirichlet(np.ones(size)) if rng.random() < 0.7 else np.round(rng.dirichlet(np.ones(size)), 1)
        if rng.random() < 0.1:
            chance = np.eye(size)[rng.integers(size)]  # one value: facts are never or always broken
        elif rng.random() < 0.1:
            chance = chance * np.where(np.arange(size) == rng.integers(size), 1e-6, 1.0)
        chance = np.maximum(chance, 0.0) if chance.sum() > 0 else np.ones(size)
        chances.append(chance / chance.sum())
    values = np.array(list(itertools.product(*map(range, n_values)))).T
    weights = np.prod([chance[own] for chance, own in zip(chances, values, strict=True)], axis=0)
    return _rows(rng, candidates, maps, values, weights, seed)


def make_sample(seed):
    """Few rows whose attributes depend on each other: copies, complements, sums of others, and free ones."""
    rng = np.random.default_rng([8, seed])
    n_attributes, n = int(rng.integers(2, 7)), int(rng.choice([1, 2, 3, 5, 8, 16, 40]))
    n_values = rng.integers(2, {2: 8, 3: 6, 4: 5}.get(n_attributes, 4), size=n_attributes)
    candidates, maps = make_candidates(rng, n_attributes, n_values)
    hidden = rng.integers(4, size=n)
    values = np.zeros((n_attributes, n), dtype=int)
    for attribute, size in enumerate(n_values):
        kind = rng.random()
        if kind < 0.4:
            values[attribute] = rng.choice(size, p=rng.dirichlet(np.ones(size)), size=n)
        elif kind < 0.7:
            values[attribute] = np.where(rng.random(n) < 0.7, hidden, rng.integers(size, size=n)) % size
        elif kind < 0.8:
            values[attribute] = rng.integers(size)
        else:
            values[attribute] = (size - 1 - values[rng.integers(attribute + 1)]) % size
    if rng.random() > 0.7:
        values = np.repeat(values, rng.integers(1, 10, size=n), axis=1)
    n = values.shape[1]
    return _rows(rng, candidates, maps, values, np.full(n, 1 / n), seed)


def _rows(rng, candidates, maps, values, weights, seed):
    cells = np.concatenate([some[:, own] for some, own in zip(maps, values, strict=True)])
    rows = Rows(candidates, cells, np.zeros(cells.shape[1]), weights)
    return Rows(candidates, cells, make_drops(rng, rows.flips, seed % 6), weights)


def numbers(n_attributes, n_cells, n_views=1, own=2):
    """Attributes with cells of equal shares, in one or more views: all bounds and intervals around one cell."""
    views = n_attributes * n_views
    starts = np.arange(views + 1) * n_cells
    ranges = [
        (low, high) for low in range(own + 1) for high in range(own + 1, n_cells + 1) if high - low < n_cells
    ]
    first = np.concatenate([[start + low for low, _ in ranges] for start in starts[:-1]])
    last = np.concatenate([[start + high for _, high in ranges] for start in starts[:-1]])
    ranks = np.tile([int(low > 0) + int(high < n_cells) for low, high in ranges], views)
    attributes = np.repeat(np.arange(n_attributes), n_views)
    shares = np.full(views * n_cells, 1 / n_cells)
    return Candidates(
        attributes, starts, shares, own + starts[:-1], np.repeat(np.arange(views), len(ranges)), first, last, ranks
    )


def drawn(candidates, rng, n):
    """Cells of neighbors of the independent law, (views, n)."""
    size = int(np.diff(candidates.starts)[0])
    own = int(candidates.own[0])
    values = rng.integers(size, size=(candidates.n_attributes, n))
    return cells_of(candidates, np.where(rng.random(values.shape) < Q, values, own))


def cells_of(candidates, values):
    """The cells (views, n) of values (attributes, n): in the second view of a group they have changed places."""
    size, own = int(np.diff(candidates.starts)[0]), int(candidates.own[0])
    turned = np.insert(np.roll(np.delete(np.arange(size), own), 2), own, own)
    is_second = np.append(False, np.diff(candidates.attributes) == 0)
    cells = values[candidates.attributes]
    return np.where(is_second[:, None], turned[cells], cells) + candidates.starts[:-1, None]


def true_moments(candidates):
    """Chances and cell drops (cells,), mean and variance of `drops_of` under the law, by listing its values."""
    size, own = int(np.diff(candidates.starts)[0]), int(candidates.own[0])
    values = np.full((candidates.n_attributes, size**6), own)
    values[:6] = np.indices((size,) * 6).reshape(6, -1)
    chances = Q / size + (1 - Q) * (np.arange(size) == own)
    weights = chances[values[:6]].prod(axis=0)
    drops = drops_of(values)
    mean = float(weights @ drops)
    cell_drops = mean * np.tile(chances, len(candidates.own))
    for view, cells in enumerate(cells_of(candidates, values)):
        if candidates.attributes[view] < 6:
            low, high = candidates.starts[view : view + 2]
            cell_drops[low:high] = np.bincount(cells - low, weights * drops, minlength=size)
    return np.tile(chances, len(candidates.own)), cell_drops, mean, float(weights @ (drops - mean) ** 2)


def drops_of(values):
    """A function of the values of the first six attributes with steps, slopes and a product; 0 at the instance."""
    steps = 1.0 * (values[0] > 2) - 0.7 * (values[1] < 2) + 0.12 * (values[2] - 2) + 0.05 * (values[3] - 2) ** 2
    return steps + 0.6 * (values[4] > 3) * (values[0] < 4) - 0.3 * (values[5] != 2)
