"""Makes a change smaller: drops facts that are not needed, and moves values towards the instance's own."""

import numpy as np

from anchorline.search.changes.questions import Questions

_ROUNDS = 4


def refine(questions: Questions, chosen: tuple[int, ...], max_values: int) -> tuple[int, ...]:
    """Return a change that turns, in which no fact can be dropped, and none moved closer among the values tried.

    The facts are moved one after another, until a round changes nothing or the limit of queries is reached.
    """
    current = _dropped(questions, chosen)
    for _ in range(_ROUNDS):
        before = current
        for at in range(len(current)):
            current = _moved(questions, current, at, max_values)
        if current == before:
            break
        current = _dropped(questions, current)
    return current


def _dropped(questions: Questions, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Return the change without the facts that it does not need."""
    while len(chosen) > 1 and questions.left >= len(chosen):
        shorter = [chosen[:i] + chosen[i + 1 :] for i in range(len(chosen))]
        reached = questions.ask(np.array(shorter, dtype=np.intp)).reached
        if not reached.any():
            break
        chosen = shorter[int(reached.argmax())]
    return chosen


def _moved(questions: Questions, chosen: tuple[int, ...], at: int, max_values: int) -> tuple[int, ...]:
    """Return the change with one fact at the nearest value that turns, among the values tried."""
    candidates, best = questions.candidates, chosen
    nearer = candidates.distinct(candidates.nearer(chosen[at]))
    while len(nearer):
        tried = candidates.spread(nearer, min(max_values, 64))[: max(0, questions.left)]
        if not len(tried):
            return best
        changed = np.tile(np.array(chosen, dtype=np.intp), (len(tried), 1))
        changed[:, at] = tried
        reached = questions.ask(changed).reached
        if not reached.any():
            nearer = nearer[:0] if len(tried) == len(nearer) else _after(nearer, int(tried[-1]))
            continue
        first = int(reached.argmax())
        best = (*chosen[:at], int(tried[first]), *chosen[at + 1 :])
        since = 0 if first == 0 else int(np.flatnonzero(nearer == tried[first - 1])[0]) + 1
        nearer = nearer[since : int(np.flatnonzero(nearer == tried[first])[0])]
    return best


def _after(candidates: np.ndarray, candidate: int) -> np.ndarray:
    """Return the candidates that come after one of them."""
    return candidates[int(np.flatnonzero(candidates == candidate)[0]) + 1 :]
