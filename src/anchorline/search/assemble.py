"""From what was found and measured to what is returned: figures are put in their places."""

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
from anchorline.result.frames import frame_in
from anchorline.result.frontier import Frontier, FrontierPoint
from anchorline.search.case import Case
from anchorline.search.sources import Search, Source
from anchorline.search.table import TableAnswers
from anchorline.spaces.base import Finding, Space

VERSIONS = {"anchorline": __version__, "numpy": np.__version__}
_STATUS = {Status.PROVEN: "proven", Status.LIMIT: "limit", Status.NUMERICAL: "numerical"}


def assemble(
    source: Source,
    search: Search,
    measured: Measurement,
    space: Space,
    answers: TableAnswers | None,
    findings: Iterable[Finding] = (),
) -> Explanation:
    """Return the explanation of a case; ``answers`` are those to rows of the table, if they were asked for."""
    case, predictor = source.case, source.case.predictor
    facts, contributions, effects = stated(case, search.moments, search.solution)
    return Explanation(
        instance=case.neighborhood.instance,
        prediction=predictor.prediction,
        base=predictor.prediction - float(contributions.sum()),
        facts=facts,
        contributions=contributions,
        effects=effects,
        **measured.figures,
        rows=None if answers is None else rows_with(facts, space, answers, answers.alike(predictor)),
        output=predictor.output if answers is None else with_extent(case, answers),
        proof=_proof(search),
        queries=queries_of(case, source.name, search.n_asked, measured.n_queries - source.n_shared),
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


def rows_with(facts: tuple[Fact, ...], space: Space, answers: TableAnswers, alike: np.ndarray | None) -> Rows:
    """Return how many rows of the table have the facts, and how many of these are decided alike."""
    inside = space.examples_with(facts)
    return Rows(int(inside.sum()), None if alike is None else int((inside & alike).sum()), len(inside))


def queries_of(case: Case, source: str, n_searched: int, n_measured: int) -> Queries:
    """Count queries; neighbors that serve both purposes are asked about once."""
    questions = case.predictor.questions
    return Queries(n_searched, n_measured, questions.n_answers, questions.asks_twice, source)


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


def altered_copies(case: Case, space: Space, n: int) -> Any:
    """Return n neighbors of an opened case, drawn by its law: their values, the output, and whether it stays.

    A table gives a frame of its own kind, or of pandas if it is an array. Of other spaces, a column per attribute
    says whether the copy has it unchanged.
    """
    donors = case.draw("copies", 0, n)
    asked = case.ask(donors)
    figures = {_free(case.predictor.output.name, space.names): case.predictor.prediction - asked.drops}
    if asked.stays is not None:
        figures[_free("same decision", space.names)] = asked.stays
    if not space.names:
        unchanged = case.neighborhood.cells(donors) == case.neighborhood.candidates.own[:, None]
        names = [case.neighborhood.names[a] for a in case.neighborhood.candidates.attributes.tolist()]
        return frame_in("pandas", _columns(dict(zip(names, unchanged, strict=True)) | figures))
    inputs = case.neighborhood.realize(donors)
    if isinstance(inputs, np.ndarray):
        return frame_in("pandas", _columns(dict(zip(space.names, inputs.T, strict=True)) | figures))
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs)
    new = (nw.new_series(name, values, backend=frame.implementation) for name, values in figures.items())
    return frame.with_columns(*new).to_native()


def _free(name: str, taken: tuple[str, ...]) -> str:
    """Return a name that no column of the table has."""
    return name if name not in taken else _free(f"{name} (model)", taken)


def _columns(columns: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    return {name: values.tolist() for name, values in columns.items()}
