"""Profiles of the tasks in docs/speed.md that miss their aim: how the time of each is spread over named parts.

A part is a few functions of anchorline. While one of them runs, the time is the part's, except that of other parts
that it calls. What no part holds is "the rest".
"""

import functools
import importlib
import inspect
import itertools
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from anchorline.batch.local import _Dispatcher
from anchorline.explainer import Explainer
from anchorline.search.investigate import gather
from anchorline.settings import Settings
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from benchmarks.speed import Row, credit_pipeline, million_rows, small_tasks
from benchmarks.tasks import load_benchmark, load_tanh

Functions = Mapping[str, Sequence[str]]  # parts, each with its functions, as "module:name" below anchorline

_EXPLAIN: Functions = {
    "settings, parameters and result": (
        "settings:Settings.from_keywords",
        "search.case:Case.open",
        "result.assemble:assemble",
    ),
    "reading the row": (
        "spaces.hypercube:Hypercube.at",
        "spaces.table:Table.at",
        "spaces.table:TableNeighborhood.literals",
        "search.case:Case.law",
    ),
    "drawing": ("search.sampling:DrawnFlips.rows", "search.sampling:ConditionalFlips.rows"),
    "making neighbors": (
        "spaces.hypercube:HypercubeNeighborhood.realize",
        "spaces.table:TableNeighborhood.realize",
    ),
    "checking answers": ("model.predictor:Predictor.open", "model.predictor:Predictor.answer"),
    "summing flips and drops": (
        "optimize.evidence:Evidence.from_sample",
        "optimize.evidence:Evidence.mapped",
        "optimize.wide:WideEvidence.from_sample",
    ),
    "counting pairs": (
        "optimize.evidence:_sums",
        "optimize.wide:PairCounts.of",
        "optimize.wide:PairCounts.complete",
        "optimize.wide:PairCounts.counted",
    ),
    "correlations of all pairs": ("optimize.bounds:Centered.row_max",),
    "test of effects": ("search.investigate:with_effect",),
    "guess": ("optimize.exact:roots_of",),
    "proof": ("optimize:solve",),
    "certificate": ("search.assess:assess",),
}
_PROOF: Functions = {
    "guess": ("optimize.exact:roots_of",),
    "projections": ("optimize.bounds:project",),
    "correlations": ("optimize.bounds:exact_rho", "optimize.bounds:cheap_rho", "optimize.bounds:Centered.row_max"),
    "bounds": ("optimize.bounds:climb",),
    "nodes": ("optimize.exact:_expand",),
}
_COVERAGE: Functions = {
    "products of rows": ("optimize.coverage:CoverageProblem.product",),
    "copies of rows": ("optimize.coverage:_rows_with", "optimize.coverage:CoverageProblem.table"),
    "bounds": ("optimize.coverage_bounds:bound_children", "optimize.coverage_bounds:bound_members"),
    "pairs at the end": ("optimize.coverage:_finish", "optimize.coverage:_finish_three"),
    "guess": ("optimize.coverage:_first_guess",),
    "nodes": ("optimize.coverage:_Search.visit",),
}
_TABLE: Functions = {
    "copy": ("spaces.snapshot:snapshot",),
    "reading columns": ("spaces.columns:read_columns",),
    "order of the rows": ("spaces.order:canonical_order",),
    "edges of intervals": ("spaces.encoding:build_intervals",),
    "levels of texts": ("spaces.encoding:build_levels",),
    "codes, and rows by code": ("spaces.attributes:build_attribute",),
    "reordering columns": ("spaces.natives:ColumnNatives.pick",),
    "readings in order": ("spaces.training:read_training_table",),
}
_PROCESSES: Functions = {
    "packing the model": ("batch.partition:pack_work",),
    "until both processes are ready": ("batch.local:_Dispatcher._learn_ranges",),
    "waiting for rows": ("batch.local:_Dispatcher._result",),
    "ending the processes": ("batch.workers:WorkerPool.close",),
}


class Parts:
    """Measures the time of named parts, and counts the calls of their functions."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock, self._stack, self._since = clock, ["the rest"], 0.0
        self.seconds, self.calls = defaultdict[str, float](float), Counter[str]()

    def _change(self) -> None:
        now = self._clock()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return the function, whose time is the part's."""

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            self._change()
            self._stack.append(part)
            self.calls[part] += 1
            try:
                return function(*arguments, **keywords)
            finally:
                self._change()
                self._stack.pop()

        return call

    @contextmanager
    def measuring(self, functions: Functions) -> Iterator[None]:
        """Measure what happens inside: the named functions are replaced meanwhile, wherever they are known."""
        replaced = []
        for part, paths in functions.items():
            for owner, name, old in [place for path in paths for place in _places(path)]:
                setattr(owner, name, self._wrapped(old, part, owner, name))
                replaced.append((owner, name, old))
        self._since = self._clock()
        try:
            yield
        finally:
            self._change()
            for owner, name, old in replaced:
                setattr(owner, name, old)

    def _wrapped(self, old: Any, part: str, owner: Any, name: str) -> Any:
        if isinstance(old, classmethod):
            return classmethod(self.timed(old.__func__, part))
        if isinstance(old, functools.cached_property):
            new = functools.cached_property(self.timed(old.func, part))
            new.__set_name__(owner, name)
            return new
        return self.timed(old, part)

    @property
    def total(self) -> float:
        """The time of all parts, in seconds."""
        return sum(self.seconds.values())

    def rows(self, task: str, n: int = 1) -> Iterator[Row]:
        """Yield a row per part of one of ``n`` tasks, the longest first."""
        for part, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            calls = self.calls[part] / n if part in self.calls else None
            yield _row(task, part, calls, seconds / n, self.total / n)


def _row(task: str, part: str, calls: float | None, seconds: float, total: float) -> Row:
    milliseconds = {"milliseconds": 1000 * seconds, "share": seconds / total}
    return {"task": task, "part": part, "calls": calls, **milliseconds}


def _places(path: str) -> list[tuple[Any, str, Any]]:
    """Return where a function is known: (module or class, name, the function or its descriptor)."""
    module_name, _, names = path.partition(":")
    owner: Any = importlib.import_module(f"anchorline.{module_name}")
    *classes, name = names.split(".")
    for each in classes:
        owner = getattr(owner, each)
    found = inspect.getattr_static(owner, name)
    if classes:
        return [(owner, name, found)]
    modules = [module for key, module in sys.modules.items() if key.startswith("anchorline")]
    return [(module, key, found) for module in modules for key, value in vars(module).items() if value is found]


def _explained(
    task: str, model: Callable[..., Any], space: Any, rows: Any, make: Mapping[str, Any], **settings: Any
) -> Iterator[Row]:
    """Yield the parts of an explanation, as a mean over rows; the first row only warms up."""
    parts = Parts()
    explainer = Explainer(parts.timed(model, "the model"), space, **make)
    explainer.explain(rows[0], **settings)
    parts.calls.clear()
    parts.seconds.clear()
    with parts.measuring(_EXPLAIN):
        for row in rows[1:]:
            explainer.explain(row, **settings)
    yield from parts.rows(task, len(rows) - 1)


def beside_kernel_shap(dimensions: Sequence[int] = (17, 190, 1652), n: int = 5) -> Iterator[Row]:
    """Yield the parts of explanations with as many queries as KernelSHAP asks."""
    for d in dimensions:
        benchmark, settings = load_tanh(dimension=d), {"n_samples": 4980, "sampling": "draw", "n_certify": 0}
        rows = benchmark.instances[: n + 1]
        yield from _explained(f"4,981 queries, d = {d}", benchmark.predict, Hypercube(), rows, {}, **settings)


def of_pipelines(n_rows: int = 7) -> Iterator[Row]:
    """Yield the parts of explanations of pipelines."""
    for name in ("boosting", "forest", "logistic regression"):
        frame, model = credit_pipeline(name)
        make = {"classes": model.classes_}
        rows = range(n_rows + 1)
        yield from _explained(name, model.predict_proba, Table(frame), rows, make, sampling="draw")


def of_small_rows(n_rows: int = 200) -> Iterator[Row]:
    """Yield the parts of a row with a trivial model and 32 samples."""
    for where, model, space, rows in small_tasks(n_rows + 1):
        settings = {"k": 3, "n_samples": 32, "n_certify": 0}
        yield from _explained(f"32 samples, {where}", model, space, rows, {"output_range": (-1, 1)}, **settings)


def of_a_large_table() -> Iterator[Row]:
    """Yield the parts of building a table of a million rows, after a small one, which loads what is needed."""
    frame, parts = million_rows(), Parts()
    Table(frame[:1000])
    with parts.measuring(_TABLE):
        Table(frame)
    yield from parts.rows("table of 10^6 rows")


def of_two_processes(n_rows: int = 200) -> Iterator[Row]:
    """Yield the wall-clock parts of two processes, and how long a row takes in them and in one process."""
    frame, model = credit_pipeline("logistic regression")
    rows, inside, task = frame[:n_rows], list[float](), f"{n_rows} rows, n_jobs=2"
    Explainer(model, Table(frame)).explain_many(rows[:2])
    start = time.perf_counter()
    Explainer(model, Table(frame)).explain_many(rows)
    alone, parts = time.perf_counter() - start, Parts(time.perf_counter)
    adapt = _Dispatcher._adapt_size

    def noting(dispatcher: _Dispatcher, seconds: float) -> None:
        inside.append(seconds)
        adapt(dispatcher, seconds)

    with mock.patch.object(_Dispatcher, "_adapt_size", noting), parts.measuring(_PROCESSES):
        Explainer(model, Table(frame)).explain_many(rows, n_jobs=2)
    yield from parts.rows(task)
    yield _row(task, "of which a row in its process", n_rows, statistics.median(inside), parts.total)
    yield _row(f"{n_rows} rows, n_jobs=1", "a row", n_rows, alone / n_rows, alone)


def of_large_k(n: int = 2, time_limit: float = 10.0) -> Iterator[Row]:
    """Yield the parts of proofs of 8 terms among 1,652 literals, which a limit of time ends."""
    benchmark = load_tanh()
    explainer = Explainer(benchmark.predict, Hypercube())
    for m in (1000, 5000):
        parts = Parts()
        with parts.measuring(_PROOF):
            for instance in benchmark.instances[:n]:
                settings: dict[str, Any] = {"k": 8, "sigma": 2.0, "n_samples": m, "sampling": "draw"}
                settings |= {"n_certify": 0, "keep_noise": True, "time_limit": time_limit, "node_limit": None}
                explainer.explain(instance, **settings)
        yield from parts.rows(f"k = 8, d = 1652, sigma = 2, m = {m}", n)


def correlations() -> Iterator[Row]:
    """Yield by how much bounds exceed gains, because literals correlate by chance on a sample."""
    benchmark = load_tanh()
    explainer = Explainer(benchmark.predict, Hypercube())
    for m in (1000, 5000, 20_000):
        settings = Settings.from_keywords(k=8, sigma=2.0, n_samples=m, sampling="draw", n_certify=0)
        case = explainer.prepare(benchmark.instances[0], settings)
        evidence, _ = gather(case, case.stream("search", m))
        every, means = np.arange(benchmark.dimension), evidence.flip_means
        covariance = evidence.second_moments[every[:, None], every] - np.outer(means, means)
        deviations = np.sqrt(np.diagonal(covariance))
        sizes = np.abs(covariance / np.outer(deviations, deviations))
        np.fill_diagonal(sizes, 0.0)
        sums = np.sort(sizes, axis=1)[:, -7:].sum(axis=1)
        yield {
            "m": m,
            "median of the largest correlation of a literal": float(np.median(sizes.max(axis=1))),
            "median sum of its 7 largest": float(np.median(sums)),
            "bound over gain": float(np.median(1 / (1 - sums))) if (sums < 1).all() else None,
        }


def of_direct_relevance(data: Path, cache: Path, n: int = 2) -> Iterator[Row]:
    """Yield the parts of direct relevance, with its own limit of nodes, and of a complete search."""
    tasks: tuple[tuple[int, int, dict[str, Any]], ...] = (
        (44962, 40, {}),
        (42352, 69, {}),
        (42352, 69, {"node_limit": None}),
        (46132, 188, {}),
    )
    for id, d, more in tasks:
        benchmark, parts = load_benchmark(data, id, cache=cache), Parts()
        explainer = Explainer(benchmark.predict, Hypercube())
        with parts.measuring(_COVERAGE):
            for instance in benchmark.instances[:n]:
                explainer.explain(instance, objective="relevance", sampling="draw", n_certify=0, **more)
        yield from parts.rows(f"relevance, d = {d}{', no limit' if more else ''}", n)


def sections(data: Path, cache: Path) -> dict[str, Callable[[], Iterator[Row]]]:
    """Return, by name, a function per section."""
    quick = (beside_kernel_shap, of_pipelines, of_small_rows, of_a_large_table, of_two_processes)
    return {
        "speed_profiles": lambda: itertools.chain.from_iterable(part() for part in quick),
        "speed_proofs": lambda: itertools.chain(of_large_k(), of_direct_relevance(data, cache)),
        "speed_correlations": correlations,
    }
