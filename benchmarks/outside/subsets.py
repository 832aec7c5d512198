"""OKRidge and L0BnB in their own environment: answers requests of `solvers` about the samples in a file."""

import contextlib
import io
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np

from benchmarks.child import serve

RIDGE = 1e-7  # per row; both packages want some
CLOCK = types.SimpleNamespace(time=time.process_time)  # by which searches end, whatever else the machine does
GAP = 1e-4  # of their objectives, at which they stop: OKRidge's default


def answer(solver: str, samples: Any, place: int, size: int, seconds: float, **options: Any) -> dict[str, Any]:
    """Return the chosen columns, whether the package says that they are proven, and processor seconds."""
    flips, drops = samples[place]
    start = time.process_time()
    x, y = np.asarray(flips, dtype=float), np.asarray(drops, dtype=float)
    with contextlib.redirect_stdout(io.StringIO()):
        found, is_proven = SOLVERS[solver](x, y, size, seconds, **options)
    spent = time.process_time() - start
    return {"support": np.flatnonzero(found).tolist(), "proven": is_proven, "seconds": spent}


def _okridge(x: np.ndarray, y: np.ndarray, size: int, seconds: float) -> tuple[np.ndarray, bool]:
    from okridge import tree as module

    module.time = CLOCK
    tree = module.BNBTree(X=x, y=y, lambda2=RIDGE * len(y), max_memory_GB=2)
    _, beta, gap, _, _ = tree.solve(k=size, gap_tol=GAP, time_limit=seconds)
    return beta, bool(gap <= GAP)


def _l0bnb(
    x: np.ndarray, y: np.ndarray, size: int, seconds: float, price: float, guess: list[float]
) -> tuple[np.ndarray, bool]:
    from l0bnb import tree as module

    module.time = CLOCK
    # Its objective is half the sum of squares, plus a price per column and a ridge.
    first = np.array(guess)
    settings = {"l0": price * len(y) / 2, "l2": RIDGE * len(y), "m": 1.2 * np.abs(first).max(), "gap_tol": GAP}
    tree = module.BNBTree(x, y)
    found = tree.solve(**settings, warm_start=first, time_limit=seconds)
    return found.beta, bool(found.gap <= GAP) or _is_empty(tree)


def _is_empty(tree: Any) -> bool:
    """Whether a search ended because no node was left."""
    return bool(tree.bfs_queue.qsize() + tree.dfs_queue.qsize() == 0)


SOLVERS: dict[str, Callable[..., tuple[np.ndarray, bool]]] = {"OKRidge": _okridge, "L0BnB": _l0bnb}


def main(file: str, solver: str) -> None:
    """Answer requests for one of the packages; what is compiled at its first call is not timed."""

    def start() -> Callable[[dict[str, Any]], dict[str, Any]]:
        samples = joblib.load(file)
        flips, drops = samples[0]
        small = [(flips[:200, :12], drops[:200])]  # in which it searches a little
        price: dict[str, Any] = {"price": 1e-4, "guess": [0.5] + [0.0] * 11} if solver == "L0BnB" else {}
        answer(solver, small, 0, 3, 5.0, **price)
        return lambda request: answer(solver, samples, **request)

    serve(start)


if __name__ == "__main__":
    main(*sys.argv[1:])
