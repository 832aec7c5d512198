"""Queries of several rows in one model call, for models whose answers do not depend on the batch."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from anchorline.explainer import Explainer

_TICK_SECONDS = 1.0  # with Polars loaded, Ctrl-C does not reach a thread that waits without a timeout


class SharedModel:
    """A model that several threads query: once all of them wait, their inputs go to the model in one call.

    At most ``width`` threads query, each with at most 4,096 rows, which limits the memory. If a shared call
    fails, each query is sent separately, so that only the row at fault fails.
    """

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask, self._lock, self._n_threads = ask, threading.Lock(), 0
        self._waiting = list[tuple[Any, Future[Any]]]()

    def enter(self, n_threads: int) -> None:
        """Register threads that will query."""
        self._n_threads += n_threads

    def leave(self) -> None:
        """Unregister one thread, so that the waiting threads stop waiting for it."""
        with self._lock:
            self._n_threads -= 1
            self._answer_if_all_wait()

    def __call__(self, inputs: Any) -> Any:
        """Return the model's answer to these inputs, after every registered thread has sent its query."""
        answer = Future[Any]()
        with self._lock:
            self._waiting.append((inputs, answer))
            self._answer_if_all_wait()
        return answer.result()

    def _answer_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_threads:
            return
        queries, self._waiting = self._waiting, []
        try:
            parts = self._parts([inputs for inputs, _ in queries])
        except BaseException:  # even if the model tries to end the process, the other threads need an answer
            for inputs, answer in queries:
                try:
                    own = self._ask(inputs)
                    # The model may write its next answer into the same memory.
                    answer.set_result(own.copy() if hasattr(own, "copy") else own)
                except BaseException as error:
                    answer.set_exception(error)
            return
        for (_, answer), part in zip(queries, parts, strict=True):
            answer.set_result(part)

    def _parts(self, inputs: list[Any]) -> list[np.ndarray]:
        """Return the answers to each of the inputs, which are asked together."""
        answers, ends = np.asarray(self._ask(_concatenate(inputs))), np.cumsum([len(each) for each in inputs])
        if len(answers) != ends[-1]:
            raise ValueError(f"{len(answers)} answers to {ends[-1]} rows")
        return np.split(answers, ends[:-1])


def share_calls(
    explainer: Explainer, explain: Callable[[Explainer, Any], Any], rows: Sequence[Any], width: int
) -> list[Any]:
    """Explain rows in up to ``width`` threads that share their model calls; return the answers in order."""
    sharing_explainer = explainer.asking_through(SharedModel)
    shared = sharing_explainer.target.ask
    assert isinstance(shared, SharedModel)
    results: list[Any] = [None] * len(rows)
    places = iter(range(len(rows)))  # of which a thread takes the next one, in one step
    n_threads = min(width, len(rows))

    def work() -> None:
        try:
            for place in places:
                results[place] = explain(sharing_explainer, rows[place])
        finally:
            shared.leave()

    shared.enter(n_threads)  # all before any starts, or the first thread would not wait for the others
    with ThreadPoolExecutor(max(1, n_threads)) as threads:
        try:
            futures = [threads.submit(work) for _ in range(n_threads)]
            while wait(futures, timeout=_TICK_SECONDS).not_done:
                pass
            for future in futures:
                future.result()
        finally:
            deque(places, maxlen=0)  # after an interrupt, the threads do not start another row
    return results


def _concatenate(parts: list[Any]) -> Any:
    """Concatenate model inputs of the same kind."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if isinstance(parts[0], list):
        return [row for part in parts for row in part]
    import narwhals as nw  # noqa: PLC0415  heavy

    joined = nw.concat([nw.from_native(part, eager_only=True) for part in parts], how="vertical").to_native()
    return joined.reset_index(drop=True) if hasattr(joined, "reset_index") else joined
