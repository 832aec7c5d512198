r"""Measuring: what is counted over fresh neighbors, and how many of them are asked about.

Three streams of neighbors are asked about, in rounds, until the verdict is decided or the budget ends:

- ``law``: neighbors of the law, for the share of ``all`` that keep the decision, and for the fit of the sum;
- ``facts``: neighbors with these facts, whose share that keeps the decision is ``holds_drawn``;
- ``unbroken``: neighbors of the law that break no fact, whose share is ``holds_law``. Those among ``law`` count,
  and more are drawn by rejection. A neighbor shows whether it breaks a fact before the model is asked, so that a
  further one costs one query, and not one for every neighbor of the law that has to be drawn.

All limits hold together and at every look. The failure probability 1 - confidence is split over them: lower limits
of the two shares of `holds`, on which most verdicts rest, count three times, every other limit once.

The verdict is a function of true shares, or of the true R2. Limits that hold together are a box that contains the
true figures with the joint confidence. A verdict is given only if its condition is true in the whole box, so that
it costs no failure probability of its own:

=================== =================================== ==========================================
verdict             classes and thresholds              numbers
=================== =================================== ==========================================
robust              all.low >= .95                      all.low >= .95
explained           holds.low >= .95                    r2.low >= .75
partly_explained    1 - holds.low <= (1 - all.high)/2   r2.low >= .5
not_explained       holds.high < .95 and                r2.high < .5
                    1 - holds.high > (1 - all.low)/2
undecided           none of these                       none of these
=================== =================================== ==========================================

The first that applies is given. ``holds`` is the smaller of two shares, so its limits are the smaller lower and
the smaller upper limit. For numbers, ``all`` is the share of neighbors whose output differs from f(x) by at most
2% of the table's 5-95% spread. A share says what a reader takes from "hardly anything changes it", in the same
words as for classes; it needs no bounds of the outputs, whereas one extreme output would decide a mean difference.
If facts hold in 95% of neighbors, they explain the decision even where they remove less than half of few changes;
therefore `not_explained` needs both lines.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees.intervals import checked_confidence
from anchorline.guarantees.limits import Count, Pair, Squares
from anchorline.result.explanation import Fit, Share, Verdict

FEWEST_UNBROKEN = 0.05
"""`holds_law` is asked only if at least this share of the law's neighbors breaks no fact."""

FIRST_LAW, FEWEST = 500, 300
"""Neighbors of the law in the first round, and the fewest by which a stream grows."""

_STEP = 1.5
"""Factor between the numbers of further neighbors that are considered."""

_LUCK = 2.0
"""Standard errors by which further neighbors may be better than those so far; else a verdict is out of reach."""

_HOPES = {
    Verdict.ROBUST: (1, 0),
    Verdict.EXPLAINED: (0, 1),
    Verdict.PARTLY_EXPLAINED: (-1, 1),
    Verdict.NOT_EXPLAINED: (1, -1),
}
"""In which direction a verdict wants the share of all neighbors, and what the facts achieve."""


# The verdict

Sides = Callable[[int], float]
"""Limits, 0 for the lower and 1 for the upper one, computed where a condition looks at them."""

Condition = Callable[[Sides, Sides], bool]
"""Compares the limits of all neighbors with those of what the facts achieve: `holds`, or R2."""

STAYS = 0.95
"""Share of neighbors that must keep a decision."""

EXPLAINED_R2, PARTLY_R2 = 0.75, 0.5
"""R2 at which the typical error is halved, and at which half of the squared differences are explained."""

SAME_WITHIN = 0.02
"""Part of the table's 5-95% spread within which a number counts as the same."""

_ROUNDING = 1e-12  # of exact shares, which are sums of probabilities


def _is_at_least(limit: float, line: float) -> bool:
    return limit >= line - _ROUNDING


def _robust(of_all: Sides, of_facts: Sides) -> bool:
    return _is_at_least(of_all(0), STAYS)


DECISIONS: Mapping[Verdict, Condition] = {
    Verdict.ROBUST: _robust,
    Verdict.EXPLAINED: lambda of_all, holds: _is_at_least(holds(0), STAYS),
    Verdict.PARTLY_EXPLAINED: lambda of_all, holds: _is_at_least(holds(0), (1 + of_all(1)) / 2),
    Verdict.NOT_EXPLAINED: lambda of_all, holds: not _is_at_least(holds(1), min(STAYS, (1 + of_all(0)) / 2)),
}
"""The conditions for classes, thresholds and labels, best verdict first."""

NUMBERS: Mapping[Verdict, Condition] = {
    Verdict.ROBUST: _robust,
    Verdict.EXPLAINED: lambda of_all, r2: _is_at_least(r2(0), EXPLAINED_R2),
    Verdict.PARTLY_EXPLAINED: lambda of_all, r2: _is_at_least(r2(0), PARTLY_R2),
    Verdict.NOT_EXPLAINED: lambda of_all, r2: not _is_at_least(r2(1), PARTLY_R2),
}
"""The conditions for numbers, best verdict first."""


def decide(conditions: Mapping[Verdict, Condition], of_all: Sides, of_facts: Sides) -> Verdict:
    """Return the best verdict whose condition the limits establish.

    Examples
    --------
    >>> all_, holds, rarely = (0.6, 0.7).__getitem__, (0.96, 0.99).__getitem__, (0.80, 0.96).__getitem__
    >>> decide(DECISIONS, all_, holds), decide(DECISIONS, all_, rarely)
    (<Verdict.EXPLAINED: 'explained'>, <Verdict.UNDECIDED: 'undecided'>)
    """
    for verdict, is_established in conditions.items():
        if is_established(of_all, of_facts):
            return verdict
    return Verdict.UNDECIDED


# Measuring


def _grown(n: int, needed: float) -> int:
    """Return by how many neighbors a stream of n grows: by as many as are needed, or to twice its size."""
    return max(FEWEST, int(min(needed, n)))


@dataclass(frozen=True, slots=True)
class Round:
    """How many neighbors of each stream to ask about next; no neighbors if nothing is left to decide."""

    law: int = 0
    facts: int = 0
    unbroken: int = 0

    @property
    def total(self) -> int:
        """The number of queries."""
        return self.law + self.facts + self.unbroken


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    r"""What was measured about a sum so far. Adding answers returns a new measurement and mutates nothing.

    Parameters
    ----------
    prediction : float
        The output f(x) of the instance.
    effects : array of shape (facts,)
        The effects v of the sum, which says :math:`t \approx \sum_j v_j F_j`. Empty if there are no facts; then
        neighbors with the facts are those of the law, and are not asked about.
    is_number : bool
        Whether a number is explained, without a decision: then R2 decides, and there is no share `holds`.
    unbroken : float or None
        The probability that a neighbor of the law breaks no fact, :math:`\prod_j (1 - b_j)` for a product law;
        None takes it from the sample.
    output_range : tuple of float or None
        Bounds that no output leaves, (0, 1) for probabilities. Without them the limits of R2 are approximate.
    spread : float or None
        Distance of the 5% and 95% quantiles of outputs on the table; without it no number is called robust.
    confidence : float
        With which all limits and the verdict hold together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> measured = Measurement(prediction=0.9, effects=np.array([0.4]), unbroken=0.5, output_range=(0, 1))
    >>> while (asked := measured.next_round(left=20_000 - measured.n_queries)).total:
    ...     broken = rng.random(asked.law) < 0.5
    ...     drops = 0.4 * broken + rng.uniform(-0.1, 0.1, asked.law)
    ...     measured = measured.with_law(~broken, ~broken, drops, 0.4 * broken)
    ...     measured = measured.with_facts(np.ones(asked.facts, bool))
    ...     measured = measured.with_unbroken(np.ones(asked.unbroken, bool))
    >>> measured.verdict, measured.n_queries, round(measured.holds.low, 3)
    (<Verdict.EXPLAINED: 'explained'>, 850, 0.981)
    """

    prediction: float
    effects: np.ndarray
    is_number: bool = False
    unbroken: float | None = None
    output_range: tuple[float, float] | None = None
    spread: float | None = None
    confidence: float = 0.95
    n_queries: int = 0
    _all: Count = field(default=Count())
    _before: tuple[int, float] = (0, 0.0)  # neighbors of the law before these, and the sum of their drops
    _drawn: Count = field(default=Count())
    _law: Count = field(default=Count())
    _n_unbroken: int = 0  # among the neighbors of the law
    _squares: Squares = field(default=Squares(), repr=False)

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)
        if self.output_range is not None and self._squares.n == 0:
            low, high = self.output_range
            squares = Squares.bounded((self.prediction - high, self.prediction - low), np.asarray(self.effects))
            object.__setattr__(self, "_squares", squares)

    # Answers

    def with_searched(self, stays: np.ndarray | None, drops: np.ndarray) -> "Measurement":
        """Return the measurement with the neighbors of the law that the facts were chosen by, as for `with_law`.

        They count for what does not depend on the facts: for the share `all`, whose limits hold at every look,
        and for the mean output.
        """
        n, total = self._before
        more = n + drops.size, total + float(drops.sum())
        return replace(self, _all=self._all.added(self._stays(stays, drops)), _before=more)

    def with_law(
        self,
        stays: np.ndarray | None,
        unbroken: np.ndarray,
        drops: np.ndarray,
        sums: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> "Measurement":
        """Return the measurement with answers about neighbors of the law, all arrays (n,).

        ``stays`` says whether the decision is that of x (None for numbers), ``unbroken`` whether no fact is
        broken, ``drops`` are t = f(x) - f(z), and ``sums`` what the sum says. With ``weights`` these are all
        neighbors with their probabilities, and everything that follows from them is exact.
        """
        stays = self._stays(stays, drops)
        if weights is not None:
            weights = weights / weights.sum()
            return replace(
                self,
                n_queries=self.n_queries + drops.size,
                unbroken=float(weights[unbroken].sum()),
                _all=Count.listed(stays, weights),
                _law=Count.listed(stays[unbroken], weights[unbroken]),  # x itself breaks no fact
                _squares=Squares().added(drops, sums, weights),
            )
        return replace(
            self,
            n_queries=self.n_queries + drops.size,
            _all=self._all.added(stays),
            _law=self._law.added(stays[unbroken]),
            _n_unbroken=self._n_unbroken + int(np.count_nonzero(unbroken)),
            _squares=self._squares.added(drops, sums),
        )

    def _stays(self, stays: np.ndarray | None, drops: np.ndarray) -> np.ndarray:
        if self.is_number:
            return np.asarray(np.abs(drops) <= SAME_WITHIN * (self.spread or 0.0))
        if stays is None:
            raise ParameterError("stays is None, but a decision is explained. Type is_number=True, or give stays.")
        return stays

    def with_facts(self, stays: np.ndarray, weights: np.ndarray | None = None) -> "Measurement":
        """Return the measurement with decisions of neighbors with these facts; of all, with ``weights``."""
        drawn = self._drawn.added(stays) if weights is None else Count.listed(stays, weights)
        return replace(self, n_queries=self.n_queries + stays.size, _drawn=drawn)

    def with_unbroken(self, stays: np.ndarray) -> "Measurement":
        """Return the measurement with decisions of further neighbors of the law that break no fact."""
        return replace(self, n_queries=self.n_queries + stays.size, _law=self._law.added(stays))

    # Figures

    @property
    def all(self) -> Share | None:
        """The share of all neighbors that keep the decision; for numbers, those within 2% of the spread.

        If the spread is not known, those with exactly the same number.
        """
        return self._all.share(self._failures["all"])

    @property
    def holds_drawn(self) -> Share | None:
        """The share of neighbors with these facts that keep the decision."""
        return self._drawn.share(self._failures["drawn"]) if "drawn" in self._held else None

    @property
    def holds_law(self) -> Share | None:
        """The share of the law's neighbors without a broken fact that keep the decision; None if they are rare.

        Without facts, these are all neighbors.
        """
        if "all" in self._held:
            return self.all
        return self._law.share(self._failures["law"]) if "law" in self._held else None

    @property
    def holds(self) -> Share | None:
        """The smaller of `holds_drawn` and `holds_law`, with limits for the smaller of both true shares."""
        counts = list(self._held.values())
        if self.is_number or min(count.n for count in counts) == 0:
            return None
        smallest = min(counts, key=lambda count: count.value)
        is_exact = all(count.is_exact for count in counts)
        limits = self._facts_limits()
        return Share(smallest.value, limits(0), limits(1), smallest.n, is_exact)

    @property
    def fit(self) -> Fit | None:
        """How well the sum follows the model over neighbors of the law."""
        squares, is_exact = self._squares, self._all.is_exact
        if squares.n == 0:
            return None
        weight = 1.0 if is_exact else 1.0 / squares.n
        n_before, drops_before = self._before
        mean_drop = squares.drops if is_exact else (drops_before + squares.drops) / (n_before + squares.n)
        low, high = self._fit_limit(0), self._fit_limit(1)
        return Fit(
            r2=squares.r2,
            low=low,
            high=high,
            error=math.sqrt(squares.error * weight),
            baseline=math.sqrt(squares.base * weight),
            mean_output=self.prediction - mean_drop,
            n=squares.n,
            is_exact=is_exact,
            is_approximate=not is_exact and squares.largest_error is None,
        )

    @property
    def verdict(self) -> Verdict:
        """The best verdict that the limits establish; see the table above."""
        return decide(self._conditions, self._all_limits(), self._facts_limits())

    @property
    def figures(self) -> dict[str, Any]:
        """The verdict and all figures, under the names that they have in an explanation."""
        return {
            "verdict": self.verdict,
            "holds": self.holds,
            "holds_drawn": self.holds_drawn,
            "holds_law": self.holds_law,
            "all": self.all,
            "fit": self.fit,
        }

    # What to ask next

    def is_decided(self, left: int) -> bool:
        """Return whether no better verdict is in reach with as many queries as are left."""
        return self._squares.n > 0 and not self._wanted(left)[0]

    def next_round(self, left: int) -> Round:
        """Return how many neighbors to ask about next, at most ``left`` in all; none if the verdict is decided.

        The first round asks about 300 neighbors of the law, or 500 if the search drew none or a number is
        explained, and 300 with the facts, and completes 300 without a broken fact. Then every stream that can
        still improve the verdict grows by as many as would establish one if answers stayed as they are, by 300 at
        least, and at most to twice its size. A verdict is in reach if its limits would establish it after all
        queries that are left, were the answers better by two standard errors than those so far. To look at answers
        is what limits that hold at every look allow.
        """
        wanted, needed = self._wanted(left) if self._squares.n else ({"all", *self._held}, 0.0)
        sizes = dict.fromkeys(("law", "facts", "unbroken"), 0)
        if "all" in wanted:
            n_law = self._squares.n if self.is_number else self._all.n
            first = FIRST_LAW if self.is_number or not self._before[0] else FEWEST
            sizes["law"] = _grown(n_law, needed) if self._squares.n else first
        if "drawn" in wanted:
            sizes["facts"] = _grown(self._drawn.n, needed)
        if "law" in wanted and (share := self._unbroken_share) is not None:
            sizes["unbroken"] = max(0, _grown(self._law.n, needed) - int(sizes["law"] * share))
        total = sum(sizes.values())
        if total > left:
            sizes = {stream: size * max(left, 0) // total for stream, size in sizes.items()}
        return Round(**sizes)

    def _wanted(self, left: int) -> tuple[set[str], float]:
        """Return the counts whose streams can improve the verdict, and how many more neighbors of each will.

        No more than the largest has are considered.
        """
        wanted, needed = set[str](), math.inf
        established = self.verdict
        for verdict, condition in self._conditions.items():
            if verdict is established:
                break
            streams = self._open_streams(verdict, condition)
            most = left / max(len(streams), 1)
            of_all, of_facts = (_LUCK * hope for hope in _HOPES[verdict])
            if not streams or not condition(self._all_limits(most, of_all), self._facts_limits(most, of_facts)):
                continue
            wanted |= streams
            more, most = float(FEWEST), max(count.n for name, count in self._counts.items() if name in streams)
            while more < min(most, needed) and not condition(self._all_limits(more), self._facts_limits(more)):
                more *= _STEP
            needed = min(more, needed)
        return wanted, needed

    def _open_streams(self, verdict: Verdict, condition: Condition) -> set[str]:
        """Return the counts that keep a verdict from being established."""
        if self.is_number or verdict is Verdict.ROBUST:
            names = {"all"}
        elif verdict is Verdict.NOT_EXPLAINED:  # the smaller share decides
            names = {"all", min(self._held, key=lambda name: self._held[name].value)}
        else:
            names = {name for name in self._held if not condition(self._all_limits(), self._held_limits(name))}
            if verdict is Verdict.PARTLY_EXPLAINED:
                names.add("all")
        counts = self._counts
        others = [counts[name].n for name in names if name != "all"]
        if others and min(others) < self._all.n:  # the others are less known, and matter as much
            names.discard("all")
        return {name for name in names if not counts[name].is_exact}

    # Parts

    @property
    def _conditions(self) -> Mapping[Verdict, Condition]:
        return NUMBERS if self.is_number else DECISIONS

    @property
    def _counts(self) -> dict[str, Count]:
        return {"all": self._all, **self._held}

    @property
    def _unbroken_share(self) -> float | None:
        """The share of the law's neighbors that break no fact, or None if nothing is known about it."""
        if self.unbroken is not None:
            return self.unbroken
        return self._n_unbroken / self._squares.n if self._squares.n else None

    @cached_property
    def _held(self) -> dict[str, Count]:
        """What `holds` is the smallest of; without facts, the share of all neighbors."""
        if self.is_number:
            return {}
        if not self.effects.size:
            return {"all": self._all}
        share = self._unbroken_share
        if share is not None and share < FEWEST_UNBROKEN:
            return {"drawn": self._drawn}
        return {"drawn": self._drawn, "law": self._law}

    @cached_property
    def _failures(self) -> dict[str, Pair]:
        """How probable it may be that the lower and the upper limit of each figure ever fail."""
        parts = {"fit": (1, 1), "all": (1, 1)}
        if self.effects.size and not self.is_number:
            parts["drawn"] = (3, 1)
            if self.unbroken is None or self.unbroken >= FEWEST_UNBROKEN:
                parts["law"] = (3, 1)
        unit = (1.0 - self.confidence) / sum(map(sum, parts.values()))
        return {name: (low * unit, high * unit) for name, (low, high) in parts.items()}

    def _all_limits(self, more: float = 0.0, luck: float = 0.0) -> Sides:
        return lambda side: self._all.limit(side, self._failures["all"], more, luck)

    def _held_limits(self, name: str, more: float = 0.0, luck: float = 0.0) -> Sides:
        return lambda side: self._held[name].limit(side, self._failures[name], more, luck)

    def _facts_limits(self, more: float = 0.0, luck: float = 0.0) -> Sides:
        """Return the limits of `holds`, or of R2 for numbers."""
        if self.is_number:
            return lambda side: self._fit_limit(side, more, luck)
        return lambda side: min(self._held_limits(name, more, luck)(side) for name in self._held)

    def _fit_limit(self, side: int, more: float = 0.0, luck: float = 0.0) -> float:
        if self._all.is_exact:
            return self._squares.r2
        return self._squares.limit(side, self._failures["fit"][side], more, luck)
