"""Makes a change smaller: drops facts that are not needed, and moves values towards the instance's own."""

import numpy as np

from anchorline.search.changes.questions import Questions
from anchorline.search.changes.singles import FEW

_ROUNDS = 2


def refine(questions: Questions, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Return a change that turns, with facts dropped that are not needed, and values moved towards the instance's.

    The facts are moved one after another, in at most two rounds. In the end, no fact can be dropped. Among
    realistic neighbors, no value is moved, because values that go together may be far from the instance's.
    """
    current = chosen
    for _ in range(0 if questions.candidates.is_realistic else _ROUNDS):
        before = current
        for candidate in before:
            current = _moved(questions, current, candidate)
        if current == before:
            return current
    return _dropped(questions, current)


def _dropped(questions: Questions, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Return the change without the facts that it does not need."""
    while len(chosen) > 1 and questions.left >= len(chosen):
        shorter = [chosen[:i] + chosen[i + 1 :] for i in range(len(chosen))]
        reached = questions.ask(np.array(shorter, dtype=np.intp)).reached
        if not reached.any():
            break
        chosen = shorter[int(reached.argmax())]
    return chosen


def _moved(questions: Questions, chosen: tuple[int, ...], candidate: int) -> tuple[int, ...]:
    """Return the change with one fact dropped, or at the nearest value that turns among the values tried."""
    if candidate not in chosen:
        return chosen
    at, candidates, best = chosen.index(candidate), questions.candidates, candidate
    alone = len(chosen) == 1
    nearer = np.append(-1, candidates.distinct(candidates.nearer(candidate)))[int(alone) :]  # -1 drops the fact
    while len(nearer):
        kept = candidates.spread(nearer[nearer >= 0], FEW if len(nearer) > 2 * FEW else len(nearer))
        tried = np.append(nearer[nearer < 0], kept)[: max(0, questions.left)]
        if not len(tried):
            break
        changed = np.tile(np.array(chosen, dtype=np.intp), (len(tried), 1))
        changed[:, at] = tried
        reached = questions.ask(changed).reached
        if not reached.any():
            last = int(np.flatnonzero(nearer == tried[-1])[0])
            nearer = nearer[last + 1 :] if len(tried) < len(nearer) else nearer[:0]
            continue
        first = int(reached.argmax())
        best = int(tried[first])
        since = 0 if first == 0 else int(np.flatnonzero(nearer == tried[first - 1])[0]) + 1
        nearer = nearer[since : int(np.flatnonzero(nearer == best)[0])]
    return tuple(best if each == candidate else each for each in chosen if each != candidate or best >= 0)
