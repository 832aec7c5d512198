"""The search for changes, level by level: one fact, two facts, and so on, until enough changes turn."""

import math
from dataclasses import dataclass

import numpy as np

from anchorline.search.changes.combinations import MORE, Tried, count, try_combinations
from anchorline.search.changes.goal import Reply
from anchorline.search.changes.levels import Level
from anchorline.search.changes.questions import Questions
from anchorline.search.changes.refine import refine
from anchorline.search.changes.settings import ChangeSettings
from anchorline.search.changes.singles import Singles, try_singles, turning_singles

_SHARE = 0.6  # of the queries that are left, for the combinations of one level


@dataclass(frozen=True, slots=True)
class Search:
    """The changes that turn, fewest facts first and then cheapest first, and what was tried at every level.

    ``at_row`` is the reply to the instance itself.
    """

    found: tuple[tuple[int, ...], ...]
    levels: tuple[Level, ...]
    at_row: Reply


def search(questions: Questions, settings: ChangeSettings) -> Search:
    """Find changes of as few facts as possible, at most one per set of attributes, or per side of a single one.

    No change contains another one's attributes. The search stops after the level with which ``n`` are found.
    """
    singles = try_singles(questions, settings.max_values)
    found = turning_singles(questions, singles, settings.max_values)
    levels = [_first_level(questions, singles)]
    base = _base(questions, singles, found)
    before, turned = base, list[frozenset[int]]()
    for n_facts in range(2, settings.max_facts + 1):
        wanted = settings.n - len(found)
        if wanted <= 0 or not len(before.chosen):
            break
        n_sets = math.comb(len(np.unique(questions.candidates.owner[base.chosen[:, 0]])), n_facts)
        budget = int(_SHARE * questions.left) if not found else min(MORE, int(_SHARE * questions.left))
        before, turning, n_tried, n_grid = try_combinations(
            questions,
            base,
            before,
            turned,
            wanted=min(wanted, n_sets),
            budget=budget,
            prediction_margin=float(singles.at_row.margins[0]),
        )
        if not n_grid:
            break
        n_total = n_grid if singles.is_complete else _total(questions, base, n_facts)
        levels.append(Level(n_facts, n_tried, n_grid, max(n_grid, n_total)))
        chosen = _cheapest(questions, turning, wanted)
        turned += [frozenset(questions.candidates.owner[list(each)].tolist()) for each in chosen]
        found += [refine(questions, each, settings.max_values) for each in chosen]
    return Search(_ranked(questions, found, settings.n), tuple(levels), singles.at_row)


def _first_level(questions: Questions, singles: Singles) -> Level:
    return Level(1, len(singles.tried), len(singles.tried), singles.n_cells)


def _base(questions: Questions, singles: Singles, found: list[tuple[int, ...]]) -> Tried:
    """Return the values tried alone that did not turn, of attributes that never turn alone."""
    owner = questions.candidates.owner
    alone = owner[singles.tried[singles.reply.reached]]
    kept = ~np.isin(owner[singles.tried], np.append(alone, owner[[each[0] for each in found]]))
    return Tried(singles.tried[kept, None], singles.reply.margins[kept], is_complete=True)


def _total(questions: Questions, base: Tried, n_facts: int) -> int:
    """Return the number of combinations of all allowed values of the attributes that never turn alone."""
    candidates = questions.candidates
    attributes = np.unique(candidates.owner[base.chosen[:, 0]])
    sizes = [len(np.unique(candidates.cell[candidates.owner == a])) for a in attributes.tolist()]
    return count(np.array(sizes), n_facts)


def _cheapest(questions: Questions, turning: list[np.ndarray], wanted: int) -> list[tuple[int, ...]]:
    """Return the cheapest combination per set of attributes, at most ``wanted``."""
    if not turning:
        return []
    rows = np.array(turning)
    costs = questions.candidates.cost(rows)
    best: dict[bytes, tuple[int, ...]] = {}
    for i in np.argsort(costs, kind="stable").tolist():
        best.setdefault(questions.candidates.owner[rows[i]].tobytes(), tuple(rows[i].tolist()))
    return list(best.values())[:wanted]


def _ranked(questions: Questions, found: list[tuple[int, ...]], n: int) -> tuple[tuple[int, ...], ...]:
    """Return the changes, fewest facts first, then cheapest; without those that contain another one's facts."""
    candidates, distinct = questions.candidates, list(dict.fromkeys(tuple(sorted(each)) for each in found))
    width = max((len(each) for each in distinct), default=0)
    padded = np.full((len(distinct), width), -1, dtype=np.intp)
    for i, each in enumerate(distinct):
        padded[i, : len(each)] = each
    costs = candidates.cost(padded)
    order = sorted(range(len(distinct)), key=lambda i: (len(distinct[i]), costs[i], distinct[i]))
    kept: list[tuple[int, ...]] = []
    for i in order:
        attributes = {int(a) for a in candidates.owner[list(distinct[i])]}
        several = len(attributes) > 1
        if not (several and any({int(a) for a in candidates.owner[list(other)]} <= attributes for other in kept)):
            kept.append(distinct[i])
    return tuple(kept[:n])
