"""From what was found and measured to an explanation: figures are put in their places, and nothing is computed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline._version import __version__
from anchorline.facts import Fact
from anchorline.guarantees.measuring import Measurement
from anchorline.optimize.choose import alternatives, evident, frontier
from anchorline.optimize.moments import Moments
from anchorline.optimize.sums import Limits, Solution, Status
from anchorline.result.explanation import Alternative, Explanation, Output, Proof, Queries, Rows
from anchorline.result.frontier import Frontier, FrontierPoint
from anchorline.search.case import Case
from anchorline.search.sources import Search
from anchorline.search.table_answers import TableAnswers
from anchorline.spaces.base import Finding, Space

VERSIONS = {"anchorline": __version__, "numpy": np.__version__}
_STATUS = {Status.PROVEN: "proven", Status.LIMIT: "limit", Status.NUMERICAL: "numerical"}


def assemble(
    case: Case,
    space: Space,
    search: Search,
    measured: Measurement,
    answers: TableAnswers | None,
    findings: Iterable[Finding] = (),
) -> Explanation:
    """Return the explanation of a case; ``answers`` are those to rows of the table, if they were asked for."""
    facts, contributions, effects = stated(case, search.moments, search.solution)
    predictor = case.predictor
    return Explanation(
        instance=case.neighborhood.instance,
        prediction=predictor.prediction,
        base=predictor.prediction - float(contributions.sum()),
        facts=facts,
        contributions=contributions,
        effects=effects,
        verdict=measured.verdict,
        holds=measured.holds,
        holds_drawn=measured.holds_drawn,
        holds_law=measured.holds_law,
        all=measured.all,
        fit=measured.fit,
        rows=None if answers is None else _rows(case, space, facts, answers),
        output=predictor.output if answers is None else with_extent(case, answers),
        proof=_proof(search),
        queries=_queries(case, search, measured),
        alternatives=tuple(_alternatives(case, search)),
        findings=tuple(_about(facts, findings)),
        settings=replace(case.settings, k=case.k).to_dict(),
        space=space.describe(case.neighborhood),
        versions=VERSIONS,
    )


def assemble_frontier(case: Case, search: Search, space: Space, ks: Sequence[int]) -> Frontier:
    """Return the best sums of at most each of several numbers of facts, for the moments of one search."""
    moments, limits = search.moments, Limits(time_limit=case.settings.time_limit, check=case.check)
    points = []
    for k, solution in zip(ks, frontier(moments, ks, limits), strict=True):
        facts, contributions, _ = stated(case, moments, solution)
        status, figures = _STATUS[solution.status], (solution.objective, solution.lower_bound)
        points.append(FrontierPoint(k, facts, tuple(contributions.tolist()), status, *figures))
    return Frontier(
        prediction=case.predictor.prediction,
        output=case.predictor.output,
        points=tuple(points),
        baseline=moments.mean_square,
        n_queries=case.predictor.questions.n_answers,
        settings=replace(case.settings, k=case.k).to_dict(),
        space=space.describe(case.neighborhood),
        versions=VERSIONS,
    )


def stated(case: Case, moments: Moments, solution: Solution) -> tuple[tuple[Fact, ...], np.ndarray, np.ndarray]:
    r"""Return facts, contributions :math:`v_j b_j` and effects :math:`v_j`, the largest contribution first."""
    chosen, effects = np.array(solution.facts, dtype=np.intp), np.asarray(solution.effects)
    contributions = effects * moments.b[chosen]
    order = np.argsort(-np.abs(contributions), kind="stable")
    facts = tuple(case.neighborhood.fact(int(j)) for j in chosen[order])
    return facts, contributions[order], effects[order]


def _rows(case: Case, space: Space, facts: tuple[Fact, ...], answers: TableAnswers) -> Rows:
    inside, alike = space.examples_with(facts), answers.alike(case.predictor)
    return Rows(int(inside.sum()), None if alike is None else int((inside & alike).sum()), len(inside))


def with_extent(case: Case, answers: TableAnswers) -> Output:
    """Return the output with its range and spread on the table; a known range stays."""
    output, (low, high, spread) = case.predictor.output, answers.extent(case.predictor)
    known = case.predictor.output_range or (low, high)
    return replace(output, low=known[0], high=known[1], spread=spread)


def _proof(search: Search) -> Proof:
    solution, moments = search.solution, search.moments
    return Proof(
        _STATUS[solution.status],
        solution.objective,
        solution.lower_bound,
        moments.variance,
        int(np.count_nonzero(evident(moments))),
    )


def _queries(case: Case, search: Search, measured: Measurement) -> Queries:
    """Count queries; neighbors that were listed are asked about once, although they serve both purposes."""
    questions, shared = case.predictor.questions, 0 if search.listed is None else search.n_asked
    n_measured = measured.n_queries - shared
    return Queries(search.n_asked, n_measured, questions.n_answers, questions.asks_twice, search.source)


def _alternatives(case: Case, search: Search) -> Iterable[Alternative]:
    if not case.settings.alternatives:
        return
    limits = Limits(check=case.check)  # the time limit is that of the proof
    for other in alternatives(search.moments, search.solution, case.settings.alternatives, limits):
        facts, contributions, _ = stated(case, search.moments, other)
        yield Alternative(facts, tuple(contributions.tolist()), other.objective)


def _about(facts: tuple[Fact, ...], findings: Iterable[Finding]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield the codes of findings about columns that occur in the facts, with these columns."""
    stated_columns: set[Any] = {fact.column for fact in facts}
    for finding in findings:
        columns = tuple(name for name in finding.columns if name in stated_columns)
        if columns:
            yield finding.code, columns
