"""From an opened case to a rule: what is found, its figures, and the strips of its picture."""

from dataclasses import replace

import numpy as np

from anchorline.errors import ParameterError
from anchorline.facts import Fact
from anchorline.result.rule import Rule, RuleProof, Strip
from anchorline.rules.always import prover_of
from anchorline.rules.find import Found, failures_of_all, find_rule
from anchorline.search.assemble import VERSIONS, queries_of, rows_with, with_extent
from anchorline.search.case import Case
from anchorline.search.table import TableAnswers
from anchorline.search.trees import ModelTrees
from anchorline.settings import RuleSettings
from anchorline.spaces.base import Space

_SAME = 0.1  # of the prediction, or of the spread of outputs, within which a number stays by default
_IN_STRIP, _PARTS = 300, 12  # neighbors that are drawn for a strip, and its parts


def tolerance(case: Case, within: float | None, answers: TableAnswers | None) -> float | None:
    """Return how much the output may change and still stay; None for decisions."""
    predictor = case.predictor
    if predictor.output.kind != "number":
        if within is not None:
            raise ParameterError(
                f"within is {within!r}, but the model returns decisions, and within is meant for numbers. "
                "Leave it out."
            )
        return None
    if within is not None:
        return within
    spread = 0.0 if answers is None else answers.extent(predictor)[2]
    default = _SAME * max(abs(predictor.prediction), spread)
    if default > 0:
        return default
    spread_is = "is not known" if answers is None else "on the table is 0"
    raise ParameterError(
        f"The prediction is 0, and the spread of the outputs {spread_is}, so there is no default for how much "
        "the output may change. Type within=10, in units of the output."
    )


def rule_of(
    case: Case, space: Space, settings: RuleSettings, answers: TableAnswers | None, trees: ModelTrees
) -> Rule:
    """Return the rule of an opened case; ``answers`` are those to rows of the table, if they were asked for."""
    case = replace(case, within=tolerance(case, settings.within, answers))
    found = find_rule(case, settings.holds, lambda: prover_of(trees, case))
    certificate = found.certificate
    facts = tuple(case.neighborhood.fact(fact) for fact in found.facts)
    strips = tuple(_strip(case, found, place) for place in range(len(facts)))
    all_ = found.all.share(failures_of_all(case.settings.confidence))
    assert all_ is not None  # neighbors of the law are asked about first
    rows = None
    if answers is not None:
        near = None if case.within is None else answers.outputs(case.predictor) - case.predictor.prediction
        alike = answers.alike(case.predictor) if near is None else case.is_within(near)
        rows = rows_with(facts, space, answers, alike)
    n_certified = 0 if found.source == "listed" else sum(count.n for count in certificate.counts) * bool(facts)
    return Rule(
        instance=case.neighborhood.instance,
        prediction=case.predictor.prediction,
        output=case.predictor.output if answers is None else with_extent(case, answers),
        facts=facts,
        verdict=found.verdict,
        within=case.within,
        holds=certificate.share,
        holds_drawn=certificate.drawn.share(certificate.failures) if facts else None,
        holds_law=None if not facts or certificate.law is None else certificate.law.share(certificate.failures),
        all=all_,
        coverage=_coverage(case, space, found, facts),
        rows=rows,
        strips=strips,
        proof=RuleProof("proven" if found.is_proven else "found", found.n_tried, found.n_certified),
        queries=queries_of(case, found.source, case.n_asked - n_certified, n_certified),
        settings=settings.to_dict(),
        space=space.describe(case.neighborhood),
        versions=VERSIONS,
    )


def _coverage(case: Case, space: Space, found: Found, facts: tuple[Fact, ...]) -> float:
    """Return the share of the table's rows with the facts; without a table, that of all values."""
    if case.neighborhood.row_cells() is not None:
        return float(np.mean(space.examples_with(facts)))
    candidates = case.neighborhood.candidates
    ends = np.concatenate([[0.0], np.cumsum(candidates.shares)])
    chosen = list(found.facts)
    return float(np.prod(ends[candidates.last[chosen]] - ends[candidates.first[chosen]]))


def _strip(case: Case, found: Found, place: int) -> Strip:
    """Return what the model does along one column while the other facts hold.

    Neighbors with the other facts take the column's value from any row; if none may be asked about any more, or
    if values do not change one by one, the search's own neighbors are looked at.
    """
    fact, others = found.facts[place], [*found.facts[:place], *found.facts[place + 1 :]]
    candidates = case.neighborhood.candidates
    view, attribute = int(candidates.views[fact]), int(candidates.groups[fact])
    start, stop = int(candidates.starts[view]), int(candidates.starts[view + 1])
    shares, missing = candidates.shares[start:stop], 0.0
    if case.neighborhood.has_missing:
        shares, missing = shares[:-1], float(shares[-1])
    if case.neighborhood.is_product and case.n_left >= _IN_STRIP and found.source != "listed":
        stream = f"rule/strip/{fact}"
        donors = case.draw(stream, 0, _IN_STRIP, others)
        donors[attribute] = case.neighborhood.draw(_IN_STRIP, case.random(stream, 1), 1.0)[attribute]
        cells, stays = case.neighborhood.cells(donors, [view])[0], case.ask(donors).decisions
        counts = np.ones(_IN_STRIP)
    else:
        sample = found.sample
        weights = sample.counts(candidates.groups[list(found.facts)].tolist())
        counts = np.ones(len(sample.stays)) if weights is None else weights
        counts = counts * ~candidates.flips(sample.cells, others).any(axis=0)
        cells, stays = sample.cells[view], sample.stays
    first, last, own = (
        int(each) - start for each in (candidates.first[fact], candidates.last[fact], candidates.own[view])
    )
    # Parts begin at the ends of the fact, and at even shares.
    even = np.searchsorted(np.cumsum(shares)[:-1], np.arange(1, _PARTS) / _PARTS * shares.sum()) + 1
    edges = np.unique([*even.tolist(), first, last])
    edges = edges[(edges > 0) & (edges < len(shares))]
    parts = np.searchsorted(edges, np.arange(stop - start), side="right")
    parts[len(shares) :] = len(edges) + 1  # missing values are a part of their own
    of = parts[cells - start]
    n, kept = (np.bincount(of, each, minlength=len(edges) + 2) for each in (counts, counts * stays))
    return Strip(
        labels=case.neighborhood.edge_labels(view, edges.tolist()),
        shares=tuple(np.bincount(parts[: len(shares)], shares, minlength=len(edges) + 1).tolist()),
        stays=tuple(float(k / m) if m > 0 else None for k, m in zip(kept[:-1], n[:-1], strict=True)),
        first=int(parts[first]),
        last=int(parts[last - 1]) + 1,
        own=int(parts[own]),
        missing=missing,
    )
