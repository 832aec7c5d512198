"""A sample as most solvers read it: `Evidence`, whose sums add up."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import SampleError
from anchorline.grid import DROP_GRID

WEIGHT_GRID = 2.0**50  # weights that add up to at most 8 have exact sums on this grid
# Grids of the parts into which drops and squared drops, times the weights, are split. The sum of each part is
# exact, because a part has at most 30 bits, and the first part of weighted drops adds up to at most 8.
_DROP_PARTS = (2.0**50, 2.0**80, 2.0**110, 2.0**140)
_SQUARE_PARTS = (DROP_GRID, 2.0**52, 2.0**80, 2.0**110, 2.0**140, 2.0**170)
_EPS = float(np.finfo(np.float64).eps)
_MAX_ROUNDING = 1e-12  # a mean square whose rounding error may be a larger share of mean t^2 is computed exactly
_MIN_WEIGHT = 2.0**-30  # mean weight per row at which rounding may have moved a millionth of the weight
_DIGIT = 2.0**9  # of the drops, see `_sums`
_ROWS_PER_PRODUCT = 2**14  # bounds the memory; float32 counts rows exactly up to 2^24
_DEPENDENT = 1e-9  # a flip whose variance falls to this share, given other flips, is a function of them


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    r"""Weighted sums of flips and drops; ``Evidence(a) + Evidence(b)`` is the evidence of both samples.

    With flips :math:`F \in \{0,1\}^{n \times d}`, drops :math:`t \in \mathbb R^n` and weights
    :math:`\omega` (all 1 by default), it stores :math:`\sum\omega`, :math:`F^\top\omega`,
    :math:`F^\top \mathrm{diag}(\omega) F`, :math:`F^\top(\omega t)`, :math:`\omega^\top t` and
    :math:`\omega^\top t^2`. Its size is d x d and does not depend on n. Every sum of drops or of their squares is
    stored in parts, multiples of ever smaller powers of 2, which are exact for drops on the grid of
    :math:`2^{-26}`. Weights should be probabilities: they are rounded to multiples of :math:`2^{-50}`.

    Examples
    --------
    >>> first = Evidence.from_sample([[1, 0], [0, 1]], [0.5, 0.25])
    >>> second = Evidence.from_sample([[1, 1]], [1.0])
    >>> both = first + second
    >>> both.n_rows, both.flip_means.round(3).tolist(), both.drop_mean.__round__(3)
    (3, [0.667, 0.667], 0.583)
    """

    n_rows: int
    weight: float
    flip_sums: np.ndarray
    pair_sums: np.ndarray
    cross_sums: np.ndarray  # (d, 4), in parts
    drop_sums: tuple[float, ...]  # in parts
    square_sums: tuple[float, ...]  # in parts

    def __post_init__(self) -> None:
        for array in (self.flip_sums, self.pair_sums, self.cross_sums):
            array.setflags(write=False)

    @classmethod
    def from_sample(cls, flips: np.ndarray, drops: np.ndarray, weights: np.ndarray | None = None) -> "Evidence":
        """Sum a sample of flips (n, d) of 0/1, drops (n,) and optional weights (n,) >= 0. Cost n d^2."""
        flips, drops, weights = check_sample(flips, drops, weights)
        parts = [
            cls._from_rows(flips[rows], drops[rows], None if weights is None else weights[rows])
            for rows in (slice(i, i + _ROWS_PER_PRODUCT) for i in range(0, len(drops), _ROWS_PER_PRODUCT))
        ]
        return sum(parts[1:], parts[0])

    @classmethod
    def _from_rows(cls, flips: np.ndarray, drops: np.ndarray, weights: np.ndarray | None) -> "Evidence":
        cross_sums = None
        if weights is None:
            pair_sums, cross_sums = _sums(flips, drops)
            weight, weighted = float(len(drops)), drops
        else:
            weights, table = _round_to(WEIGHT_GRID, weights), flips.astype(np.float64)
            pair_sums, weight = table.T @ (table * weights[:, None]), float(weights.sum())
            weighted = weights * drops
        parts = _split(weighted, _DROP_PARTS)
        if cross_sums is None:  # einsum casts in small blocks and builds no table of floats
            cross_sums = np.stack([_column_sums(part, flips) for part in parts], axis=1)
        return cls(
            n_rows=len(drops),
            weight=weight,
            flip_sums=np.diagonal(pair_sums).copy(),
            pair_sums=pair_sums,
            cross_sums=cross_sums,
            drop_sums=tuple(float(part.sum()) for part in parts),
            square_sums=tuple(float(part.sum()) for part in _split(weighted * drops, _SQUARE_PARTS)),
        )

    def __add__(self, other: "Evidence") -> "Evidence":
        if not isinstance(other, Evidence):
            return NotImplemented
        if other.n_literals != self.n_literals:
            raise SampleError(
                f"Evidence on {other.n_literals} literals was added to evidence on {self.n_literals} literals. "
                "Both must come from the same neighborhood. Add only evidence of samples of one instance."
            )
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            weight=self.weight + other.weight,
            flip_sums=self.flip_sums + other.flip_sums,
            pair_sums=self.pair_sums + other.pair_sums,
            cross_sums=self.cross_sums + other.cross_sums,
            drop_sums=tuple(map(sum, zip(self.drop_sums, other.drop_sums, strict=True))),
            square_sums=tuple(map(sum, zip(self.square_sums, other.square_sums, strict=True))),
        )

    def scaled(self, factor: float) -> "Evidence":
        """The evidence of the drops times ``factor``; exact if the factor is a power of 2."""
        scaled = replace(
            self,
            cross_sums=self.cross_sums * factor,
            drop_sums=tuple(part * factor for part in self.drop_sums),
            square_sums=tuple(part * factor * factor for part in self.square_sums),
        )
        scaled.__dict__["second_moments"] = self.second_moments  # computed once, because it is large
        return scaled

    def mapped(self, breaks: np.ndarray) -> "Evidence":
        r"""Evidence on literals, computed from this evidence on outcomes; ``breaks`` (m, d) is 0/1.

        A drawn attribute has one of several outcomes that exclude each other, for example a value below the
        bounds, a value above them, or a missing value. ``breaks[o, j]`` says whether outcome o breaks literal j.
        The flips are sums of outcomes, :math:`F = O B`, and therefore all sums of F follow, for example
        :math:`F^\top F = B^\top (O^\top O) B`. They are exact and equal the sums that `from_sample` computes from
        F, at a cost of about d^2 instead of n d^2. Outcomes that break the same literal must exclude each other.

        Examples
        --------
        >>> outcomes = Evidence.from_sample([[1, 0], [0, 1], [0, 0]], [0.5, 0.25, 0.0])  # below, above
        >>> outcomes.mapped([[1, 0, 1], [0, 1, 1]]).flip_sums.tolist()  # lower bound, upper bound, interval
        [1.0, 1.0, 2.0]
        """
        from scipy.sparse import csr_array  # noqa: PLC0415  on first use only

        breaks = np.asarray(breaks)
        if breaks.ndim != 2 or len(breaks) != self.n_literals:
            raise SampleError(
                f"The table of outcomes that break literals has shape {breaks.shape}, but this evidence is on "
                f"{self.n_literals} outcomes. It must have the shape ({self.n_literals}, d). "
                "Type one row per outcome and one column per literal."
            )
        d = breaks.shape[1]
        literals, outcomes = np.divmod(np.flatnonzero(np.asarray(breaks.T, order="C")), max(1, len(breaks)))
        ends = literals.searchsorted(np.arange(d + 1))
        # Sparse, because a literal has few outcomes: ten times faster.
        spread = csr_array((np.ones(len(outcomes)), outcomes, ends), (d, len(breaks)))
        pair_sums = spread @ (spread @ self.pair_sums).T
        return replace(
            self,
            flip_sums=np.diagonal(pair_sums).copy(),
            pair_sums=pair_sums,
            cross_sums=spread @ self.cross_sums,
        )

    def __radd__(self, other: object) -> "Evidence":
        return self if other == 0 else NotImplemented  # sum() starts with 0

    def restricted(self, literals: np.ndarray) -> "Evidence":
        """Evidence on some of the literals only, given by their indices."""
        return replace(
            self,
            flip_sums=self.flip_sums[literals],
            pair_sums=self.pair_sums[np.ix_(literals, literals)],
            cross_sums=self.cross_sums[literals],
        )

    @property
    def n_literals(self) -> int:
        """Number of literals d."""
        return len(self.flip_sums)

    @cached_property
    def flip_means(self) -> np.ndarray:
        """Share of the weight with each literal flipped, ``b = mean F``, shape (d,)."""
        return _read_only(self.flip_sums / self._divisor)

    @cached_property
    def second_moments(self) -> np.ndarray:
        """``G = mean F'F``, shape (d, d)."""
        return _read_only(self.pair_sums / self._divisor)

    @cached_property
    def cross_moments(self) -> np.ndarray:
        """``h = mean F't``, shape (d,)."""
        return _read_only(self.cross_sums[:, ::-1].sum(axis=1) / self._divisor)

    @cached_property
    def drop_mean(self) -> float:
        """Mean of t."""
        return sum(reversed(self.drop_sums)) / self._divisor

    @cached_property
    def drop_square(self) -> float:
        """Mean of t^2, which is the fidelity error of the explanation that consists of the intercept only."""
        return sum(reversed(self.square_sums)) / self._divisor

    def mean_square(self, contributions: np.ndarray) -> float:
        """Mean of ``(t - F u)^2`` for dense contributions u (d,).

        If contributions are so much larger than the drops that the float64 result might be wrong by 1e-12 of mean
        t^2, it is computed in rational numbers.
        """
        support = np.flatnonzero(contributions)
        values = np.asarray(contributions, dtype=np.float64)[support]
        gram, cross = self.second_moments[np.ix_(support, support)], self.cross_moments[support]
        if 4 * _EPS * _largest_part(gram, cross, values) > _MAX_ROUNDING * self.drop_square:
            return self._exact_mean_square(support, values)
        return max(0.0, float(self.drop_square + (values @ gram @ values - 2 * cross @ values)))

    def blur(self, contributions: np.ndarray) -> float:
        """Most by which rounding may change the mean square of contributions that minimize it.

        Drops that are weighted, or off the grid, have rounded sums. The rounding of contributions at a minimum
        counts only by its square.
        """
        support = np.flatnonzero(contributions)
        values = np.asarray(contributions, dtype=np.float64)[support]
        own = float(4 * _EPS * np.abs(values).max(initial=0.0)) ** 2
        gram, cross = self.second_moments[np.ix_(support, support)], self.cross_moments[support]
        return own + 4 * _EPS * _largest_part(gram, cross, values)

    def _exact_mean_square(self, support: np.ndarray, values: np.ndarray) -> float:
        u, total = _exact(values), sum(_exact(self.square_sums))
        for literal, value in zip(support, u, strict=True):
            pairs = _exact(self.pair_sums[literal, support])
            drops = sum(_exact(self.cross_sums[literal]))
            total += value * (sum(a * b for a, b in zip(u, pairs, strict=True)) - 2 * drops)
        return max(0.0, float(total / Fraction(self._divisor)))  # large weights have rounded sums

    @property
    def _divisor(self) -> float:
        if self.weight > self.n_rows * _MIN_WEIGHT:
            return self.weight
        raise SampleError(
            f"The weights of {self.n_rows} rows add up to {self.weight:.3g}, and weights are rounded to multiples "
            "of 2^-50. They should add up to 1. Type `weights / weights.sum()`."
        )


def _largest_part(gram: np.ndarray, cross: np.ndarray, values: np.ndarray) -> float:
    """Size of the parts whose sum, with the mean of t^2, is the mean square."""
    sizes = np.abs(values)
    return float(sizes @ gram @ sizes + 2 * np.abs(cross) @ sizes)


def _exact(values: Iterable[float]) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


@dataclass(frozen=True, slots=True, eq=False)
class Remainder:
    """What a few ``chosen`` literals leave unexplained of the drops.

    ``covariances`` (d,) are those of the remainder with all flips, ``variance`` is its own, and ``largest`` bounds
    its absolute value in any row.
    """

    chosen: np.ndarray
    covariances: np.ndarray
    variance: float
    largest: float


def remainders(evidence: Evidence, size: int, excluded: np.ndarray) -> list[Remainder]:
    r"""Fit the drops by a constant and at most ``size`` literals, chosen greedily among those not excluded.

    .. math:: r = t - \bar t - (F_C - \bar F_C)\, g, \qquad \text{covariances} = \overline{F r}

    One fit per row of ``excluded``, masks (b, d), on whose flips r does not depend. Cost O(b d size) per step.

    >>> evidence = Evidence.from_sample([[0, 0, 1], [1, 0, 0], [0, 1, 1], [1, 1, 0]], [0.0, 0.5, 0.0, 0.5])
    >>> remainders(evidence, 1, np.array([[False, True, False]]))
    [Remainder(chosen=array([0]), covariances=array([0., 0., 0.]), variance=0.0, largest=1.5)]
    """
    means, moments, fits = evidence.flip_means, evidence.second_moments, np.arange(len(excluded))
    cross = evidence.cross_moments - means * evidence.drop_mean
    variances, chosen = moments.diagonal() - means * means, np.full((len(fits), size), -1)
    along = np.zeros((len(fits), size, len(means)))  # of the flips, along what each literal adds to earlier ones
    left, spread = np.tile(cross, (len(fits), 1)), np.tile(variances, (len(fits), 1))
    free = ~excluded & (variances > _DEPENDENT * means)
    for step in range(size):
        possible = free & (spread > _DEPENDENT * variances)
        gains = np.where(possible, left**2 / np.where(possible, spread, 1.0), 0.0)
        best = gains.argmax(axis=1)
        more = gains[fits, best] > 0
        earlier, roots = along[:, :step], np.sqrt(np.where(more, spread[fits, best], np.inf))  # inf: no change
        rows = np.array([moments[i] - means[i] * means for i in best.tolist()]).reshape(left.shape)
        rows = (rows - np.einsum("fs,fsd->fd", earlier[fits, :, best], earlier)) / roots[:, None]
        left, spread = left - rows * (left[fits, best] / roots)[:, None], spread - rows * rows
        along[:, step], free[fits, best] = rows, False
        chosen[more, step] = best[more]
    return [_remainder(evidence, own[own >= 0], cross, rest) for own, rest in zip(chosen, left, strict=True)]


def _remainder(evidence: Evidence, chosen: np.ndarray, cross: np.ndarray, left: np.ndarray) -> Remainder:
    """What the chosen literals leave, given the covariances (d,) of the flips with the drops and with the rest."""
    means, moments = evidence.flip_means[chosen], evidence.second_moments[np.ix_(chosen, chosen)]
    fitted = np.linalg.solve(moments - means[:, None] * means, cross[chosen])
    variance = evidence.drop_square - evidence.drop_mean**2 - float(cross[chosen] @ fitted)
    return Remainder(chosen, left, max(0.0, variance), 1.0 + float(np.abs(fitted).sum()))


def centered_moments(second: Any, means: np.ndarray, unit: float) -> Any:
    """Covariances of the flips in a unit, from second moments (d, d); on demand, if the moments are."""
    if not isinstance(second, np.ndarray):
        return second.centered(means, unit)
    covariance = np.multiply.outer(-means, means)  # large, so that the other steps reuse its memory
    covariance += second
    return np.divide(covariance, unit, out=covariance)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _round_to(grid: float, values: np.ndarray) -> np.ndarray:
    """Round to multiples of ``1 / grid``; large values are multiples already."""
    return np.rint(values * grid) / grid


def _split(values: np.ndarray, grids: tuple[float, ...]) -> list[np.ndarray]:
    """Split values into parts on ever finer grids; beyond the last grid the values are rounded."""
    parts = []
    for grid in grids:
        part = _round_to(grid, values)
        values = values - part
        parts.append(part)
    return parts


def _sums(flips: np.ndarray, drops: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Sums (d, d) of pairs of flips and, if the drops are on their grid, (d, 4) of the drops, by one product."""
    (n, d), digits = flips.shape, digits_of(drops)
    table = np.empty((n, d + 3), dtype=np.float32, order="F")
    table[:, :d], table[:, d:] = flips, 0.0 if digits is None else digits
    sums = table.T @ table
    return sums[:d, :d].astype(np.float64), None if digits is None else sums_of_digits(sums[:d, d:])


def digits_of(drops: np.ndarray) -> np.ndarray | None:
    """Split drops into three digits (n, 3) of at most 2^8, whose sums float32 holds; None if off their grid."""
    ticks = np.clip(drops, -1, 1) * DROP_GRID
    if not (np.rint(ticks) / DROP_GRID == drops).all():
        return None
    high = np.rint(ticks / _DIGIT**2)
    middle = np.rint((ticks - high * _DIGIT**2) / _DIGIT)
    return np.stack([high, middle, ticks - high * _DIGIT**2 - middle * _DIGIT], axis=1)


def sums_of_digits(sums: np.ndarray) -> np.ndarray:
    """Sums of drops in parts (d, 4), from those of their digits (d, 3); exact."""
    cross_sums = np.zeros((len(sums), len(_DROP_PARTS)))
    cross_sums[:, 0] = sums.astype(np.float64) @ [_DIGIT**2 / DROP_GRID, _DIGIT / DROP_GRID, 1 / DROP_GRID]
    return cross_sums


def _column_sums(values: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """Sum the values (n,) of the flipped rows of each literal."""
    return np.asarray(np.einsum("i,ij->j", values, flips)) if values.any() else np.zeros(flips.shape[1])


def check_sample(
    flips: np.ndarray, drops: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return flips (n, d) as booleans, drops and weights (n,) as floats; raise `SampleError` if one is wrong."""
    flips, drops = np.asarray(flips), np.asarray(drops, dtype=np.float64)
    if flips.ndim != 2 or drops.shape != (len(flips),) or len(flips) == 0:
        raise SampleError(
            f"Flips have shape {flips.shape} and drops have shape {drops.shape}. They must have the shapes (n, d) "
            "and (n,) with n >= 1. Type one row of flips and one drop per sample."
        )
    if flips.dtype != np.bool_ and not np.all((flips == 0) | (flips == 1)):
        raise SampleError(
            "Flips hold a value other than 0 and 1. Every flip must be 0 or 1. Type 1 for every broken literal."
        )
    flips = np.asfortranarray(flips, dtype=bool)  # a fixed type and layout fix the order of summation
    if not np.isfinite(drops).all():
        raise SampleError(
            "Drops hold NaN or infinite values. Every drop must be finite. Remove those rows from the sample."
        )
    if weights is None:
        return flips, drops, None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != drops.shape:
        raise SampleError(
            f"Weights have shape {weights.shape}, but they must have the shape {drops.shape}. "
            "Type one weight per row."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise SampleError(
            "Weights hold a negative, NaN or infinite value. Every weight must be finite and at least 0. "
            "Type the probability of each row."
        )
    return flips, drops, weights
