r"""How far an attribute falls short of a reference: by the leaves of trees, or by pairs of altered copies.

A copy keeps each value with probability 1/2, and otherwise takes that of a row of the reference. The shortfall of
attribute a is the mean output if it takes a reference value, minus the mean output if it keeps its own,

.. math:: s_a = \mathbb E[f \mid z_a \sim \text{reference}] - \mathbb E[f \mid z_a = x_a],

with the sign turned if a high output is adverse. For a score that adds up, :math:`f = \sum_a f_a`, this is
:math:`\frac1n \sum_r f_a(r) - f_a(x_a)`: what the case lacks of the reference's average points.

Copies come in pairs that differ in a alone, so that what all other attributes do cancels, and the same copies
serve all attributes. The reference values of m pairs are spread over m equal parts of the sorted reference, so
that what remains is how the effect of a depends on the others. Its variance is half the mean square of
successive differences in that order. After every round, only what is still open at the cut is asked about again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.errors import ParameterError
from anchorline.search.case import Case
from anchorline.spaces.table import TableNeighborhood

_ROUNDS, _GROWTH = 4, 3  # the next round has three times as many pairs as all before, because calls are slow
_FIRST, _LARGEST, _FEWEST = 6000, 256, 16  # copies of the first round; pairs per attribute: at most, at least
_ROWS = 8192  # copies that are built at once

Sides = tuple[int, int, int]  # how many donors have lower values, where higher ones begin, and where they end


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The shortfalls of all attributes, (attributes,), half the width of their limits, and the number of pairs.

    ``tilts`` are positive where higher values are better than lower ones, and NaN without an order.
    """

    values: np.ndarray
    halves: np.ndarray
    n: np.ndarray
    tilts: np.ndarray

    @property
    def scale(self) -> float:
        """The largest size, relative to which rounding is judged."""
        return float(np.abs(self.values).max(initial=0.0)) or 1.0


def read_off(neighborhood: TableNeighborhood, gains: np.ndarray, sign: float) -> Measured:
    """Return what is known of all donors, (attributes, n_pool), without error."""
    signed, donors = sign * gains, np.arange(gains.shape[1])
    tilts = [_tilt(sides_of(neighborhood, a), donors, own) for a, own in enumerate(signed)]
    zeros = np.zeros(len(gains))
    return Measured(signed.mean(axis=1), zeros, zeros.astype(np.intp), np.array(tilts))


def measure(
    case: Case, sign: float, is_open: Callable[[Measured], Sequence[int]], most: int, *, is_patient: bool
) -> Measured:
    """Compare pairs, at most ``most`` copies, until nothing is open; limits hold at every look together.

    If ``is_patient``, the last round takes all copies that are left.
    """
    neighborhood = case.neighborhood
    assert isinstance(neighborhood, TableNeighborhood)
    n_attributes = len(neighborhood.names)
    sides = [sides_of(neighborhood, a) for a in range(n_attributes)]
    needed = _FEWEST * (n_attributes + 1)
    if most < needed:
        raise ParameterError(
            f"{needed:,} queries are needed to compare {n_attributes} attributes, but queries leaves only "
            f"{most:,}. Type queries={2 * needed}."
        )
    donors, gains = [[[np.empty(0)] for _ in range(n_attributes)] for _ in range(2)]
    active: Sequence[int] = range(n_attributes)
    m = min(max(_FIRST // (n_attributes + 1), _FEWEST), _LARGEST, most // (n_attributes + 1))
    for batch in range(_ROUNDS):
        new_donors, new_gains = _pairs(case, batch, m, active)
        most -= m * (len(active) + 1)
        for a, own, gain in zip(active, new_donors, new_gains, strict=True):
            donors[a].append(own)
            gains[a].append(sign * gain)
        both = [(np.concatenate(donors[a]), np.concatenate(gains[a])) for a in range(n_attributes)]
        found = _figures(both, sides, case.settings.confidence)
        active = is_open(found)
        m = most // (len(active) + 1)
        if not active or m < _FEWEST:
            break
        if not is_patient or batch < _ROUNDS - 2:
            m = min(_GROWTH * max(int(found.n[a]) for a in active), m)
    return found


def _pairs(case: Case, batch: int, m: int, active: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the donors of m pairs of copies per active attribute, and what they change, both (active, m)."""
    neighborhood, random = case.neighborhood, case.random("reasons", batch)
    assert isinstance(neighborhood, TableNeighborhood)
    shape, n_pool = (len(neighborhood.names), m), neighborhood.table.n_pool
    parts = random.uniforms(*shape).argsort(axis=1, kind="stable") + random.uniforms(*shape)
    donors = np.minimum((parts * (n_pool / m)).astype(np.int32), n_pool - 1)
    keeps = random.uniforms(*shape) >= case.settings.replace_probability
    base = np.where(keeps, np.int32(-1), donors)
    drops, chosen, step = list[np.ndarray](), [-1, *active], max(1, _ROWS // m)
    for start in range(0, len(chosen), step):
        some = chosen[start : start + step]
        copies = np.tile(base, len(some))
        for place, a in enumerate(some):
            if a >= 0:  # otherwise, these are the copies that all others are compared with
                copies[a, place * m : (place + 1) * m] = np.where(keeps[a], donors[a], -1)
        drops += list(case.ask(copies).drops.reshape(len(some), m))
    return donors[chosen[1:]], np.where(keeps[chosen[1:]], 1.0, -1.0) * (drops[0] - np.array(drops[1:]))


def _figures(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], sides: Sequence[Sides | None], confidence: float
) -> Measured:
    from scipy.special import ndtri  # noqa: PLC0415  (`import anchorline` loads NumPy only)

    z = -float(ndtri((1 - confidence) / (2 * _ROUNDS * len(pairs))))
    halves = []
    for donors, gains in pairs:
        steps = np.diff(gains[np.argsort(donors, kind="stable")])
        halves.append(z * float(np.sqrt((steps**2).mean() / 2 / len(gains))))
    return Measured(
        np.array([gains.mean() for _, gains in pairs]),
        np.array(halves),
        np.array([len(gains) for _, gains in pairs]),
        np.array([_tilt(side, *pair) for side, pair in zip(sides, pairs, strict=True)]),
    )


def sides_of(neighborhood: TableNeighborhood, attribute: int) -> Sides | None:
    """Return which donors of an attribute have lower and which have higher values; None without an order.

    Donors are sorted by the one view of their attribute, missing values last.
    """
    views, own = neighborhood.table.views, neighborhood.table.attributes[attribute].views
    view, column = int(np.searchsorted(views.attributes, attribute)), neighborhood.columns[own[0]]
    if len(own) > 1 or not views.ordered[view] or column.missing[0]:
        return None
    value, ladder = float(column.values[0]), views.sorted[view]
    lower, higher = (int(ladder.starts[np.searchsorted(ladder.values, value, side)]) for side in ("left", "right"))
    return lower, higher, ladder.n_present


def _tilt(side: Sides | None, donors: np.ndarray, gains: np.ndarray) -> float:
    if side is None:
        return np.nan
    lower, higher, end = side
    return float(gains[(donors >= higher) & (donors < end)].sum() - gains[donors < lower].sum())
