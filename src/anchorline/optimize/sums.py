r"""The best sum of at most k facts, at most one per attribute, with a proof: one exact search.

With the moments of `anchorline.optimize.moments`, minimize over sets J of facts and effects v on J

.. math:: v^\top S v - 2 c^\top v + (\bar t - b^\top v)^2

**Bound.** For every number :math:`\eta`, :math:`(\bar t - b^\top v)^2 \ge 2 \eta (\bar t - b^\top v) - \eta^2`.
What is left is almost separable: with :math:`\alpha_j = c_j / \sqrt{S_{jj}}`, :math:`\beta_j = b_j /
\sqrt{S_{jj}}`,

.. math:: \text{value} \ge 2 \eta \bar t - \eta^2 - \Bigl(\text{sum of the k largest over attributes of}\
          \max_j \frac{(\alpha_j + \eta \beta_j)^2}{1 - \rho_j}\Bigr)

where :math:`\rho_j` is the sum of the k - 1 largest correlations, in absolute value and one per other attribute,
of fact j; because the correlations of any k facts minus :math:`\operatorname{diag}(1 - \rho)` are diagonally
dominant. Known moments have :math:`\rho = 0`. The right side is concave in :math:`\eta`, and every :math:`\eta`
gives a valid bound.

**Search.** A node has chosen facts and offers others. The chosen ones are projected out, which leaves a problem
of the same form. The last two facts are found by valuing all facts, or all pairs, in closed form. Whatever is
discarded keeps its bound, and the global lower bound is the smallest of open nodes, discarded nodes and the best
sum.

**Constants.** A fact that is always broken, or that is the complement of chosen ones, has no variance of its own,
but a mean. It sets the square of the mean error to 0 and gains nothing else. From then on :math:`\eta = 0`.
"""

import enum
import heapq
import itertools
import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.optimize.moments import Moments

NODE_LIMIT = 2_000  # the same everywhere, so that results are; about a second
_CORRELATIONS_PER_NODE = 40_000  # take about as long as a node of known moments
TOLERANCE = 1e-9  # of mean t^2: a node that cannot gain more is closed, and its bound is kept
_ROUNDING = 1e-13  # of the terms of a bound; subtracted from it
_CONSTANT = 1e-12  # a fact that holds more rarely, and gains no larger share of mean t^2, is a constant
_DEPENDENT = 1e-9  # a fact that keeps a smaller share of its variance depends on the chosen ones
_DRIFT = 1e-6  # a fact without variance whose mean is larger is a constant, and otherwise gains nothing
_CLIMBS = 40
_CLIMBED = 1e-11  # a bound that cannot rise by more is the best
_MOST_FACTOR = 1e3  # by which gains are multiplied where only their order matters
_MOST_PAIRS = 600  # facts of which all pairs are valued at once
_MOST_EXCHANGED = 300  # facts of which pairs take the place of others
_MOST_DENSE = 1_800  # facts whose correlations fit in memory and time
_SWEEPS = 10


class Status(enum.Enum):
    """How a search ended; the value of each member is its help text."""

    PROVEN = "Proven: for these moments, no sum of as many facts fits better."
    LIMIT = "Stopped at a limit: a sum may fit better, by at most objective - lower_bound."
    NUMERICAL = "Rounding errors are too large for a proof: a sum may fit better, by objective - lower_bound."

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return getattr, (Status, self.name)  # by name, so that pickles survive a reworded text


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search ends early. ``check`` is called in every loop, and may raise.

    ``time_limit`` is in seconds. ``node_limit`` counts nodes of known moments; a node that needs the correlations
    of a sample counts as several, by how many they are, so that the limit means about the same time. Nodes that
    can gain at most ``gap``, a mean squared error, are closed: equal attributes have very many of them.
    """

    time_limit: float | None = None
    node_limit: int = NODE_LIMIT
    gap: float = 0.0
    check: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A sum of facts: ``facts`` (numbers of candidates, by attribute), and ``effects``, how much each takes away.

    ``objective`` is the mean squared error for the moments; no sum of at most as many facts as were allowed has
    one below ``lower_bound``. If the moments are estimated, both may be slightly negative.
    """

    facts: tuple[int, ...]
    effects: np.ndarray
    objective: float
    lower_bound: float
    status: Status
    n_nodes: int

    @property
    def gap(self) -> float:
        """By how much a better sum may improve the objective at most."""
        return self.objective - self.lower_bound


def solve(moments: Moments, k: int, limits: Limits | None = None, offered: np.ndarray | None = None) -> Solution:
    """Return the best sum of at most ``k`` of all facts, or of those that are ``offered``: booleans (facts,).

    Examples
    --------
    >>> from anchorline.facts import Candidates
    >>> from anchorline.optimize.moments import exact
    >>> two = Candidates(*map(np.array, ([0, 1], [0, 2, 4], [0.5] * 4, [0, 2], [0, 1], [0, 2], [1, 3], [0, 0])))
    >>> moments = exact(two, [0.75, 0.25, 0.75, 0.25], [0.075, 0.325, 0.3, 0.1], 0.4, 0.1875 + 0.0075)
    >>> solution = solve(moments, k=1)
    >>> solution.facts, solution.status.name
    ((0,), 'PROVEN')
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
        raise ParameterError(f"k is {k!r}, but it must be a whole number >= 0, the most facts of a sum. Type k=4.")
    limits = limits or Limits()
    if not moments.mean_square > 0 or k == 0:
        return _solution(moments, (), moments.mean_square, Status.PROVEN, 0)
    search = _Search(moments, int(k), limits, offered)
    search.run()
    return search.result()


def fit(moments: Moments, facts: Collection[int]) -> tuple[np.ndarray, float]:
    """Return the best effects of given facts and their mean squared error; facts that add nothing get 0.

    The least-squares solution of smallest size, if facts depend on each other. Cost of known moments: k^3.
    """
    chosen = np.asarray(tuple(facts), dtype=np.intp)
    b, c = moments.b[chosen], moments.c[chosen]
    if moments.pairs is None:
        covariances = np.diag(moments.S[chosen])
    else:
        covariances = np.array([moments.pairs.covariances(int(j))[chosen] for j in chosen]).reshape(len(b), len(b))
        covariances = (covariances + covariances.T) / 2
    squares = covariances + np.outer(b, b)
    sizes = np.sqrt(np.diagonal(squares))
    scale = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    right = (c + b * moments.mean) * scale
    effects = np.linalg.lstsq(squares * np.outer(scale, scale), right, rcond=_DEPENDENT)[0] * scale
    rest = moments.mean - b @ effects
    return effects, float(moments.variance + effects @ covariances @ effects - 2 * (c @ effects) + rest**2)


def extended(moments: Moments, chosen: Collection[int], facts: np.ndarray) -> np.ndarray:
    """Return the mean squared errors of the chosen facts with one more, for each of other facts (m,): (m,)."""
    can_break = moments.b[facts] > 0
    known = [j for j in chosen if moments.b[j] > 0]
    table = _table(moments, np.concatenate([np.array(known, dtype=np.intp), facts[can_break]]), 1.0)
    places, others = tuple(range(len(known))), np.arange(len(known), len(table.numbers))
    values = np.full(len(facts), table.state(places, others[:0]).value)
    values[can_break] = table.state(places, others).with_one()
    return moments.variance + values


def _solution(
    moments: Moments, facts: tuple[int, ...], lower_bound: float, status: Status, n_nodes: int
) -> Solution:
    facts = tuple(sorted(facts))
    effects, objective = fit(moments, facts)
    effects.setflags(write=False)
    return Solution(facts, effects, objective, min(lower_bound, objective), status, n_nodes)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    r"""What chosen facts leave.

    Their own value is :math:`-\text{gained} + \text{rest}^2 / (1 + \text{slack})`, without the square if one of
    them is a constant: then ``is_free``. Of m other facts, ``alpha`` and ``beta`` (m,) are what is left, both 0
    for facts that gain nothing, and ``constant`` (m,) says which are constants now.
    """

    gained: float
    rest: float
    slack: float
    alpha: np.ndarray
    beta: np.ndarray
    constant: np.ndarray
    is_free: bool

    @property
    def value(self) -> float:
        return -self.gained + (0.0 if self.is_free else self.rest**2 / (1 + self.slack))

    def with_one(self) -> np.ndarray:
        """The value with each of the other facts, (m,)."""
        values = -(self.gained + self.alpha**2)
        values += (self.rest - self.alpha * self.beta) ** 2 / (1 + self.slack + self.beta**2)
        if not self.is_free and self.constant.any():
            values[self.constant] = -self.gained
        return values


class _Known:
    """Facts whose moments are known, so that those about different attributes are uncorrelated."""

    def __init__(self, moments: Moments, usable: np.ndarray, unit: float) -> None:
        self.numbers = usable
        self.groups = moments.candidates.groups[usable]
        self.mean = moments.mean / unit
        self.b, self.c, self.S = moments.b[usable], moments.c[usable] / unit, moments.S[usable]
        gains_little = np.abs(self.c) <= np.sqrt(_CONSTANT * self.S * moments.mean_square) / unit
        self.constant = (moments.holds[usable] <= _CONSTANT) & gains_little
        sizes = np.sqrt(np.where(self.constant, 1.0, self.S))
        self.alpha = np.where(self.constant, 0.0, self.c / sizes)
        self.beta = np.where(self.constant, 0.0, self.b / sizes)
        self.is_whole = True

    def state(self, chosen: tuple[int, ...], facts: np.ndarray) -> _State:
        alpha, beta = self.alpha[list(chosen)], self.beta[list(chosen)]
        if self.constant[list(chosen)].any():
            own = self.alpha[facts]
            gained = float(alpha @ alpha)
            return _State(gained, 0.0, 0.0, own, np.zeros_like(own), np.zeros(len(own), dtype=bool), True)
        rest, slack = self.mean - float(alpha @ beta), float(beta @ beta)
        return _State(
            float(alpha @ alpha), rest, slack, self.alpha[facts], self.beta[facts], self.constant[facts], False
        )

    def floor(self, k: int) -> float:
        """Return what no value of k facts is below: without the square of the mean error, gains add up."""
        gains = np.zeros(int(self.groups.max(initial=-1)) + 1)
        np.maximum.at(gains, self.groups, self.alpha**2)
        return -float(np.sort(gains)[::-1][:k].sum()) * (1 + _ROUNDING)

    def prepare(self, facts: np.ndarray) -> None:
        """Compute what bounds need of these facts."""

    def correlations(self, chosen: tuple[int, ...], facts: np.ndarray) -> np.ndarray | None:
        return None


class _Sampled(_Known):
    """Facts of a sample, whose flips are correlated; the chosen ones are projected out one after the other."""

    def __init__(self, moments: Moments, usable: np.ndarray, unit: float) -> None:
        super().__init__(moments, usable, unit)
        assert moments.pairs is not None
        self.pairs = moments.pairs
        self.variance = moments.variance / unit**2
        self.is_whole = len(usable) <= _MOST_DENSE
        self.dense: np.ndarray | None = None
        self.place: np.ndarray | None = None

    def floor(self, k: int) -> float:
        return -self.variance  # a mean square of rows is never negative

    def prepare(self, facts: np.ndarray) -> None:
        self.dense = self.pairs.matrix(self.numbers[facts])
        self.place = np.full(len(self.numbers), -1)
        self.place[facts] = np.arange(len(facts))

    def covariances(self, fact: int, others: np.ndarray) -> np.ndarray:
        if self.dense is not None and self.place is not None and self.place[fact] >= 0:
            return np.asarray(self.dense[self.place[fact]][self.place[others]])
        return np.asarray(self.pairs.covariances(int(self.numbers[fact]))[self.numbers[others]])

    def _project(self, chosen: tuple[int, ...], facts: np.ndarray) -> tuple[_State, np.ndarray, np.ndarray]:
        every = np.concatenate([facts, np.asarray(chosen, dtype=np.intp)])
        m = len(facts)
        S, b, c = self.S[every].copy(), self.b[every].copy(), self.c[every].copy()
        whole = S.copy()
        rows: list[np.ndarray] = []
        gained, rest, slack, is_free = 0.0, self.mean, 0.0, False
        for step, fact in enumerate(chosen):
            at = m + step
            if S[at] <= _DEPENDENT * whole[at] or self.constant[fact]:
                is_free = is_free or abs(b[at]) > _DRIFT
                continue
            row = self.covariances(fact, every)
            for earlier in rows:
                row = row - earlier[at] * earlier
            row = row / math.sqrt(S[at])
            alpha, beta = c[at] / math.sqrt(S[at]), b[at] / math.sqrt(S[at])
            gained, rest, slack = gained + alpha**2, rest - alpha * beta, slack + beta**2
            S, b, c = S - row**2, b - row * beta, c - row * alpha
            rows.append(row)
        S, b, c, whole = S[:m], b[:m], c[:m], whole[:m]
        flat = self.constant[facts] | (_DEPENDENT * whole >= S)
        sizes = np.sqrt(np.where(flat, 1.0, S))
        alpha, beta = np.where(flat, 0.0, c / sizes), np.where(flat, 0.0, b / sizes)
        constant = flat & (np.abs(b) > _DRIFT)
        if is_free:
            state = _State(gained, 0.0, 0.0, alpha, np.zeros(m), np.zeros(m, dtype=bool), True)
        else:
            state = _State(gained, rest, slack, alpha, beta, constant, False)
        projections = np.array([row[:m] for row in rows]).reshape(len(rows), m)
        return state, projections, np.where(flat, np.inf, sizes)

    def state(self, chosen: tuple[int, ...], facts: np.ndarray) -> _State:
        return self._project(chosen, facts)[0]

    def correlations(self, chosen: tuple[int, ...], facts: np.ndarray) -> np.ndarray:
        """The correlations that the chosen facts leave among others, (m, m); 0 for facts without variance."""
        assert self.dense is not None
        assert self.place is not None
        _, rows, sizes = self._project(chosen, facts)
        place = self.place[facts]
        left: np.ndarray = self.dense[np.ix_(place, place)] - rows.T @ rows
        left /= sizes[:, None]
        left /= sizes[None, :]
        return left


def _table(moments: Moments, usable: np.ndarray, unit: float) -> _Known:
    return (_Known if moments.pairs is None else _Sampled)(moments, usable, unit)


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    chosen: tuple[int, ...]
    facts: np.ndarray  # that may join the chosen ones, by attribute
    is_clean: bool = False  # whether sums with a constant were split off


@dataclass(slots=True, eq=False)
class _Dual:
    """A bound of a node at its best eta, with what each attribute and each fact gains there."""

    bound: float
    eta: float
    gains: np.ndarray  # (m,)
    starts: np.ndarray  # of the attributes among the facts
    best: np.ndarray  # (attributes,) the largest gain of each
    top: np.ndarray  # the attributes with the r largest
    picks: list[int]  # the best fact of each of them
    known: float  # the bound without gains


class _Search:
    def __init__(self, moments: Moments, k: int, limits: Limits, offered: np.ndarray | None) -> None:
        self.moments, self.limits = moments, limits
        self.unit = 2.0 ** round(math.log2(moments.mean_square) / 2)  # a power of 2 rounds nothing
        usable = moments.b > 0 if offered is None else offered & (moments.b > 0)
        self.table = _table(moments, np.flatnonzero(usable), self.unit)
        self.k = min(k, len(np.unique(self.table.groups)))
        self.tolerance = max(TOLERANCE * moments.mean_square, limits.gap) / self.unit**2
        self.floor = self.table.floor(self.k)
        self.best: tuple[int, ...] = ()
        self.best_value = self.table.mean**2
        self.closed = math.inf  # the smallest bound of what was discarded
        self.queue: list[tuple[float, int, _Node]] = []
        self.order = itertools.count()
        self.n_nodes = 0
        self.effort = 0
        self.is_complete = True
        self.deadline = math.inf if limits.time_limit is None else time.perf_counter() + limits.time_limit

    # What is known so far.

    def offer(self, chosen: tuple[int, ...], value: float) -> None:
        if value < self.best_value:
            self.best, self.best_value = chosen, value

    def discard(self, bound: float) -> None:
        self.closed = min(self.closed, bound)

    def push(self, bound: float, node: _Node) -> None:
        if not len(node.facts):
            value = self.table.state(node.chosen, node.facts).value
            self.offer(node.chosen, value)
            self.discard(value)
        elif bound >= self.best_value - self.tolerance:
            self.discard(bound)
        else:
            heapq.heappush(self.queue, (bound, next(self.order), node))

    def is_over(self) -> bool:
        if self.limits.check is not None:
            self.limits.check()
        return time.perf_counter() > self.deadline

    def result(self) -> Solution:
        moments = self.moments
        lower = min([self.closed, self.best_value, *(bound for bound, _, _ in self.queue[:1])])
        if not self.table.is_whole and self.k > 1:
            lower = -math.inf  # not all facts were searched
        lower_bound = moments.variance + max(lower, self.floor) * self.unit**2
        facts = tuple(int(self.table.numbers[j]) for j in self.best)
        solution = _solution(moments, facts, lower_bound, Status.PROVEN, self.n_nodes)
        if solution.gap <= 4 * TOLERANCE * moments.mean_square:
            return solution
        return replace(solution, status=Status.NUMERICAL if self.is_complete else Status.LIMIT)

    # The search.

    def run(self) -> None:
        if self.k == 0:
            self.discard(self.best_value)
            return
        root = np.arange(len(self.table.numbers))
        if isinstance(self.table, _Sampled) and self.k > 1:
            root = self.start_sampled(root)
        self.push(self.floor, _Node((), root))
        while self.queue:
            if (self.is_over() or self.effort >= self.limits.node_limit) and self.n_nodes:  # at least the root
                self.is_complete = False
                return
            bound, _, node = heapq.heappop(self.queue)
            if bound >= self.best_value - self.tolerance:
                self.discard(bound)
                continue
            self.n_nodes += 1
            self.effort += 1
            self.expand(bound, node)

    def start_sampled(self, facts: np.ndarray) -> np.ndarray:
        """Find a good sum with few covariances, then return the facts whose correlations are computed."""
        self.improve(self.greedy(facts), facts)
        if not self.table.is_whole:
            self.is_complete = False
            values = self.table.state((), facts).with_one()
            values = np.minimum(values, self.table.state(self.best[:-1], facts).with_one())
            groups, inverse = np.unique(self.table.groups[facts], return_inverse=True)
            best = np.full(len(groups), math.inf)
            np.minimum.at(best, inverse, values)
            best[np.isin(groups, self.table.groups[list(self.best)])] = -math.inf
            sizes = np.bincount(inverse)
            order = np.argsort(best, kind="stable")
            keep = order[np.cumsum(sizes[order]) <= _MOST_DENSE]
            facts = facts[np.isin(inverse, keep)]
        if len(facts):
            self.table.prepare(facts)
            self.improve_pairs(facts)
        return facts

    def greedy(self, facts: np.ndarray) -> tuple[int, ...]:
        chosen: tuple[int, ...] = ()
        for _ in range(self.k):
            chosen = self.step(chosen, facts)
        return chosen

    def step(self, chosen: tuple[int, ...], facts: np.ndarray) -> tuple[int, ...]:
        """Add the best further fact."""
        self.is_over()
        free = facts[~np.isin(self.table.groups[facts], self.table.groups[list(chosen)])]
        if not len(free):
            return chosen
        values = self.table.state(chosen, free).with_one()
        at = int(np.argmin(values))
        self.offer((*chosen, int(free[at])), float(values[at]))
        return (*chosen, int(free[at]))

    def improve(self, chosen: tuple[int, ...], facts: np.ndarray) -> None:
        """Exchange single facts while that helps."""
        for _ in range(_SWEEPS):
            before = self.best_value
            for fact in chosen:
                others = tuple(j for j in chosen if j != fact)
                self.step(others, facts)
                if self.best_value < before and set(others) < set(self.best):
                    chosen = self.best
                    break
            if not self.best_value < before - self.tolerance:
                return

    def improve_pairs(self, facts: np.ndarray) -> None:
        """Exchange two facts at once for the best two of the most promising others, while that helps.

        On 45 samples of realistic neighbors from nine tables, exchanges of single facts ended above this by 0.002
        of mean t^2 on average for k = 4, and by 0.07 at most.
        """
        for _ in range(_SWEEPS):
            before = self.best_value
            for pair in itertools.combinations(self.best, 2):
                if self.is_over():
                    return
                others = tuple(j for j in self.best if j not in pair)
                free = facts[~np.isin(self.table.groups[facts], self.table.groups[list(others)])]
                if not len(free):  # all that are left are about attributes of the others
                    continue
                values = self.table.state(others, free).with_one()
                free = np.sort(free[np.argsort(values, kind="stable")[:_MOST_EXCHANGED]])
                state = self.table.state(others, free)
                self.best_pair(others, free, state, self.table.correlations(others, free))
                if self.best_value < before:
                    break
            if not self.best_value < before - self.tolerance:
                return

    def expand(self, inherited: float, node: _Node) -> None:
        r = self.k - len(node.chosen)
        state = self.table.state(node.chosen, node.facts)
        values = state.with_one()
        at = int(np.argmin(values))
        self.offer((*node.chosen, int(node.facts[at])), float(values[at]))
        if r == 1:
            self.discard(max(inherited, float(values[at])))
            return
        if not node.is_clean and not state.is_free and state.constant.any():
            self.split_constants(inherited, node, state, r)
            return
        keep = (state.alpha != 0) | (state.beta != 0)
        if not keep.any():
            self.discard(max(inherited, float(values[at])))
            return
        facts = node.facts[keep]
        state = replace(state, alpha=state.alpha[keep], beta=state.beta[keep], constant=state.constant[keep])
        correlations = self.table.correlations(node.chosen, facts)
        self.effort += 0 if correlations is None else correlations.size // _CORRELATIONS_PER_NODE
        if r == 2 and len(facts) <= _MOST_PAIRS:
            self.close_pairs(inherited, node, facts, state, correlations)
            return
        groups = self.table.groups[facts]
        dual = _climb(state, _factors(correlations, groups, r), groups, r)
        self.try_picks(node, facts, dual)
        forced = np.maximum(_forced(dual), inherited)
        is_open = forced < self.best_value - self.tolerance
        if not is_open.all():
            self.discard(float(forced[~is_open].min()))
        if not is_open.any():
            return
        if not node.chosen and self.n_nodes == 1:
            self.improve(self.best, facts[is_open])
        if r == 2 and is_open.sum() <= _MOST_PAIRS:
            left = None if correlations is None else correlations[np.ix_(is_open, is_open)]
            state = replace(state, alpha=state.alpha[is_open], beta=state.beta[is_open])
            self.close_pairs(max(inherited, dual.bound), node, facts[is_open], state, left)
            return
        self.branch(inherited, node, facts, dual, forced, is_open)

    def try_picks(self, node: _Node, facts: np.ndarray, dual: _Dual) -> None:
        """Value the facts of which the bound consists."""
        chosen = (*node.chosen, *(int(facts[j]) for j in dual.picks))
        state = self.table.state(chosen, np.zeros(0, dtype=np.intp))
        self.offer(chosen, state.value)

    def split_constants(self, inherited: float, node: _Node, state: _State, r: int) -> None:
        """Separate sums with a constant: of k attributes that offer one, a sum leaves one unused."""
        constants = node.facts[state.constant]
        _, first = np.unique(self.table.groups[constants], return_index=True)
        for fact in constants[first[:r]].tolist():
            rest = node.facts[(self.table.groups[node.facts] != self.table.groups[fact]) & ~state.constant]
            self.offer((*node.chosen, fact), -state.gained)
            self.push(inherited, _Node((*node.chosen, fact), rest, is_clean=True))
        self.push(inherited, _Node(node.chosen, node.facts[~state.constant], is_clean=True))

    def branch(
        self,
        inherited: float,
        node: _Node,
        facts: np.ndarray,
        dual: _Dual,
        forced: np.ndarray,
        is_open: np.ndarray,
    ) -> None:
        """Choose an attribute: one node per open fact of it, and one without it."""
        facts, forced = facts[is_open], forced[is_open]
        index = np.repeat(np.arange(len(dual.starts)), np.diff([*dual.starts, len(is_open)]))[is_open]
        top = [g for g in dual.top.tolist() if (index == g).any()] or [int(index[0])]
        without = {g: _without(dual, g) for g in top}
        # The attribute whose absence costs most; few facts first, because each becomes a node.
        counts = np.bincount(index, minlength=len(dual.starts))
        least = self.best_value - self.tolerance
        group = max(top, key=lambda g: (without[g] >= least, -counts[g], without[g], -g))
        own = index == group
        others = facts[~own]
        for fact, bound in zip(facts[own].tolist(), forced[own].tolist(), strict=True):
            self.push(bound, _Node((*node.chosen, fact), others))
        self.push(max(inherited, without[group]), _Node(node.chosen, others, node.is_clean))

    def close_pairs(
        self, inherited: float, node: _Node, facts: np.ndarray, state: _State, correlations: np.ndarray | None
    ) -> None:
        value = self.best_pair(node.chosen, facts, state, correlations)
        self.discard(max(inherited, min(value, float(state.with_one().min()))))

    def best_pair(
        self, chosen: tuple[int, ...], facts: np.ndarray, state: _State, correlations: np.ndarray | None
    ) -> float:
        r"""Value all pairs of facts in closed form, and return the smallest value.

        With :math:`G, T, A` for gained, rest and slack and R for the correlations of the pair, the value is
        :math:`-G - \alpha^\top R^{-1} \alpha + (T - \alpha^\top R^{-1} \beta)^2 / (1 + A + \beta^\top R^{-1}
        \beta)`.
        """
        alpha, beta, groups = state.alpha, state.beta, self.table.groups[facts]
        if correlations is None:
            gained = alpha[:, None] ** 2 + alpha**2
            rest = state.rest - ((alpha * beta)[:, None] + alpha * beta)
            slack = 1 + state.slack + (beta[:, None] ** 2 + beta**2)
            values = rest**2 / slack - gained - state.gained
        else:
            left = 1 - correlations**2
            flat = left <= _DEPENDENT
            left[flat] = 1
            x, y = alpha[:, None], beta[:, None]
            u, w = alpha - correlations * x, beta - correlations * y
            gained = x**2 + u**2 / left
            rest = state.rest - (x * y + u * w / left)
            values = rest**2 / (1 + state.slack + y**2 + w**2 / left) - gained - state.gained
            if flat.any():  # the second adds nothing, or is a constant
                is_constant = (np.abs(w) > _DRIFT * np.maximum(1.0, np.abs(y))) & (not state.is_free)
                alone = np.where(is_constant, -(state.gained + x**2), state.with_one()[:, None])
                values = np.where(flat, alone, values)
        values[groups[:, None] == groups] = math.inf
        at = int(np.argmin(values))
        i, j = divmod(at, len(facts))
        value = float(values[i, j])
        if value < math.inf:
            self.offer((*chosen, int(facts[i]), int(facts[j])), value)
        return value


def _factors(correlations: np.ndarray | None, groups: np.ndarray, r: int) -> np.ndarray | None:
    r"""Return :math:`1 / (1 - \rho_j)` per fact, (m,); infinite if nothing is known. None if all are 1."""
    if correlations is None:
        return None
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    largest = np.maximum.reduceat(np.abs(correlations), starts, axis=1)
    largest[np.arange(len(groups)), np.searchsorted(starts, np.arange(len(groups)), side="right") - 1] = 0
    count = min(r - 1, largest.shape[1] - 1)
    if count <= 0:
        return None
    rho = np.partition(largest, largest.shape[1] - count, axis=1)[:, -count:].sum(axis=1) + _DEPENDENT
    is_bounded = rho < 1 - _DEPENDENT
    return np.where(is_bounded, 1.0 / np.where(is_bounded, 1.0 - rho, 1.0), math.inf)


def _climb(state: _State, factors: np.ndarray | None, groups: np.ndarray, r: int) -> _Dual:
    """Maximize the bound over eta: it is the least of quadratic pieces, whose tops and crossings are tried.

    If nothing is known about some facts, the bound is infinite, and only its picks are of use.
    """
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    is_known = factors is None or bool(np.isfinite(factors).all())
    if factors is not None:
        factors = np.minimum(factors, _MOST_FACTOR)
    r = min(r, len(starts))
    ends = np.append(starts[1:], len(groups))
    best: _Dual | None = None
    low: _Piece | None = None
    high: _Piece | None = None
    eta = 0.0 if state.is_free else state.rest / (1 + state.slack)
    for _ in range(_CLIMBS):
        gains = state.alpha + eta * state.beta
        gains *= gains
        if factors is not None:
            gains *= factors
        largest = np.maximum.reduceat(gains, starts)
        top = np.sort(np.argpartition(-largest, r - 1)[:r])
        picks = [int(starts[g] + np.argmax(gains[starts[g] : ends[g]])) for g in top.tolist()]
        total = float(largest[top].sum())
        known = -state.gained + 2 * eta * state.rest - eta**2 * (1 + state.slack)
        terms = state.gained + total + 2 * abs(eta * state.rest) + eta**2 * (1 + state.slack)
        bound = known - total - _ROUNDING * terms
        if best is None or bound > best.bound:
            best = _Dual(bound, eta, gains, starts, largest, top, picks, known - _ROUNDING * terms)
        alpha, beta = state.alpha[picks], state.beta[picks]
        weights = np.ones(r) if factors is None else factors[picks]
        piece = _Piece(
            state.gained + float(weights @ alpha**2),
            state.rest - float(weights @ (alpha * beta)),
            1 + state.slack + float(weights @ beta**2),
        )
        slope = piece.rest - eta * piece.slack
        low, high = (piece, high) if slope > 0 else (low, piece)
        eta, most = _crossing(low, high)
        if slope == 0 or most <= best.bound + _CLIMBED * max(1.0, abs(best.bound)):
            break
    assert best is not None
    if not is_known:
        best.bound = best.known = -math.inf
    return best


@dataclass(frozen=True, slots=True)
class _Piece:
    """A quadratic in eta, -gained + 2 eta rest - eta^2 slack, which is nowhere below the bound."""

    gained: float
    rest: float
    slack: float

    def at(self, eta: float) -> float:
        return -self.gained + 2 * eta * self.rest - eta**2 * self.slack

    @property
    def top(self) -> float:
        return self.rest / self.slack


def _crossing(low: _Piece | None, high: _Piece | None) -> tuple[float, float]:
    """Return where the smaller of two pieces is largest, and its value; one rises there from below, one falls."""
    if low is None or high is None:
        piece = low or high
        assert piece is not None
        return piece.top, piece.at(piece.top)
    if low.at(low.top) <= high.at(low.top):
        return low.top, low.at(low.top)
    if high.at(high.top) <= low.at(high.top):
        return high.top, high.at(high.top)
    # Between the two tops the difference of the pieces, a eta^2 + 2 b eta + c, changes its sign once.
    a, b, c = high.slack - low.slack, low.rest - high.rest, high.gained - low.gained
    turn = -(b + math.copysign(math.sqrt(max(b * b - a * c, 0.0)), b))
    roots = ([turn / a] if a != 0 else []) + ([c / turn] if turn != 0 else [])
    inside = [eta for eta in roots if min(low.top, high.top) <= eta <= max(low.top, high.top)]
    eta = max(inside or [(low.top + high.top) / 2], key=lambda e: min(low.at(e), high.at(e)))
    return eta, min(low.at(eta), high.at(eta))


def _forced(dual: _Dual) -> np.ndarray:
    """Return the bound of sums with each fact, (m,): it takes the place of its attribute, or of the weakest."""
    total = float(dual.best[dual.top].sum())
    replaced = np.full(len(dual.starts), float(dual.best[dual.top].min()))
    replaced[dual.top] = dual.best[dual.top]
    sizes = np.diff(np.append(dual.starts, len(dual.gains)))
    return np.asarray(dual.known - (total - np.repeat(replaced, sizes)) - dual.gains)


def _without(dual: _Dual, group: int) -> float:
    """Return the bound of all sums without an attribute, which is one of the best."""
    total = float(dual.best[dual.top].sum()) - float(dual.best[group])
    others = np.delete(dual.best, dual.top)
    return dual.known - total - (float(others.max()) if len(others) else 0.0)
