r"""Measure an explanation or a rule on neighbors that its maker could not foresee, and compare.

A figure is stated with limits :math:`[l, h]`, and fresh neighbors give limits that hold with confidence 99.9% (all
of them together, at every look). With a margin :math:`m` of 2.5 points, a figure is

- contradicted if the fresh limits and :math:`[l, h]` have no number in common;
- confirmed if the fresh limits lie in :math:`[l - m, h + m]`;
- undecided otherwise, and then the number of neighbors is doubled. Limits of a share that are at most :math:`m`
  apart decide, wherever they lie; and so they are after 160,000 neighbors at the latest.

Therefore a true value beyond :math:`[l - m, h + m]` is confirmed with a probability of at most 0.1%, however many
neighbors were drawn. What was proven to hold always is contradicted by a single fresh neighbor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorline.errors import ParameterError
from anchorline.facts import Fact
from anchorline.guarantees.limits import Count
from anchorline.guarantees.measuring import Measurement, Round
from anchorline.result.explanation import Explanation, Fit, Share, Verdict
from anchorline.result.rule import Rule, RuleVerdict
from anchorline.result.verification import Reason
from anchorline.rules.find import Certificate, failures_of, failures_of_all
from anchorline.search.case import Case
from anchorline.search.sources import ask_round, ask_streams, begin
from anchorline.spaces.base import Neighborhood

CONFIDENCE = 0.999
MARGIN = 0.025
LOOKS = 5_000, 5_000, 10_000, 20_000, 40_000, 80_000  # neighbors of one look after another, which double them

Figures = dict[str, Share | Fit]


@dataclass(frozen=True, slots=True, eq=False)
class Fresh:
    """What fresh neighbors say: shares and fit by name, the verdict that these establish, and their number."""

    figures: Figures
    verdict: Verdict | RuleVerdict
    n_queries: int


def measure_afresh(stated: Explanation | Rule, case: Case) -> Fresh:
    """Measure what a record states about its facts, with the seed and the confidence of the case."""
    looks = _looks_at_rule(stated, case) if isinstance(stated, Rule) else _looks_at_sum(stated, case)
    for fresh in looks:
        if all(reason.code != "not_confirmed" for reason in doubts(stated, fresh.figures)):
            break
    return fresh


def _looks_at_sum(stated: Explanation, case: Case) -> Iterator[Fresh]:
    """Yield what is known about the facts and effects of an explanation after every look."""
    facts = candidates_of(case.neighborhood, stated.facts)
    broken = case.neighborhood.candidates.broken(case.replace_probability)[facts]
    measured = begin(case, stated.effects, broken, stated.output.spread)
    for batch, n in enumerate(LOOKS):
        measured = ask_round(case, measured, _round(stated, n), batch, facts, stated.effects)
        yield Fresh(figures_of(measured), measured.verdict, measured.n_queries)


def _looks_at_rule(stated: Rule, case: Case) -> Iterator[Fresh]:
    """Yield what is known about the facts of a rule after every look."""
    facts, case = candidates_of(case.neighborhood, stated.facts), replace(case, within=stated.within)
    target, of_all = stated.settings["holds"], failures_of_all(case.settings.confidence)
    law = None if stated.holds_law is None else Count()
    everything = Certificate(Count(), None, of_all, target)
    certificate = Certificate(Count(), law, failures_of(case.settings.confidence, 0), target)
    for batch, n in enumerate(LOOKS):
        answers = ask_streams(case, _round(stated, n), batch, facts, None)
        of_law, drawn, unbroken = (each.decisions for each in answers)
        everything = replace(everything, drawn=everything.drawn.added(of_law))
        certificate = replace(
            certificate,
            drawn=certificate.drawn.added(drawn),
            law=None if certificate.law is None else certificate.law.added(unbroken),
        )
        shares = {
            "holds_drawn": certificate.drawn.share(certificate.failures),
            "holds_law": None if certificate.law is None else certificate.law.share(certificate.failures),
            "all": everything.drawn.share(of_all),
        }
        verdict = certificate.verdict if facts else everything.verdict
        n_queries = sum(count.n for count in (*certificate.counts, everything.drawn))
        yield Fresh({name: share for name, share in shares.items() if share is not None}, verdict, n_queries)


def _round(stated: Explanation | Rule, n: int) -> Round:
    """Return a round of n neighbors, in equal parts for all shares that are stated."""
    names = {"law": True, "facts": stated.holds_drawn is not None, "unbroken": stated.holds_law is not None}
    streams = [name for name, is_stated in names.items() if is_stated]
    return Round(**{name: n // len(streams) for name in streams})


def candidates_of(neighborhood: Neighborhood, facts: Sequence[Fact]) -> list[int]:
    """Return the numbers of the candidates that state these facts."""
    found = []
    for fact in facts:
        own = np.flatnonzero(neighborhood.candidates.groups == neighborhood.names.index(fact.attribute)).tolist()
        same = [j for j in own if neighborhood.fact(j) == fact]
        if not same:
            raise ParameterError(f"No fact about {fact.attribute!r} that is true of the row is {fact!r}.")
        found.append(same[0])
    return found


def figures_of(result: Explanation | Measurement | Rule) -> Figures:
    """Return the shares and the fit that are there, by name."""
    figures = {
        "holds_drawn": result.holds_drawn,
        "holds_law": result.holds_law,
        "all": result.all,
        "fit": None if isinstance(result, Rule) else result.fit,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def doubts(stated: Explanation | Rule, fresh: Figures) -> list[Reason]:
    """Return the figures that fresh neighbors contradict; if there are none, those that they do not confirm."""
    contradicted, unconfirmed = [], []
    for name, ours in figures_of(stated).items():
        own = fresh.get(name)
        if own is None:
            continue
        is_always = stated.verdict is RuleVerdict.ALWAYS and (name != "all" or not stated.facts)
        if is_always and isinstance(own, Share) and own.value < 1:
            contradicted.append(Reason("counterexample", name, ours, own))
        elif ours.is_exact:
            continue
        elif own.high < ours.low or own.low > ours.high:
            contradicted.append(Reason("contradicted", name, ours, own))
        elif own.low < ours.low - MARGIN or own.high > ours.high + MARGIN:
            unconfirmed.append(Reason("not_confirmed", name, ours, own))
    return contradicted or unconfirmed
