r"""Neighbors that decide among rules: all of them listed, or drawn so that one sample serves every rule.

A rule of m facts needs neighbors whose m attributes were all replaced, which are rare among those of the law:
:math:`q^m`. So the attributes that matter keep their values with a smaller probability r in the search, and each
neighbor is weighted by the chance of its values under the law over that with which they were drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.optimize.boxes import Draws
from anchorline.search.case import Asked, Case

_KEPT = 0.25  # the probability r; at most that of the law
_ROUNDING = 1e-12  # of an output


@dataclass(frozen=True, eq=False)
class Asking:
    """Asks a case's model whether the decision stays; a number stays if it changes by at most ``within``."""

    case: Case
    within: float | None

    def stays(self, asked: Asked) -> np.ndarray:
        """Return which neighbors keep the decision, (n,)."""
        if self.within is not None:
            return self.is_within(asked.drops)
        assert asked.stays is not None  # only numbers have no decision
        return asked.stays

    def is_within(self, drops: np.ndarray) -> np.ndarray:
        """Return which numbers stay, by how much they differ from the prediction: 0.3 stays within 0.1 of 0.4."""
        assert self.within is not None  # only numbers are compared
        return np.asarray(np.abs(drops) <= self.within + _ROUNDING * abs(self.case.predictor.prediction))

    def listed(self, donors: np.ndarray, weights: np.ndarray) -> Draws:
        r"""Ask about all neighbors with their probabilities.

        The chance of a value in the pool is :math:`(p - (1 - q)[\text{own}]) / q` if it is p under the law.
        """
        q, chances = self.case.settings.replace_probability, np.empty(donors.shape)
        cells = self.case.neighborhood.cells(donors)
        for values, own in zip(donors, chances, strict=True):
            _, numbers = np.unique(values, return_inverse=True)
            own[:] = np.bincount(numbers, weights)[numbers]
        is_own = donors == self._own_donors(donors)
        ratios = np.clip((chances - (1 - q) * is_own) / (q * chances), 0.0, None)
        return Draws(cells, self.stays(self.case.ask(donors)), weights, ratios, is_exact=True)

    def _own_donors(self, donors: np.ndarray) -> np.ndarray:
        """Return the donor that stands for the own value of each attribute, (attributes, 1)."""
        return np.where((donors == -1).any(axis=1), -1, 1)[:, None]  # of two-valued attributes, 1 is the own value

    def of_law(self, stream: str, batch: int, n: int) -> tuple[Draws, Asked]:
        """Draw n neighbors of the law."""
        case = self.case
        donors = case.draw(stream, batch, n)
        asked, cells = case.ask(donors), case.neighborhood.cells(donors)
        ratios = np.ones(donors.shape)  # of neighbors that are not independent, those that break no fact decide
        if case.neighborhood.is_product:
            ratios = self._ratios(donors >= 0, cells)
        return Draws(cells, self.stays(asked), np.ones(n), ratios), asked

    def of_search(self, stream: str, n: int, attributes: Sequence[int]) -> Draws:
        """Draw n neighbors of which the given attributes are replaced more often than under the law."""
        case, q = self.case, self.case.settings.replace_probability
        kept, keep = min(_KEPT, 1 - q), np.full(len(case.neighborhood.names), 1 - q)
        keep[list(attributes)] = kept
        donors = case.neighborhood.draw(n, case.random(stream, 0), 1.0)
        is_kept = case.random(stream, 1).uniforms(*donors.shape) < keep[:, None]
        donors = np.where(is_kept, -1, donors)
        cells, weights = case.neighborhood.cells(donors), np.ones(n)
        shares, is_own = self._own(cells)
        for a in attributes:
            if shares[a] >= 0:
                own = (q * shares[a] + 1 - q) / ((1 - kept) * shares[a] + kept) if shares[a] + kept > 0 else 0.0
                weights *= np.where(is_own[a], own, q / (1 - kept))
            else:
                weights *= np.where(is_kept[a], (1 - q) / kept if kept > 0 else 0.0, q / (1 - kept))
        return Draws(cells, self.stays(case.ask(donors)), weights, self._ratios(~is_kept, cells))

    def with_facts(self, stream: str, batch: int, n: int, facts: Sequence[int]) -> Draws:
        """Draw n neighbors with these facts."""
        donors = self.case.draw(stream, batch, n, facts)
        return Draws(self.case.neighborhood.cells(donors), self.stays(self.case.ask(donors)), np.ones(n))

    def _ratios(self, is_replaced: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return the chance of values in the pool over that under the law, (attributes, n).

        It is 1/q of a replaced value and 0 of a kept one. Where values equal to the own one are known, whether
        they were drawn or kept does not matter: :math:`s / (q s + 1 - q)` for a share s of the pool.
        """
        q = self.case.settings.replace_probability
        shares, is_own = self._own(cells)
        own = np.where(shares >= 0, shares / np.maximum(q * shares + 1 - q, 1e-12), 0.0)
        is_new = np.where((shares >= 0)[:, None], ~is_own, is_replaced)
        return np.where(is_new, 1 / q, own[:, None])

    def _own(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the share of the pool with the own value per attribute, -1 if unknown, and where it occurs."""
        neighborhood, candidates = self.case.neighborhood, self.case.neighborhood.candidates
        shares, is_own = (
            np.full(len(neighborhood.names), -1.0),
            np.zeros((len(neighborhood.names), cells.shape[1]), bool),
        )
        known = neighborhood.is_own_value[candidates.attributes]
        attributes = candidates.attributes[known]
        shares[attributes] = candidates.shares[candidates.own[known]]
        is_own[attributes] = cells[known] == candidates.own[known, None]
        return shares, is_own


def joined(first: Draws, second: Draws) -> Draws:
    """Return two samples of many rules as one."""
    assert first.ratios is not None
    assert second.ratios is not None
    return Draws(
        np.hstack([first.cells, second.cells]),
        np.concatenate([first.stays, second.stays]),
        np.concatenate([first.weights, second.weights]),
        np.hstack([first.ratios, second.ratios]),
    )
