"""The paper's exact solver beside OKRidge and L0BnB, on samples of the paper's problems.

Both packages choose the best k columns of a least-squares problem, so the box and the variant without constant of
(P4) are left out. They need NumPy 1: this module solves our side and asks a process per package, which reads the
samples from a file. Supports are fitted again, so that all objectives are computed alike.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.paper import Evidence, Limits, Neighborhood, Problem, Solution, Status, solve_exact
from anchorline.paper.problem import Variant
from benchmarks.child import Child
from benchmarks.datasets import available
from benchmarks.outside.child import run
from benchmarks.tasks import load_benchmark

TABLES = (29, 42192, 43672, 44962, 42352, 46132)  # those whose networks are trained in seconds
SOLVERS = ("OKRidge", "L0BnB")
SIZES = (2, 4, 7)  # literals; with the constant, the paper's k = 3, 5 and 8
SECONDS = 10.0  # of the processor, after which a solver ends without a proof
SAME = 1e-6  # of the mean squared drop
CACHE = Path("build/outside/models")


class BestSubset(Problem):
    """The best sum of at most k - 1 literals and a free constant: plain best-subset selection."""

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The one variant."""
        return (Variant(self.k - 1, -np.inf, np.inf),)


def measure(data: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row per table, size and solver: how often it is as good, proves it, and its time over ours."""
    n_samples, n_instances = (1000, 1) if quick else (5000, 2)
    ids = [row.id for row in available(data) if row.id in TABLES]
    for dataset_id in ids[:2] if quick else ids:
        benchmark = load_benchmark(data, dataset_id, cache=CACHE)
        samples = []
        for x in benchmark.instances[:n_instances]:
            around = Neighborhood(benchmark.predict, x, 1.0, 0)
            sample = around.sample(n_samples)
            samples.append((sample.flips.astype(bool), sample.drops, around.prediction))
        content = [(flips, drops) for flips, drops, _ in samples]
        with contextlib.ExitStack() as stack:
            children = {}
            for solver in SOLVERS:
                child = Child(os.environ["ANCHORLINE_OUTSIDE"], "benchmarks.outside.subsets", content, solver)
                children[solver] = stack.enter_context(child)
            for size in SIZES:
                answers = [_answers(children, place, *each, size) for place, each in enumerate(samples)]
                for solver in ("anchorline", *SOLVERS):
                    found = [each[solver] for each in answers if solver in each]
                    if found:
                        row = {"table": benchmark.name, "literals": benchmark.dimension, "chosen": size}
                        yield row | {"solver": solver, "problems": len(found)} | _summary(found)


def _answers(
    children: dict[str, Child], place: int, flips: np.ndarray, drops: np.ndarray, prediction: float, size: int
) -> dict[str, dict[str, Any]]:
    start = time.process_time()
    evidence = Evidence.from_sample(flips, drops)
    best = _solved(evidence, prediction, size)
    ours = time.process_time() - start
    found = {"anchorline": {"excess": 0.0, "proven": best.status is Status.OPTIMAL, "seconds": ours, "ratio": 1.0}}
    for solver, settings in (("OKRidge", {}), ("L0BnB", _penalty(evidence, prediction, size, best))):
        if settings is None:
            continue
        answer = children[solver].ask(place=place, size=size, seconds=SECONDS, **settings)
        support, seconds = np.array(answer["support"], dtype=int), answer["seconds"]
        problem = BestSubset(evidence, max(size, len(support)) + 1, prediction, box=None)
        excess = problem.objective(problem.fit(support)[0]) - best.objective
        excess += settings.get("price", 0.0) * (len(support) - size)
        found[solver] = {"excess": excess / evidence.drop_square, "proven": answer["proven"]}
        found[solver] |= {"seconds": seconds, "ratio": seconds / ours}
    return found


def _solved(evidence: Evidence, prediction: float, size: int) -> Solution:
    return solve_exact(BestSubset(evidence, size + 1, prediction, box=None), Limits(time_limit=SECONDS))


def _penalty(evidence: Evidence, prediction: float, size: int, best: Solution) -> dict[str, Any] | None:
    """Return the price per literal at which the best sum of all sizes has this size; None if there is none.

    L0BnB also gets our sum as its first guess, so that it only has to prove it or to find a better one.
    """
    values = [evidence.drop_square] + [_solved(evidence, prediction, s).objective for s in range(1, size + 3)]
    low = max((values[size] - values[s]) / (s - size) for s in range(size + 1, len(values)))
    high = min((values[s] - values[size]) / (size - s) for s in range(size))
    if high <= low * (1 + 1e-6):
        return None
    return {"price": (low + high) / 2, "guess": best.contributions.tolist()}


def _summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "same": sum(abs(each["excess"]) <= SAME for each in found),
        "better": sum(each["excess"] < -SAME for each in found),
        "proven": sum(bool(each["proven"]) for each in found),
        "largest_excess": max(each["excess"] for each in found),
        "median_seconds": float(np.median([each["seconds"] for each in found])),
        "median_times_ours": float(np.median([each["ratio"] for each in found])),
    }


if __name__ == "__main__":
    run(measure)
