r"""What the search needs to know about facts and drops: their first and second moments.

Fact j is broken by a neighbor if :math:`F_j = 1`, and :math:`t = f(x) - f(z)` is the drop of its output. A sum
:math:`\sum_j v_j F_j` then has the mean squared error

.. math:: \operatorname{Var} t + v^\top S v - 2 c^\top v + (\bar t - b^\top v)^2, \qquad
          b = \mathbb E F,\ S = \operatorname{Cov} F,\ c = \operatorname{Cov}(F, t),\ \bar t = \mathbb E t

A fact is broken outside a range of cells, so that b and c of all facts are prefix sums of the probabilities
:math:`P_c` of cells and of the *cell drops* :math:`T_c = \mathbb E[t\,1_c]`. Within an attribute S follows from b,
and a sum takes at most one fact per attribute. If attributes are independent, nothing else is needed.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np

from anchorline.errors import SampleError
from anchorline.facts import Candidates

_RIDGE = 0.03  # of the mean variance of a bound: nearly least squares would follow the noise of rare cells
_PILOT_VIEWS = 64  # more attributes hardly sharpen the moments of the few that are stated
_ROWS_PER_VIEW = 40  # rows that a view of the pilot needs, so that the pilot does not follow the noise
_BEYOND = 2.0  # standard deviations by which a view of the pilot must exceed chance, or it would follow the noise
_PASSES = 12
_SETTLED = 0.03  # a pass that changes the pilot by less than this share of the drops' size ends it: more passes
# changed the mean squared error of c by less than 0.5% on six tables, whereas a single pass raised it by 4 to 10%
_SMALLEST, _LARGEST = 1e-140, 1e140  # sizes of drops whose squares are numbers of a computer
_CHANCE = 0.05  # that one of all candidates seems to matter although none does
_BLOCK = 2**18  # numbers that are summed at once, to bound memory


@dataclass(frozen=True, eq=False)
class Pairs:
    """The cells (views, n) of a sample, by which the covariances of facts of different attributes are counted."""

    candidates: Candidates
    cells: np.ndarray
    chances: np.ndarray
    _rows: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    def covariances(self, fact: int) -> np.ndarray:
        """Return the covariance of one fact's flips with those of every fact, (facts,). Cost O(views n), kept."""
        row = self._rows.get(fact)
        if row is None:
            broken = self.candidates.flips(self.cells, [fact])[0]
            sums = cell_sums(self.candidates, self.cells[:, broken]) / len(broken)
            chances = range_sums(self.candidates, self.chances)[1]
            row = range_sums(self.candidates, sums)[1] - float(broken.mean()) * chances
            self._rows[fact] = row
        return row

    def matrix(self, facts: np.ndarray) -> np.ndarray:
        """Return the covariances (m, m) of m facts, of any attributes. Cost O(cells^2 n + m^2)."""
        candidates = self.candidates
        views, place = np.unique(candidates.views[facts], return_inverse=True)
        sizes = np.diff(candidates.starts)[views]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        n = self.cells.shape[1]
        ones = np.zeros((starts[-1], n), dtype=np.float32)  # counts are exact in single precision
        local = self.cells[views] + (starts[:-1] - candidates.starts[views])[:, None]
        ones[local, np.arange(n)] = 1
        both = (ones @ ones.T).astype(float) / n
        for _ in range(2):  # rows, then columns: from cells to the facts that are broken outside a range of them
            ends = np.zeros((len(both) + 1, both.shape[1]))
            np.cumsum(both, axis=0, out=ends[1:])
            shift = starts[:-1][place] - candidates.starts[views][place]
            low, high = candidates.first[facts] + shift, candidates.last[facts] + shift
            both = (ends[low] - ends[starts[:-1][place]] + (ends[starts[1:][place]] - ends[high])).T
        broken = range_sums(candidates, self.chances)[1][facts]
        return np.asarray(both - np.outer(broken, broken))


@dataclass(frozen=True, eq=False)
class Moments:
    r"""The moments of facts and drops; build them with `adjusted`, `exact` or `sampled`.

    ``chances`` (cells,): :math:`P_c`. ``cell_drops`` (cells,): :math:`T_c = \mathbb E[t\,1_c]`. ``mean`` and
    ``variance``: of t. ``n_rows``: how many drawn neighbors they rest on; 0 if they are exact. ``level``: the mean
    of :math:`e^2`, where e is what is left of the drops to chance. ``cell_noise`` (cells,): that of
    :math:`e^2 1_c`, in views of facts that are `near`. ``pairs``: None if facts about different attributes are
    uncorrelated, or where to count their covariances.
    """

    candidates: Candidates
    chances: np.ndarray
    cell_drops: np.ndarray
    mean: float
    variance: float
    n_rows: int = 0
    level: float = 0.0
    cell_noise: np.ndarray | None = None
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        size = abs(self.mean) + math.sqrt(abs(self.variance))
        is_zero = size == 0 and not self.cell_drops.any()
        if not (is_zero or _SMALLEST <= size <= _LARGEST):
            raise _not_a_size(size)

    @cached_property
    def _chances(self) -> tuple[np.ndarray, np.ndarray]:
        return range_sums(self.candidates, self.chances)

    @property
    def holds(self) -> np.ndarray:
        """The probability that each fact holds, (facts,)."""
        return self._chances[0]

    @property
    def b(self) -> np.ndarray:
        """The probability that each fact is broken, (facts,)."""
        return self._chances[1]

    @cached_property
    def c(self) -> np.ndarray:
        """The covariance of each fact's flips with the drops, (facts,); from what is rarer, to keep its digits."""
        inside, outside = range_sums(self.candidates, self.cell_drops)
        return np.where(self.b < self.holds, outside - self.b * self.mean, self.holds * self.mean - inside)

    @cached_property
    def S(self) -> np.ndarray:
        """The variance of each fact's flips, (facts,)."""
        return np.asarray(self.b * self.holds)

    @cached_property
    def noise(self) -> np.ndarray:
        r"""The variance of chance for each fact, (facts,): its c errs by about sqrt(S noise / n).

        The larger of :math:`\mathbb E e^2` and :math:`\mathbb E[(F_j - b_j)^2 e^2] / S_{jj}`. The second is right
        for each fact, and much larger if few large outputs decide; but too few neighbors break a rare fact to
        rely on it alone. It is not computed for facts that even the first leaves to chance.
        """
        noise = np.full(self.candidates.n_facts, self.level)
        if self.cell_noise is not None:
            near = self.near
            inside, outside = range_sums(self.candidates, self.cell_noise, near)
            odds = self.b[near] / self.holds[near]
            noise[near] = np.maximum(self.level, odds * inside + outside / odds)
        return noise

    @cached_property
    def near(self) -> np.ndarray:
        """The facts whose covariance is not left to chance by the mean noise alone, (n,)."""
        return np.flatnonzero((self.c**2 > self.S * (self._unlikely * self.level)) & (self.S > 0))

    @property
    def _unlikely(self) -> float:
        """How often the noise of a fact the best of all candidates gains by chance at most."""
        deviations = NormalDist().inv_cdf(1 - _CHANCE / (2 * max(1, self.candidates.n_facts)))
        return deviations**2 / max(1, self.n_rows)

    @cached_property
    def chance(self) -> np.ndarray:
        """What each fact gains by chance if it is the best of all candidates, (facts,)."""
        return np.asarray(self._unlikely * self.noise)

    def with_noise(self, cell_noise: np.ndarray) -> "Moments":
        """Return the same moments with the noise of cells (cells,), which is needed where facts are near."""
        other = copy.copy(self)  # with all that is computed by now
        object.__setattr__(other, "cell_noise", cell_noise)
        return other

    @property
    def mean_square(self) -> float:
        """The mean of t^2, which is the error of a sum of no facts."""
        return self.variance + self.mean**2


def exact(
    candidates: Candidates, chances: np.ndarray, cell_drops: np.ndarray, mean: float, variance: float
) -> Moments:
    """Return moments that hold without error and in which attributes are independent.

    They come from the leaves of trees, or from all neighbors with their probabilities under the independent law.
    """
    chances, cell_drops = np.asarray(chances, dtype=float), np.asarray(cell_drops, dtype=float)
    return Moments(candidates, chances, cell_drops, float(mean), float(variance))


def sampled(candidates: Candidates, cells: np.ndarray, drops: np.ndarray) -> Moments:
    """Return the moments of a sample, for laws under which attributes depend on each other."""
    drops = _checked(candidates, cells, drops)
    n, mean, variance = len(drops), float(drops.mean()), float(drops.var())
    chances, cell_drops, noise = (
        cell_sums(candidates, cells, each) / n for each in (None, drops, (drops - mean) ** 2)
    )
    pairs = Pairs(candidates, cells, chances)
    return Moments(candidates, chances, cell_drops, mean, variance, n, variance, noise, pairs)


def adjusted(candidates: Candidates, cells: np.ndarray, drops: np.ndarray, replace_probability: float) -> Moments:
    r"""Return the moments of the independent law, of which only those with the drops are estimated.

    The probabilities of cells are known. A *pilot* :math:`g = \text{const} + \sum_v h_v(\text{cell}_v)`, fitted to
    the same drops, has known moments, too. So its deviation between sample and law is known, and is subtracted:

    .. math:: T_c = \operatorname{mean}(t\,1_c) - \bigl(\operatorname{mean}(g\,1_c) - \mathbb E[g\,1_c]\bigr),
              \quad \bar t = \operatorname{mean} t - (\operatorname{mean} g - \mathbb E g)

    Only the noise of t - g remains. With the ridge pilot w on bounds this is :math:`c = (S + \lambda I) w` and
    :math:`\bar t = \operatorname{mean} t - (\operatorname{mean} F - b)^\top w`; but it holds for every g, so that
    the pilot may leave out attributes that hardly matter, and need not have converged.
    """
    drops = _checked(candidates, cells, drops)
    n = len(drops)
    chances = candidates.chances(replace_probability)
    pilot = _Pilot(candidates, cells, drops, chances)
    cell_drops = cell_sums(candidates, cells, pilot.residuals) / n + chances * (pilot.mean + pilot.heights)
    for view, heights in pilot.fitted.items():  # what g says about other views of the same attribute is not known
        attribute = candidates.attributes[view]
        others = np.flatnonzero(candidates.attributes == attribute)
        if len(others) > 1:
            own = heights[cells[view] - candidates.starts[view]]
            sums = cell_sums(candidates, cells, own - own.mean(), others) / n
            sums[candidates.starts[view] : candidates.starts[view + 1]] = 0
            cell_drops += sums
    squares = pilot.residuals**2 / max(n - pilot.freedom, 1.0)
    moments = Moments(candidates, chances, cell_drops, pilot.mean, pilot.variance, n, float(squares.sum()))
    views = np.unique(candidates.views[moments.near])
    return moments.with_noise(cell_sums(candidates, cells, squares, views))


class _Pilot:
    r"""Ridge of the drops on the bounds of the attributes that matter, by backfitting view by view.

    .. math:: \min_h \tfrac1n \sum_i \bigl(t_i - \text{const} - \sum_v h_v(\text{cell}_{vi})\bigr)^2
              + \lambda \sum_v \sum_c \bigl(h_v(c + 1) - h_v(c)\bigr)^2

    Each pass costs O(n) per view. ``fitted``: the heights of the cells per view of the pilot, of mean 0 under the
    law; ``heights`` (cells,): the same, 0 for other views. ``residuals`` (n,): t - g, of mean 0. ``freedom``: how
    many degrees of freedom were fitted.
    """

    def __init__(self, candidates: Candidates, cells: np.ndarray, drops: np.ndarray, chances: np.ndarray) -> None:
        n = len(drops)
        starts = candidates.starts
        mean = float(drops.mean())
        self.residuals = drops - mean
        self.fitted: dict[int, np.ndarray] = {}
        places, shares, smoothers, self.freedom = [], [], [], 1.0
        for view in _views_that_matter(candidates, cells, self.residuals, chances):
            place = cells[view] - starts[view]
            size = int(starts[view + 1] - starts[view])
            shares.append(np.bincount(place, minlength=size) / n)
            smoother, degrees = _smoother(shares[-1], chances[starts[view] : starts[view + 1]])
            places.append(place)
            smoothers.append(smoother)
            self.freedom += degrees
            self.fitted[view] = np.zeros(size)
        scale = float(np.abs(self.residuals).max(initial=0.0))
        for _ in range(_PASSES if scale > 0 else 0):
            change = 0.0
            parts = zip(self.fitted.items(), places, shares, smoothers, strict=True)
            for (view, heights), place, share, smoother in parts:
                sums = np.bincount(place, self.residuals, minlength=len(heights)) / n
                step = smoother @ (sums + share * heights) - heights
                self.fitted[view] = heights + step
                self.residuals -= step[place]
                change = max(change, float(np.abs(step).max()))
            if change <= _SETTLED * scale:
                break
        self.heights = np.zeros(candidates.n_cells)
        pilot, shift, explained = drops - self.residuals, 0.0, 0.0
        for view, heights in self.fitted.items():
            own = chances[starts[view] : starts[view + 1]]
            mean_height = float(own @ heights)
            centered = heights - mean_height
            self.fitted[view] = self.heights[starts[view] : starts[view + 1]] = centered
            shift, explained = shift + mean_height, explained + float(own @ centered**2)
        rest = float(self.residuals.mean())
        self.mean = mean + shift + rest
        self.residuals -= rest
        self.variance = float(drops.var() - pilot.var() + explained)


def _views_that_matter(
    candidates: Candidates, cells: np.ndarray, centered: np.ndarray, chances: np.ndarray
) -> list[int]:
    """Return the views whose cells explain most of the drops, beyond chance: the best one of each attribute."""
    n = len(centered)
    counts = n * chances
    sums = cell_sums(candidates, cells, centered)
    squares = np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0)
    view_of = np.repeat(np.arange(len(candidates.attributes)), np.diff(candidates.starts))
    explained = np.bincount(view_of, squares, minlength=len(candidates.attributes))
    degrees = np.bincount(view_of, counts > 0, minlength=len(candidates.attributes)) - 1.0
    by_chance = degrees + _BEYOND * np.sqrt(2.0 * degrees)  # chi square: mean and deviations
    beyond = explained - by_chance * float(centered @ centered) / max(n - 1, 1)
    most = min(_PILOT_VIEWS, n // _ROWS_PER_VIEW)
    taken: dict[int, int] = {}
    for view in np.argsort(-beyond, kind="stable")[: 4 * most].tolist():
        if len(taken) < most and beyond[view] > 0:
            taken.setdefault(int(candidates.attributes[view]), view)
    return sorted(taken.values())


def _smoother(shares: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the matrix from sums per cell to ridge heights of one view, and its degrees of freedom."""
    broken = np.cumsum(chances)[:-1]  # of the cut behind each cell but the last
    penalty = _RIDGE * float(broken @ (1 - broken)) / len(broken) if len(broken) else 1.0
    smoother = np.linalg.inv(np.diag(shares) + max(penalty, 1e-9) * _steps(len(shares)))  # some share is positive
    return smoother, float(smoother.diagonal() @ shares) - 1.0


@lru_cache(maxsize=256)
def _steps(size: int) -> np.ndarray:
    """Return the matrix of the sum of squared steps between adjacent cells."""
    steps = np.diff(np.eye(size), axis=0)
    return np.asarray(steps.T @ steps)


def cell_sums(
    candidates: Candidates,
    cells: np.ndarray,
    weights: np.ndarray | None = None,
    views: Sequence[int] | np.ndarray | None = None,
) -> np.ndarray:
    """Return the sum of the weights (n,) of the neighbors in each cell, (cells,); of some views, or of all.

    Cost O(views n), in blocks of bounded memory.
    """
    sums = np.zeros(candidates.n_cells)
    starts, n = candidates.starts, cells.shape[1]
    step = max(1, _BLOCK // max(1, n))
    blocks = [slice(view, min(view + step, len(cells))) for view in range(0, len(cells), step)]
    if views is not None:
        blocks = [slice(int(view), int(view) + 1) for view in views]
    most = max((block.stop - block.start for block in blocks), default=0)
    repeated = None if weights is None else np.tile(weights, most)
    for block in blocks:
        low, high = starts[block.start], starts[block.stop]
        places = np.subtract(cells[block], low, dtype=np.intp).ravel()
        own = None if repeated is None else repeated[: len(places)]
        sums[low:high] = np.bincount(places, own, minlength=high - low)
    return sums


def range_sums(
    candidates: Candidates, values: np.ndarray, facts: np.ndarray | slice = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """Return, per fact, the sums of the values (cells,) of the cells in its range, and of the others of its view.

    Sums run from the instance's own cell outward, and from the ends of the view inward, so that nothing is
    subtracted: the sum of few small values keeps its digits. Cost O(cells + facts).
    """
    sizes = np.diff(candidates.starts)
    if not len(sizes):
        return np.zeros(0), np.zeros(0)
    width = np.arange(int(sizes.max()))
    is_cell = width < sizes[:, None]
    table = np.zeros(is_cell.shape)
    table[is_cell] = values
    upper = np.where(width >= (candidates.own - candidates.starts[:-1])[:, None], table, 0.0)
    first, final = candidates.first[facts], candidates.last[facts] - 1
    inside = _from_above(table - upper)[is_cell][first] + np.cumsum(upper, axis=1)[is_cell][final]
    before, after = np.zeros_like(table), np.zeros_like(table)
    np.cumsum(table[:, :-1], axis=1, out=before[:, 1:])
    after[:, :-1] = _from_above(table[:, 1:])
    return inside, before[is_cell][first] + after[is_cell][final]


def _from_above(table: np.ndarray) -> np.ndarray:
    """Return the sums of each row from every place to its end."""
    return np.asarray(np.cumsum(table[:, ::-1], axis=1)[:, ::-1])


def _checked(candidates: Candidates, cells: np.ndarray, drops: np.ndarray) -> np.ndarray:
    drops = np.asarray(drops, dtype=float)
    shape = (len(candidates.attributes), len(drops))
    if drops.ndim != 1 or not len(drops) or cells.shape != shape or not np.isfinite(drops).all():
        raise SampleError(
            f"Cells of shape {cells.shape} came with drops of shape {drops.shape}; needed are cells {shape}, a "
            "column per neighbor, and as many finite drops, at least one. Pass the cells and drops of one sample."
        )
    largest = float(np.abs(drops).max())
    if largest and not _SMALLEST <= largest <= _LARGEST:
        raise _not_a_size(largest)
    return drops


def _not_a_size(size: float) -> SampleError:
    return SampleError(
        f"The size of the drops is {size:.3g}, but it must be between {_SMALLEST:g} and {_LARGEST:g}, or 0, "
        "because the squares of other numbers overflow or underflow. Give the output another unit."
    )
