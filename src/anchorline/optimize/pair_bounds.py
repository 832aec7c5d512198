r"""Lower bounds for sums with pairs, for all pairs at once.

Let P be the chosen pairs, projected out, and Y fixed multipliers (`anchorline.optimize.bounds`). With
:math:`y_j = a_j^\top Y` and the remaining correlations :math:`\kappa`, one more pair q gains :math:`y_q^2`. The
rest of the sum consists of *units*. Unit j alone gains :math:`(y_j - \kappa_{qj} y_q)^2 / (1 - \kappa_{qj}^2)`.
By diagonal dominance, several units gain at most the sum of their gains, each divided by :math:`1 - \rho_j`. If no
further pair follows, the units are literals.

Otherwise a further pair p of literals i and j lies in the span of :math:`F_i`, :math:`F_j` and its *interaction*
:math:`H_p`, which is what regression on the two leaves of it. If flips are independent, interactions are
uncorrelated with all literals and with each other, up to chance. If l terms are left, at most m = l // 2 further
pairs follow, and then the units are at most l literals and m interactions. The l largest gains of literals and the
m largest gains of interactions bound such sets.

The two literals of q itself are correlated once q is projected out. Therefore they are one unit, of two columns.
"""

from dataclasses import dataclass, replace

import numpy as np

from anchorline.optimize.bounds import Centered, Projection, project, saddle

PAIR_COST = 2  # terms: the reader holds two facts
_INDEFINITE = 1 - 1e-9  # a rho from here on may be 1 but for rounding
_STEPS = 3  # of the multipliers, if the sum is fixed
_SINGULAR = 1e-9  # a determinant below this share of its terms is rounding noise


@dataclass(frozen=True, eq=False)
class PairColumns:
    """Centered statistics of literals, pairs and interactions, in this order.

    ``members`` (m, 2) are the two literals of every pair, or -1 for a literal that is not among the columns.
    """

    centered: Centered
    members: np.ndarray
    n_singles: int

    @classmethod
    def of(cls, centered: Centered, members: np.ndarray) -> "PairColumns":
        """Append the interactions to the columns. Cost n^2."""
        n_singles = len(centered.variances) - len(members)
        pairs, (first, second) = np.arange(n_singles, len(centered.variances)), members.T
        s, (has_first, has_second) = centered.covariance, members.T >= 0
        a, c = np.where(has_first, s[first, first], 1.0), np.where(has_second, s[second, second], 1.0)
        b = np.where(has_first & has_second, s[first, second], 0.0)
        x, y = s[first, pairs] * has_first, s[second, pairs] * has_second
        determinant = a * c - b * b
        solid = determinant > _SINGULAR * a * c
        inverse = np.where(solid, 1 / np.where(solid, determinant, 1.0), 0.0)
        slopes = np.stack([c * x - b * y, a * y - b * x]) * inverse

        def left(rows: np.ndarray) -> np.ndarray:
            """Return what the regression leaves of the pairs; ``rows`` (n, ...) are those of all columns."""
            shape = (-1, *[1] * (rows.ndim - 1))
            return np.asarray(
                rows[pairs] - slopes[0].reshape(shape) * rows[first] - slopes[1].reshape(shape) * rows[second]
            )

        cross = left(s)
        own = left(cross.T).T
        covariance = np.block([[s, cross.T], [cross, (own + own.T) / 2]])
        tiny = np.diagonal(own) <= _SINGULAR * s[pairs, pairs]
        variances = np.concatenate([centered.variances, np.where(tiny, 0.0, np.diagonal(own))])
        rows = np.concatenate([centered.rows, left(centered.rows.T).T], axis=1)
        return cls(replace(centered, covariance=covariance, variances=variances, rows=rows), members, n_singles)

    @property
    def singles(self) -> np.ndarray:
        """The columns of the literals."""
        return np.arange(self.n_singles)

    @property
    def pairs(self) -> np.ndarray:
        """The columns of the pairs."""
        return np.arange(self.n_singles, self.n_singles + len(self.members))

    def interactions(self, pairs: np.ndarray) -> np.ndarray:
        """The columns of the interactions of these pairs."""
        return pairs + len(self.members)


@dataclass(frozen=True, eq=False)
class _Units:
    """Units of one kind, of which at most ``slots`` are chosen."""

    columns: np.ndarray
    slots: int
    projection: Projection

    @property
    def pinned(self) -> np.ndarray:
        """Whether a unit has no variance left and yet gains without limit, (n,)."""
        pins = self.projection.pins
        return np.zeros(len(self.columns), dtype=bool) if pins is None else np.asarray(pins.any(axis=0))


def bounds_with(
    columns: PairColumns,
    chosen: tuple[int, ...],
    pairs: np.ndarray,
    left: int,
    limits: tuple[float, float],
    multipliers: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Return lower bounds of the chosen pairs with each of ``pairs`` (n,): without, and with further pairs.

    ``left`` is the number of terms that are left beside the pair, and ``limits`` are those of the variant. The
    second bound is also valid without further pairs; it is infinite if no term is left for one. Also return the
    multipliers of the last step. If the sum is fixed, each step moves to the best multipliers for the mean of the
    best sets so far, because those of a set depend on the number of its pairs.
    """
    centered, n_more = columns.centered, left // PAIR_COST
    never = np.full(len(pairs), np.inf)
    q = _Units(pairs, 1, project(centered, chosen, pairs))
    if not left:
        return q.projection.values(*limits), never, multipliers
    if centered.groups is not None and left > 1:
        return -never, -never if n_more else never, multipliers
    kinds = [_Units(columns.singles, left, project(centered, chosen, columns.singles))]
    if n_more:
        cells = columns.interactions(pairs)
        kinds.append(_Units(cells, min(n_more, len(cells)), project(centered, chosen, cells)))
    gains = _Gains.of(centered, q, kinds, columns.members[pairs - columns.n_singles])
    form, taken, own, deep = q.projection.form, np.zeros((3, 3)), -never, -never if n_more else never
    for step in range(_STEPS if limits[0] == limits[1] else 1):
        if step:
            best = _best_set(columns, chosen, int(pairs[np.argmin(own)]), left, multipliers)
            taken = taken + (form - project(centered, best, pairs[:0]).form - taken) / step
            multipliers = tuple(map(float, saddle(form - taken, *limits)))  # type: ignore[assignment]
        y = np.array([1.0, *multipliers])
        base, (without, further) = _base(q.projection, y, limits), gains.at(y)
        own, deep = np.maximum(own, base - without), deep if further is None else np.maximum(deep, base - further)
        if not np.isfinite(base):
            break
    return own, deep, multipliers


def _best_set(
    columns: PairColumns, chosen: tuple[int, ...], pair: int, left: int, multipliers: tuple[float, float]
) -> tuple[int, ...]:
    """Return the chosen pairs, one more pair, and the literals that gain most beside them."""
    beside = project(columns.centered, (*chosen, pair), columns.singles)
    sizes = np.abs(np.array([1.0, *multipliers]) @ beside.vectors)
    return (*chosen, pair, *np.argsort(-sizes, kind="stable")[:left].tolist())


def _base(projection: Projection, y: np.ndarray, limits: tuple[float, float]) -> float:
    """Return what the chosen pairs leave, at multipliers y = (1, eta, mu)."""
    if projection.line is not None:
        return -np.inf  # degenerate columns restrict the multipliers
    price = 0.0 if y[2] == 0 else 2 * min(y[2] * limits[0], y[2] * limits[1])
    return float(y @ projection.form @ y) + price - float(np.abs(y) @ projection.errors @ np.abs(y)) - 1e-14


@dataclass(frozen=True, eq=False)
class _Gains:
    """What pairs q and the units beside them gain; only the multipliers are missing.

    The factors 1 / (1 - rho) are those of literals alone, and of literals and interactions if there are any.
    """

    q: _Units
    kinds: list[_Units]
    kappas: list[np.ndarray]
    block: "_Block"
    factors: list[list[np.ndarray]]

    @classmethod
    def of(cls, centered: Centered, q: _Units, kinds: list[_Units], members: np.ndarray) -> "_Gains":
        kappas = [_correlations(centered, q, units) for units in kinds]
        if len(kinds) > 1:  # the interaction of the pair itself is not a unit
            np.fill_diagonal(kappas[1], 0.0)
        several = sum(units.slots for units in kinds) > 1
        block = _Block.of(centered, kinds, kappas, members if several else members[:0])
        factors = [_factors(centered, kinds[: i + 1], kappas, block) for i in range(len(kinds))]
        return cls(q, kinds, kappas, block, factors)

    def at(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the most that each pair and the units beside it gain, (n,): literals, and also interactions."""
        along, lost = y @ self.q.projection.vectors, np.abs(y) @ self.q.projection.noise
        own = np.where(self.q.pinned, np.inf, (np.abs(along) + lost) ** 2)
        alone = [
            _alone(units, kappa, along, lost, y) for units, kappa in zip(self.kinds, self.kappas, strict=True)
        ]
        alone[0] = self.block.joined(alone[0])
        totals = []
        for factors in self.factors:
            total = own
            for i, (units, factor) in enumerate(zip(self.kinds, factors, strict=False)):
                gains = alone[i] ** 2
                if i:
                    np.fill_diagonal(gains, 0.0)
                gains = np.where(gains > 0, gains, 1.0) * np.where(gains > 0, factor, 0.0)
                total = total + _top_sums(gains, units.slots)
            totals.append(total)
        return totals[0], totals[1] if len(totals) > 1 else None


def _alone(units: _Units, kappa: np.ndarray, along: np.ndarray, lost: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the root of what each unit gains beside each pair, if it is the only one, with its sign, (n, m)."""
    free, parts = 1 - kappa**2, y @ units.projection.vectors - kappa * along[:, None]
    parts = parts + np.copysign(np.abs(y) @ units.projection.noise + lost[:, None], parts)
    solid = free > _SINGULAR
    roots = np.where(solid, parts / np.sqrt(np.where(solid, free, 1.0)), np.inf)
    roots[:, units.projection.variances == 0] = 0.0
    roots[:, units.pinned] = np.inf
    return roots


@dataclass(frozen=True, eq=False)
class _Block:
    """The two literals of each pair, which are correlated once the pair is projected out: one unit of two columns.

    ``rows`` (b,) are the pairs that have both literals, ``places`` (2, b) their literals, ``overlaps`` (b,) the
    correlations of the two, and ``near`` those of the block with the units of every kind, (b, m).
    """

    rows: np.ndarray
    places: np.ndarray
    overlaps: np.ndarray
    near: list[np.ndarray]

    @classmethod
    def of(
        cls, centered: Centered, kinds: list[_Units], kappas: list[np.ndarray], members: np.ndarray
    ) -> "_Block":
        rows = np.flatnonzero((members >= 0).all(axis=1))
        places = members[rows].T
        if not len(rows):
            return cls(rows, places, np.zeros(0), [kappa[:0] for kappa in kappas])
        own = [kappas[0][rows, each] for each in places]
        among = _correlations(centered, kinds[0], kinds[0])
        overlaps = np.clip(_partial(among[places[0], places[1]], *own), -_INDEFINITE, _INDEFINITE)
        near = []
        for i, (units, kappa) in enumerate(zip(kinds, kappas, strict=True)):
            across = among if not i else _correlations(centered, kinds[0], units)
            sides = [
                _partial(across[each], along[:, None], kappa[rows])
                for each, along in zip(places, own, strict=True)
            ]
            near.append(np.hypot(*sides) / np.sqrt(1 - np.abs(overlaps))[:, None])
        for each in places:
            near[0][np.arange(len(rows)), each] = 0.0
        return cls(rows, places, overlaps, near)

    def joined(self, roots: np.ndarray) -> np.ndarray:
        """Return the roots of the literals' gains, with that of the block in the place of its first literal."""
        (first, second), rows, c = self.places, self.rows, self.overlaps
        a, b = roots[rows, first], roots[rows, second]
        with np.errstate(invalid="ignore"):  # infinite gains
            both = np.sqrt(np.maximum(a * a + b * b - 2 * c * a * b, 0.0) / (1 - c * c))
        roots = roots.copy()
        roots[rows, first], roots[rows, second] = np.where(np.isnan(both), np.inf, both), 0.0
        return roots


def _partial(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return correlations after a column is projected out with which the two sides correlate as given."""
    scale = np.maximum((1 - first**2) * (1 - second**2), 1e-12)
    return np.asarray((values - first * second) / np.sqrt(scale))


def _correlations(centered: Centered, first: _Units, second: _Units) -> np.ndarray:
    """Return the remaining correlations of two kinds of units, (n, m)."""
    a, b = first.projection, second.projection
    remaining = centered.covariance[first.columns[:, None], second.columns] - a.residuals.T @ b.residuals
    scale = a.variances[:, None] * b.variances
    return np.asarray(np.where(scale > 0, remaining / np.sqrt(np.where(scale > 0, scale, 1.0)), 0.0))


def _factors(centered: Centered, kinds: list[_Units], kappas: list[np.ndarray], block: _Block) -> list[np.ndarray]:
    r"""Return 1 / (1 - rho) of every unit beside every pair, (n, m) per kind.

    After a pair q is projected out, :math:`|\kappa_{ij}|` is at most :math:`(|\kappa_{ij}| + |\kappa_{qi}
    \kappa_{qj}|) / \sqrt{(1 - \kappa_{qi}^2)(1 - \kappa_{qj}^2)}`. The block of the pair's literals is added.
    """
    sizes = [np.abs(kappa) for kappa in kappas[: len(kinds)]]
    if sum(units.slots for units in kinds) == 1:
        return [np.ones_like(sizes[0])]
    for each in block.places:
        sizes[0][block.rows, each] = 0.0
    largest = np.max([size.max(axis=1, initial=0.0) for size in sizes], axis=0)[:, None]
    found = []
    for i, units in enumerate(kinds):
        among, along = np.zeros(len(units.columns)), np.zeros((len(sizes[i]), 1))
        for j, others in enumerate(kinds):
            slots = others.slots - (i == j)
            remaining = np.abs(_correlations(centered, units, others))
            if i == j:
                np.fill_diagonal(remaining, 0.0)
            among += _top_sums(remaining, slots)
            along += _top_sums(sizes[j], slots)[:, None]
        scale = np.maximum((1 - sizes[i] ** 2) * (1 - largest**2), 1e-12)
        rho = (among + sizes[i] * along) / np.sqrt(scale)
        rho[block.rows] += block.near[i] if kinds[0].slots > 1 or i else 0.0
        if not i:
            whole = [
                _top_sums(near, other.slots - (near is block.near[0]))
                for near, other in zip(block.near, kinds, strict=False)
            ]
            rho[block.rows, block.places[0]] = np.sum(whole, axis=0)
        unbounded = rho >= _INDEFINITE
        found.append(np.where(unbounded, np.inf, 1 / np.where(unbounded, 1.0, 1 - rho)))
    return found


def _top_sums(values: np.ndarray, n_top: int) -> np.ndarray:
    """Return the sum of the ``n_top`` largest values of each row."""
    n = values.shape[1]
    if n_top >= n:
        return np.asarray(values.sum(axis=1))
    return (
        np.asarray(np.partition(values, n - n_top, axis=1)[:, n - n_top :].sum(axis=1))
        if n_top > 0
        else np.zeros(len(values))
    )
