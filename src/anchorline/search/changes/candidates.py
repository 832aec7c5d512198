"""The values that a search for changes tries, in one list: candidates of all attributes, nearest and beyond."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.choices import Choices, TableChoices
from anchorline.spaces.realism import Nearby
from anchorline.spaces.wishes import Wishes

Cost = Mapping[str, float] | Callable[[Mapping[str, tuple[Any, Any]]], float]


@dataclass(frozen=True, eq=False)
class Candidates:
    """All allowed candidates, numbered attribute by attribute; those of an ordered attribute are sorted.

    ``owner`` (m,) is the attribute of every candidate, ``value`` (m,) its index among the attribute's candidates,
    and ``cell`` (m,) a number that candidates share if the model cannot distinguish them. ``weights``
    (attributes,) multiply distances; ``price`` replaces the weighted sum if it is given.
    """

    choices: Choices
    owner: np.ndarray
    value: np.ndarray
    cell: np.ndarray
    weights: np.ndarray
    price: Callable[[Mapping[str, tuple[Any, Any]]], float] | None = None

    @classmethod
    def of(cls, choices: Choices, wishes: Wishes, cost: Cost, held: Sequence[str]) -> "Candidates":
        """Return the candidates that the wishes allow; raise `ParameterError` if there are none."""
        columns = {choice.name: choices.column_names(a) for a, choice in enumerate(choices.attributes)}
        wishes.check(columns, held)
        weights, price = np.ones(len(columns)), cost if callable(cost) else None
        if not callable(cost):
            Wishes(fixed=tuple(cost)).check(columns, held)
            for a, (name, own) in enumerate(columns.items()):
                weights[a] = max((float(cost[each]) for each in {name, *own} if each in cost), default=1.0)
        allowed = [wishes.allowed(choices, a) for a in range(len(columns))]
        owner = np.repeat(np.arange(len(allowed)), [len(values) for values in allowed])
        if not len(owner):
            raise ParameterError(
                "No attribute may change: all are held fixed, or no training row has another allowed value. "
                "Shorten fixed, or widen within and direction."
            )
        value = np.concatenate(allowed).astype(np.intp)
        return cls(choices, owner, value, np.arange(len(owner)), weights, price)

    @cached_property
    def distances(self) -> np.ndarray:
        """Distance of every candidate from the instance's own value, (m,)."""
        return self._of_choices("distances")

    @cached_property
    def sides(self) -> np.ndarray:
        """-1 below the instance's own value, +1 above, 0 without an order, (m,)."""
        return self._of_choices("sides")

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of training rows that have the value, (m,)."""
        return self._of_choices("counts")

    def _of_choices(self, name: str) -> np.ndarray:
        parts = [
            getattr(choice, name)[self.value[self.owner == a]] for a, choice in enumerate(self.choices.attributes)
        ]
        return np.concatenate(parts)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.owner)

    @cached_property
    def attributes(self) -> np.ndarray:
        """The attributes that have a candidate."""
        return np.unique(self.owner)

    def of_side(self, attribute: int, side: int) -> np.ndarray:
        """Return the candidates of an attribute on one side, nearest first; without an order, by frequency."""
        own = np.flatnonzero((self.owner == attribute) & (self.sides == side))
        if side == 0:
            return own[np.argsort(-self.counts[own], kind="stable")]
        return own[::-1] if side < 0 else own

    def beyond(self, candidate: int) -> np.ndarray:
        """Return the candidate and all on its side that are farther away; without an order, only itself."""
        side = int(self.sides[candidate])
        if side == 0:
            return np.array([candidate])
        own = self.of_side(int(self.owner[candidate]), side)
        return own[int(np.flatnonzero(own == candidate)[0]) :]

    def nearer(self, candidate: int) -> np.ndarray:
        """Return the candidates between the instance's own value and this one, nearest first."""
        side = int(self.sides[candidate])
        if side == 0:
            return np.zeros(0, dtype=np.intp)
        own = self.of_side(int(self.owner[candidate]), side)
        return own[: int(np.flatnonzero(own == candidate)[0])]

    def distinct(self, candidates: np.ndarray) -> np.ndarray:
        """Return the first candidate of every cell, in the order given."""
        _, first = np.unique(self.cell[candidates], return_index=True)
        return np.asarray(candidates[np.sort(first)])

    def spread(self, candidates: np.ndarray, most: int) -> np.ndarray:
        """Return at most ``most`` of the candidates: the first, the last, and quantiles of the training rows."""
        if len(candidates) <= most:
            return candidates
        if most < 2 or self.sides[candidates[0]] == 0:
            return candidates[:most]
        reached = np.cumsum(self.counts[candidates])
        at = np.searchsorted(reached, np.linspace(reached[0], reached[-1], most))
        return np.asarray(candidates[np.unique(np.r_[0, at, len(candidates) - 1])[:most]])

    def cost(self, chosen: np.ndarray) -> np.ndarray:
        """Return the cost of changes (n, s), given as candidates; -1 changes nothing."""
        if self.price is None:
            weighted = np.append(self.weights[self.owner] * self.distances, 0.0)  # the last one is that of -1
            return np.asarray(weighted[chosen].sum(axis=1))
        return np.array([self._priced(row[row >= 0].tolist()) for row in chosen], dtype=np.float64)

    @cached_property
    def is_realistic(self) -> bool:
        """Whether the table asks for realistic neighbors, so that changes near to training rows come first."""
        return isinstance(self.choices, TableChoices) and self.choices.table.neighbors == "realistic"

    @cached_property
    def nearby(self) -> Nearby | None:
        """The training rows beside the instance; None if there are none."""
        return Nearby.of(self.choices) if isinstance(self.choices, TableChoices) else None

    def as_mapping(self, chosen: Iterable[int]) -> dict[int, int]:
        """Return a change as a mapping from attributes to their candidates."""
        return {int(self.owner[candidate]): int(self.value[candidate]) for candidate in chosen if candidate >= 0}

    def order(self, changes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the changes, fewest facts first, then cheapest, then nearest to a training row.

        In a table of realistic neighbors, nearness to training rows comes before the cost.
        """
        padded = np.full((len(changes), max(map(len, changes), default=1)), -1, dtype=np.intp)
        for i, each in enumerate(changes):
            padded[i, : len(each)] = each
        costs, nearby = self.cost(padded).round(12).tolist(), self.nearby
        apart = [0.0 if nearby is None else round(nearby.distance(self.as_mapping(each)), 12) for each in changes]
        keys = zip(apart, costs, strict=True) if self.is_realistic else zip(costs, apart, strict=True)
        ranked = sorted((len(each), *key, each) for each, key in zip(changes, keys, strict=True))
        return [rank[-1] for rank in ranked]

    def _priced(self, chosen: Sequence[int]) -> float:
        assert self.price is not None
        moves = {}
        for candidate in chosen:
            a, value = int(self.owner[candidate]), int(self.value[candidate])
            before, after = self.choices.plain_before(a), self.choices.plain_after(a, value)
            moves[self.choices.attributes[a].name] = before, after
        cost = float(self.price(moves))
        if not np.isfinite(cost):
            raise ParameterError(f"cost returned {cost!r} for {moves!r:.200}, but it must return a finite number.")
        return cost
