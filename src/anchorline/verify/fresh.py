r"""Measure an explanation on neighbors that its maker could not foresee, and compare with what it states.

A figure is stated with limits :math:`[l, h]`, and fresh neighbors give limits that hold with confidence 99.9% (all
of them together, at every look). With a margin :math:`m` of 2.5 points, a figure is

- contradicted if the fresh limits and :math:`[l, h]` have no number in common;
- confirmed if the fresh limits lie in :math:`[l - m, h + m]`;
- undecided otherwise, and then the number of neighbors is doubled.

Therefore a true value beyond :math:`[l - m, h + m]` is confirmed with a probability of at most 0.1%, however many
neighbors were drawn.
"""

from collections.abc import Sequence

import numpy as np

from anchorline.facts import Fact
from anchorline.guarantees.measuring import Measurement, Round
from anchorline.result.explanation import Explanation, Fit, Share
from anchorline.result.verification import Reason
from anchorline.search.case import Case
from anchorline.search.measure import ask_round, begin
from anchorline.spaces.base import Neighborhood

CONFIDENCE = 0.999
MARGIN = 0.025
LOOKS = 5_000, 5_000, 10_000, 20_000  # neighbors of one look after another, which double them

Figures = dict[str, Share | Fit]


def measure_afresh(stated: Explanation, case: Case) -> Measurement:
    """Measure the facts and effects of an explanation, with the seed and the confidence of the case."""
    facts = candidates_of(case.neighborhood, stated.facts)
    broken = case.neighborhood.candidates.broken(case.settings.replace_probability)[facts]
    measured = begin(case, stated.effects, broken, stated.output.spread)
    for batch, n in enumerate(LOOKS):
        measured = ask_round(case, measured, _round(stated, n), batch, facts, stated.effects)
        if all(reason.code != "not_confirmed" for reason in doubts(stated, figures_of(measured))):
            break
    return measured


def _round(stated: Explanation, n: int) -> Round:
    """Return a round of n neighbors, in equal parts for all shares that are stated."""
    names = {"law": True, "facts": stated.holds_drawn is not None, "unbroken": stated.holds_law is not None}
    streams = [name for name, is_stated in names.items() if is_stated]
    return Round(**{name: n // len(streams) for name in streams})


def candidates_of(neighborhood: Neighborhood, facts: Sequence[Fact]) -> list[int]:
    """Return the numbers of the candidates that state these facts."""
    found = []
    for fact in facts:
        own = np.flatnonzero(neighborhood.candidates.groups == neighborhood.names.index(fact.attribute))
        found.append(next(int(j) for j in own if neighborhood.fact(int(j)) == fact))
    return found


def figures_of(result: Explanation | Measurement) -> Figures:
    """Return the shares and the fit that are there, by name."""
    figures = {
        "holds_drawn": result.holds_drawn,
        "holds_law": result.holds_law,
        "all": result.all,
        "fit": result.fit,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def doubts(stated: Explanation, fresh: Figures) -> list[Reason]:
    """Return the figures that fresh neighbors contradict; if there are none, those that they do not confirm."""
    contradicted, unconfirmed = [], []
    for name, ours in figures_of(stated).items():
        own = fresh.get(name)
        if own is None or ours.is_exact:
            continue
        if own.high < ours.low or own.low > ours.high:
            contradicted.append(Reason("contradicted", name, ours, own))
        elif own.low < ours.low - MARGIN or own.high > ours.high + MARGIN:
            unconfirmed.append(Reason("not_confirmed", name, ours, own))
    return contradicted or unconfirmed
