"""Verdicts on raw tables: how often each is given, to the facts found and to random facts of the same number."""

import functools
import multiprocessing
import statistics
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.guarantees.verdicts import TRUSTWORTHY_STABILITY, Verdict, among_neighbors
from anchorline.result.explanation import Explanation
from anchorline.search.assess import Assessment
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.models import fitted_model
from benchmarks.tasks import SEED

MODELS = ("linear", "forest", "boosting", "network")
N_ROWS = 40
N_RANDOM = 1  # random set of facts per row
N_CERTIFY = 5000  # as by default, for the facts found and for random ones
N_TRUTH = 10_000
LOW_BASELINE = 0.80  # an output that changes in more than a fifth of neighbors if no fact is held
VERDICTS = tuple(verdict for verdict in Verdict if verdict is not Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Case:
    """One explained row: its verdict, that of random facts, and what a large independent sample measures.

    ``baseline`` and ``held`` are the shares of neighbors in which the decision stays, or in which the number stays
    about the same. ``random`` holds a verdict and a figure like ``held`` per set of random facts.
    """

    table: str
    model: str
    is_decision: bool
    verdict: Verdict
    baseline: float
    held: float
    random: tuple[tuple[Verdict, float], ...]
    text: str

    @property
    def truly_holds(self) -> bool:
        """Whether the facts hold an output that is open without them."""
        return self.held >= TRUSTWORTHY_STABILITY and self.baseline < LOW_BASELINE


def verdicts_by_model(data: Path, *, n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield one row per table and model: how many rows get each verdict, and how many random sets are praised."""
    for cases in _study(data, n_rows):
        yield _by_model(cases)


def verdicts(data: Path, *, n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield one row per verdict, for decisions and for numbers, over all tables and models."""
    cases = [case for part in _study(data, n_rows) for case in part]
    for is_decision in (True, False):
        chosen = [case for case in cases if case.is_decision is is_decision]
        if chosen:
            yield from (_by_verdict(chosen, verdict) for verdict in VERDICTS)


@functools.cache
def _study(data: Path, n_rows: int) -> tuple[tuple[Case, ...], ...]:
    """Judge rows of every table with every model, in one process per core; the order does not affect them."""
    tasks = [(data, row.id, model, n_rows) for row in available(data) for model in MODELS]
    if "fork" not in multiprocessing.get_all_start_methods():
        return tuple(_cases(*task) for task in tasks)
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=4) as pool:
        return tuple(pool.starmap(_cases, tasks, chunksize=1))


def _by_verdict(cases: Sequence[Case], verdict: Verdict) -> dict[str, Any]:
    """Return what one verdict means: its share, the figures behind it, and what a reader sees."""
    given = [case for case in cases if case.verdict is verdict]
    held = [case for case in cases if case.truly_holds]
    random = [pair for case in cases for pair in case.random]
    shown = min(given, key=lambda case: abs(case.held - statistics.median(c.held for c in given)), default=None)
    return {
        "output": "decision" if cases[0].is_decision else "number",
        "verdict": verdict.name.lower(),
        "rows": len(given),
        "share": len(given) / len(cases),
        "median_baseline": _median(case.baseline for case in given),
        "median_while_held": _median(case.held for case in given),
        "median_of_random_facts": _median(figure for case in given for _, figure in case.random),
        "share_of_random_sets": sum(pair[0] is verdict for pair in random) / max(1, len(random)),
        "share_where_facts_decide": sum(c.verdict is verdict for c in held) / len(held) if held else None,
        "a_reader_sees": "-" if shown is None else shown.text,
    }


def _by_model(cases: Sequence[Case]) -> dict[str, Any]:
    counts = Counter(case.verdict for case in cases)
    random = [verdict for case in cases for verdict, _ in case.random]
    held = [case for case in cases if case.truly_holds]
    return {
        "table": cases[0].table,
        "model": cases[0].model,
        "rows": len(cases),
        **{verdict.name.lower(): counts[verdict] for verdict in VERDICTS},
        "median_baseline": _median(case.baseline for case in cases),
        "median_while_held": _median(case.held for case in cases),
        "random_sets": len(random),
        "random_trustworthy": random.count(Verdict.TRUSTWORTHY),
        "facts_decide": len(held),
        "of_these_trustworthy": sum(case.verdict is Verdict.TRUSTWORTHY for case in held),
    }


def _median(values: Any) -> float | None:
    values = list(values)
    return statistics.median(values) if values else None


def _cases(data: Path, dataset_id: int, model: str, n_rows: int) -> tuple[Case, ...]:
    """Judge the explanations of some training rows."""
    table, n_known, explainer = fitted_explainer(data, dataset_id, model)
    rng = np.random.default_rng(SEED)
    rows = rng.choice(n_known, size=min(n_rows, n_known), replace=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model whose answer is always the same is a case, too
        return tuple(_judge(explainer, int(row), table, model, rng) for row in rows)


def fitted_explainer(data: Path, dataset_id: int, model: str) -> tuple[str, int, Explainer]:
    """Train a model on rows of a raw table; return its name, their number, and an explainer."""
    name, frame, fitted = fitted_model(data, dataset_id, model)
    return name, len(frame), Explainer(fitted, Table(frame, literals="bounds"))


def _judge(explainer: Explainer, row: int, table: str, model: str, rng: np.random.Generator) -> Case:
    """Explain a row, measure its facts on a large independent sample, and judge random facts like the found."""
    explanation = explainer.explain(row, n_certify=N_CERTIFY)
    truth = explainer.assess(row, explanation.contributions, n_fresh=N_TRUTH, seed=SEED)
    random = [
        explainer.assess(row, contributions, n_fresh=N_CERTIFY) for contributions in random_facts(explanation, rng)
    ]
    held, baseline = _figures(truth)
    return Case(
        table=table,
        model=model,
        is_decision=explanation.certificate.decision != "number",
        verdict=explanation.verdict,
        baseline=baseline,
        held=held,
        random=tuple((measured.verdict, _figures(measured)[0]) for measured in random),
        text=_shown(explanation),
    )


def random_facts(explanation: Explanation, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield contributions of random facts, as many as were found, but not the same; none if there are no others.

    They are about different attributes where there are enough: two bounds of one attribute hold less. All
    contributions are equal, because only the facts decide what is held.
    """
    names, found = [literal.name for literal in explanation.literals], set(explanation.support.tolist())
    for _ in range(N_RANDOM if 0 < len(found) < len(names) else 0):
        while set(chosen := _apart(rng.permutation(len(names)), names)[: len(found)]) == found:
            pass
        contributions = np.zeros(len(names))
        contributions[chosen] = explanation.half_range / (len(found) + 1)
        yield contributions


def _apart(order: np.ndarray, names: Sequence[str]) -> list[int]:
    """Return the facts with the first fact of every attribute before all others."""
    first: dict[str, int] = {}
    for fact in order.tolist():
        first.setdefault(names[fact], fact)
    return [*first.values(), *(fact for fact in order.tolist() if fact not in first.values())]


def _figures(measured: Assessment) -> tuple[float, float]:
    """Return the share of neighbors in which the output stays while the facts hold, and of all neighbors."""
    assert measured.stability is not None
    assert measured.baseline_stability is not None
    return (
        among_neighbors(measured.stability, measured.held_reach).value,
        among_neighbors(measured.baseline_stability, measured.reach).value,
    )


def _shown(explanation: Explanation) -> str:
    """Return the sentences about trust, in one line of a Markdown table."""
    lines = str(explanation.certificate).split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("Verdict"))
    return " ".join(lines[first - 1 : first + 1]).replace("|", "\\|")
