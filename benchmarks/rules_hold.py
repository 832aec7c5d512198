"""Do rules hold as written? Rules of at most four facts at 95%, beside anchors and release 0.1's shortest rule.

Every rule is audited in the same way, by NumPy alone: the columns of its facts take values of random rows of the
table for which the facts are true, every other column keeps its value or takes that of a random row. The share
that keeps the decision must not be below 95%.
"""

import contextlib
import copy
import math
import statistics
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from benchmarks.anchors import VARIABLES
from benchmarks.child import Child, python_of
from benchmarks.datasets import available
from benchmarks.facts import load
from benchmarks.held import REPLACE, Held, Task, our_facts
from benchmarks.release01 import Release01, python_of_01, rows_with
from benchmarks.rivals import filled
from benchmarks.tasks import SEED
from benchmarks.truth import LINE, MODELS, N_AUDIT, N_ROWS, upper_limit

K = 4
LOWEST = 0.92  # no certified rule may have a lower audit
BELOW = 0.02  # nor more than this share of them one below the line
TIME = 1 / 3  # of alibi's


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """A rule of any method: facts, whether it is said to hold in at least 95%, and processor time."""

    facts: list[Held]
    claims: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit found about one row: ``coverage`` and ``agreement`` are about the table's own rows.

    ``claims`` is also false if there are more than four facts. ``share`` is that of copies that keep the decision.
    """

    row: int
    claims: bool
    n_facts: int
    share: float
    coverage: float
    agreement: float
    seconds: float

    @property
    def passes(self) -> bool:
        """Whether the rule claims to hold, and the audit does not refute it."""
        return self.claims and not self.fails

    @property
    def fails(self) -> bool:
        """Whether the rule claims to hold, but the upper limit of the audit is below 95%."""
        return self.claims and upper_limit(self.share, N_AUDIT) < LINE


Method = Callable[[int], Stated]  # from the number of a row
Measured = dict[str, list[Audited]]  # by method, in the same order of rows


def rules_hold(
    data: Path, tables: Collection[str] = (), n_rows: int = N_ROWS, models: Sequence[str] = MODELS
) -> Iterator[dict[str, Any]]:
    """Yield one row per table with classes, model and method, then one per method about all tables."""
    pythons = {"old": python_of_01()} | {name: python_of(each, name) for name, each in VARIABLES.items()}
    whole: Measured = {}
    for row in available(data, tables):
        if row.kind != "classification":
            continue
        for model in models:
            found = audit_table(*load(data, row.id, model), n_rows, pythons)
            for name, audited in found.items():
                whole.setdefault(name, []).extend(audited)
                yield {"table": row.name, "model": model, "method": name, **_figures(found, name), "missed": ""}
    for name in whole:
        figures = _figures(whole, name)
        yield {"table": "all", "model": "all", "method": name, **figures, "missed": missed(whole, name)}


def audit_table(task: Task, explainer: Explainer, n_rows: int, pythons: Mapping[str, str | None]) -> Measured:
    """Return the audits of all methods' rules about some rows of a table; the methods take turns row by row."""
    decisions = _decisions(task, task.codes)
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods: dict[str, Method] = {"ours": ours(task, explainer)}
        for name, python in pythons.items():
            if python is not None:
                methods[name] = (old if name == "old" else anchors(name))(task, python, stack)
        rows = task.chosen(n_rows)
        another = next(row for row in range(len(task.codes)) if row not in rows)
        for method in methods.values():  # what is prepared once per table is not timed
            method(another)
        measured: Measured = {name: [] for name in methods}
        for row in rows:
            for name, method in methods.items():
                measured[name].append(audit(task, decisions, row, method(row)))
    return measured


def ours(task: Task, explainer: Explainer) -> Method:
    """Return our rule."""

    def state(row: int) -> Stated:
        case = task.frame.iloc[[row]]
        start = time.process_time()
        rule = explainer.rule(case, holds=LINE, k=K)
        seconds = time.process_time() - start
        return Stated(our_facts(rule.facts, task.frame), rule.is_reached, seconds)

    return state


def old(task: Task, python: str, stack: contextlib.ExitStack) -> Method:
    """Return 0.1's shortest rule, asked about labels, so that a relevance error of 5% is 5% of other decisions."""
    release = stack.enter_context(Release01(python, task.model, task.frame, task="label"))
    places = {column: place for place, column in enumerate(task.frame)}

    def state(row: int) -> Stated:
        found = release.shortest(row, max_relevance_error=1 - LINE, k=K + 1)  # its intercept counts
        facts = [Held(places[name], rows_with(name, text, task.frame[name])) for name, text in found.facts]
        return Stated(facts, found.stays is not None and found.stays >= LINE, found.seconds)

    return state


def anchors(package: str) -> Callable[[Task, str, contextlib.ExitStack], Method]:
    """Return what starts the anchors of a package, which get medians instead of missing numbers.

    The models do the same, so that no answer changes. A missing category is a level of its own.
    """

    def start(task: Task, python: str, stack: contextlib.ExitStack) -> Method:
        table, levels = filled(task.codes), dict[int, int]()
        for place, (_, column) in enumerate(task.frame.items()):
            if column.dtype == "category":
                levels[place] = len(column.cat.categories) + 1
                table[table[:, place] < 0, place] = levels[place] - 1
        settings = {"k": K, "share": LINE, "seed": SEED}
        model = copy.deepcopy(task.model[1:])
        vars(model[-1]).pop("_feature_subsample_rng", None)  # NumPy 1 cannot read a generator of NumPy 2
        content = (model, table, levels, settings)
        child = stack.enter_context(Child(python, "benchmarks.anchors", content, package))

        def state(row: int) -> Stated:
            found = child.ask(row=row)
            facts = [
                Held(place, (low < table[:, place]) & (table[:, place] <= high))
                for place, low, high in found["box"]
            ]
            return Stated(facts, found["claims"], found["seconds"])

        return state

    return start


def audit(task: Task, decisions: np.ndarray, row: int, stated: Stated) -> Audited:
    """Audit a rule by altered copies, and count the rows of the table for which its facts are true."""
    with_facts = np.logical_and.reduce(
        [np.ones(len(decisions), dtype=bool), *(each.rows for each in stated.facts)]
    )
    return Audited(
        row=row,
        claims=stated.claims and len(stated.facts) <= K,
        n_facts=len(stated.facts),
        share=float(np.mean(_decisions(task, task.copies(donors(task, row, stated.facts))) == decisions[row])),
        coverage=float(np.mean(with_facts)),
        agreement=float(np.mean(decisions[with_facts] == decisions[row])) if with_facts.any() else math.nan,
        seconds=stated.seconds,
    )


def donors(task: Task, row: int, facts: Collection[Held]) -> np.ndarray:
    """Return the rows (groups, n) from which copies take values; all methods meet the same random numbers."""
    rng, n = np.random.default_rng([SEED, row]), len(task.codes)
    chosen = np.full((len(task.together), N_AUDIT), row)
    for each, group in zip(chosen, task.together, strict=True):
        drawn, uniform = rng.random(N_AUDIT) < REPLACE, rng.random(N_AUDIT)
        true = [fact.rows for fact in facts if fact.column in group]
        if true:
            pool = np.flatnonzero(np.logical_and.reduce(true))
            each[:] = pool[(uniform * len(pool)).astype(np.intp)]
        else:
            each[drawn] = (uniform[drawn] * n).astype(np.intp)
    return chosen


def _decisions(task: Task, codes: np.ndarray) -> np.ndarray:
    return np.asarray(task.model[1:].predict(codes))


def _figures(measured: Measured, name: str) -> dict[str, Any]:
    """Return the figures of a method, and those of ours on the rows where both pass the audit."""
    audited, beside = measured[name], measured["ours"]
    claimed = [each for each in audited if each.claims]
    passed = [each for each in audited if each.passes]
    both = [(mine, each) for mine, each in zip(beside, audited, strict=True) if mine.passes and each.passes]
    seconds = statistics.median(each.seconds for each in audited)
    return {
        "rows": len(audited),
        "claimed": len(claimed) / len(audited),
        "passed": len(passed) / len(audited),
        "audits_below_95": sum(each.fails for each in claimed),
        "lowest_audit": min((each.share for each in claimed), default=None),
        "mean_facts": _mean([each.n_facts for each in claimed]),
        "median_coverage": _median([each.coverage for each in passed]),
        "rows_agree": _mean([each.agreement for each in passed]),
        "both_pass": len(both),
        "our_median_coverage_there": _median([mine.coverage for mine, _ in both]),
        "its_median_coverage_there": _median([each.coverage for _, each in both]),
        "our_mean_coverage_there": _mean([mine.coverage for mine, _ in both]),
        "its_mean_coverage_there": _mean([each.coverage for _, each in both]),
        "median_seconds": seconds,
        "times_ours": seconds / statistics.median(each.seconds for each in beside),
    }


def missed(measured: Measured, name: str) -> str:
    """Return which bars are missed: those of audits for ours, those of comparisons for every other method."""
    figures, ours = _figures(measured, name), _figures(measured, "ours")
    if name == "ours":
        n_claimed = sum(each.claims for each in measured[name])
        bars = {
            "audits": figures["audits_below_95"] <= BELOW * n_claimed,
            "lowest": n_claimed == 0 or figures["lowest_audit"] >= LOWEST,
        }
    else:
        theirs = (figures["its_median_coverage_there"], figures["its_mean_coverage_there"])
        mine = (figures["our_median_coverage_there"], figures["our_mean_coverage_there"])
        larger = figures["both_pass"] == 0 or (mine[0] >= theirs[0] and mine[1] > theirs[1])
        bars = {"share": ours["passed"] > figures["passed"], "coverage": larger}
        if name == "alibi":
            bars["time"] = ours["median_seconds"] <= TIME * figures["median_seconds"]
    return ", ".join(bar for bar, is_met in bars.items() if not is_met) or "none"


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
