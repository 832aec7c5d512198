"""Queries of several rows in one model call, for models whose answers do not depend on the batch."""

import copy
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.explainer import Explainer

_TICK_SECONDS = 1.0  # Polars keeps Ctrl-C from a thread that waits without end


@dataclass(eq=False)
class _Question:
    inputs: Any
    n_rows: int
    answer: Any = None
    error: BaseException | None = None
    is_answered: bool = False


class SharedModel:
    """A model asked by several threads: once all of them wait, their inputs go to it together.

    At most ``width`` threads ask, each for at most 4,096 rows: so much is held in memory, and no more.
    Where a mixed call fails, every question is asked alone, so that only the row at fault fails.
    """

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask, self._turn = ask, threading.Condition()
        self._waiting: list[_Question] = []
        self._n_asking = 0
        self.n_calls = 0

    def enter(self) -> None:
        """One thread more will ask."""
        with self._turn:
            self._n_asking += 1

    def leave(self) -> None:
        """One thread less: those that wait need not wait for it."""
        with self._turn:
            self._n_asking -= 1
            self._answer_if_all_wait()

    def __call__(self, inputs: Any) -> Any:
        """The model's answer to these inputs, once all threads have asked."""
        question = _Question(inputs, len(inputs))
        with self._turn:
            self._waiting.append(question)
            self._answer_if_all_wait()
            while not question.is_answered:
                self._turn.wait()
        if question.error is not None:
            raise question.error
        return question.answer

    def _answer_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_asking:
            return
        questions, self._waiting = self._waiting, []
        try:
            self._answer(questions)
        finally:
            self._turn.notify_all()

    def _answer(self, questions: list[_Question]) -> None:
        try:
            self.n_calls += 1
            answers = np.asarray(self._ask(_together([question.inputs for question in questions])))
            ends = np.cumsum([question.n_rows for question in questions])
            if len(answers) != ends[-1]:
                raise ValueError(f"{len(answers)} answers to {ends[-1]} rows")
            for question, part in zip(questions, np.split(answers, ends[:-1]), strict=True):
                question.answer, question.is_answered = part, True
        except BaseException:  # also where a model tries to end the process: the others wait for an answer
            for question in questions:
                self._answer_alone(question)

    def _answer_alone(self, question: _Question) -> None:
        try:
            self.n_calls += 1
            answer = self._ask(question.inputs)
            # A model may write its next answer into the same memory.
            question.answer = answer.copy() if hasattr(answer, "copy") else answer
        except BaseException as error:
            question.error = error
        question.is_answered = True


def share_calls(
    explainer: Explainer, explain: Callable[[Explainer, Any], Any], rows: Sequence[Any], width: int
) -> list[Any]:
    """Explain rows, up to ``width`` at a time in threads that share their model calls; answers in order."""
    shared = SharedModel(explainer.target.ask)
    together = copy.copy(explainer)
    together.target = replace(explainer.target, ask=shared)
    results: list[Any] = [None] * len(rows)
    places = deque(range(len(rows)))
    lock = threading.Lock()
    n_threads = min(width, len(rows))

    def work() -> None:
        try:
            while True:
                with lock:
                    if not places:
                        return
                    place = places.popleft()
                results[place] = explain(together, rows[place])
        finally:
            shared.leave()

    for _ in range(n_threads):
        shared.enter()  # before any starts: the first would else be alone
    with ThreadPoolExecutor(max(1, n_threads)) as threads:
        try:
            working = [threads.submit(work) for _ in range(n_threads)]
            while wait(working, timeout=_TICK_SECONDS).not_done:
                pass
            for done in working:
                done.result()
        finally:
            with lock:
                places.clear()  # after an interrupt, what was not begun is not begun
    return results


def _together(parts: list[Any]) -> Any:
    """Model inputs of the same kind, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import narwhals as nw  # noqa: PLC0415  heavy

    joined = nw.concat([nw.from_native(part, eager_only=True) for part in parts], how="vertical").to_native()
    return joined.reset_index(drop=True) if hasattr(joined, "reset_index") else joined
