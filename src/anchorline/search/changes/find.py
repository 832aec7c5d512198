"""The search for changes, level by level: one fact, two facts, and so on, until enough changes turn."""

import math
from dataclasses import dataclass

import numpy as np

from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.combinations import MORE, Tried, count, try_combinations
from anchorline.search.changes.goal import Reply
from anchorline.search.changes.leaf_search import LeafSearch
from anchorline.search.changes.leaves import LeafAnswers
from anchorline.search.changes.levels import Level
from anchorline.search.changes.questions import Questions
from anchorline.search.changes.refine import refine
from anchorline.search.changes.rows import search_rows
from anchorline.search.changes.settings import MAX_FACTS, ChangeSettings
from anchorline.search.changes.singles import Singles, try_singles, turning_singles

_ORDERED = 256  # changes whose nearness to training rows is compared
_SHARE = 0.6  # of the queries that are left, for the combinations of one level


@dataclass(frozen=True, slots=True)
class Search:
    """The changes that turn, fewest facts first and then cheapest first, and what was tried at every level.

    ``at_row`` is the reply to the instance itself.
    """

    found: tuple[tuple[int, ...], ...]
    levels: tuple[Level, ...]
    at_row: Reply


def search(questions: Questions, settings: ChangeSettings, leaves: LeafAnswers | None = None) -> Search:
    """Find changes of as few facts as possible, to any training values, or to whole training rows.

    With ``leaves``, the trees of the model decide, and the model is asked only where they leave it open.
    """
    if settings.examples == "rows":
        rows, levels, at_row = search_rows(questions, settings)
        return Search(tuple(rows), levels, at_row)
    if leaves is not None:
        return _search_leaves(LeafSearch(questions, leaves), settings)
    return _search_values(questions, settings)


def _search_leaves(by_leaves: LeafSearch, settings: ChangeSettings) -> Search:
    """Find changes to any training values by the leaves of trees, at most one per set of attributes."""
    questions, candidates = by_leaves.questions, by_leaves.candidates
    at_row, _ = questions.ask_with_instance(np.zeros((0, 1), dtype=np.intp))
    found, level = by_leaves.singles()
    levels = [level]
    rest = sorted({*candidates.attributes.tolist()} - {int(candidates.owner[each[0]]) for each in found})
    for n_facts in range(2, min(settings.max_facts or MAX_FACTS, len(rest)) + 1):
        if len(_ranked(questions, found, settings.n)) >= settings.n:
            break
        known = [frozenset(candidates.owner[list(each)].tolist()) for each in found]
        more, level = by_leaves.several(rest, n_facts, known)
        levels.append(level)
        found += more
    return Search(_ranked(questions, found, settings.n), tuple(levels), at_row)


def _search_values(questions: Questions, settings: ChangeSettings) -> Search:
    """Find changes to any training values, at most one per set of attributes, or per side of a single one.

    No change contains another one's attributes. The search stops after the level with which ``n`` are found.
    """
    singles = try_singles(questions, settings.n, settings.max_values)
    found = turning_singles(questions, singles, settings.n)
    levels = [Level(1, len(questions.alone), len(questions.alone), singles.n_cells)]
    base = _base(questions, singles, found)
    before, turned = base, list[frozenset[int]]()
    for n_facts in range(2, (settings.max_facts or MAX_FACTS) + 1):
        wanted = settings.n - len(_ranked(questions, found, settings.n))
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
        found += [refine(questions, each) for each in chosen]
    return Search(_ranked(questions, found, settings.n), tuple(levels), singles.at_row)


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
    candidates, rows = questions.candidates, np.array(turning)
    cheapest = rows[np.argsort(candidates.cost(rows), kind="stable")].tolist()
    if candidates.is_realistic:
        cheapest = candidates.order([tuple(row) for row in cheapest[:_ORDERED]])
    best: dict[bytes, tuple[int, ...]] = {}
    for row in cheapest:
        best.setdefault(candidates.owner[list(row)].tobytes(), tuple(row))
    return list(best.values())[:wanted]


def _ranked(questions: Questions, found: list[tuple[int, ...]], n: int) -> tuple[tuple[int, ...], ...]:
    """Return the changes, fewest facts first, then cheapest; none contains another one's facts."""
    candidates, kept = questions.candidates, list[tuple[int, ...]]()
    for each in candidates.order(list({tuple(sorted(each)) for each in found})):
        attributes = frozenset(candidates.owner[list(each)].tolist())
        if not any(_covers(candidates, other, each, attributes) for other in kept):
            kept.append(each)
    return tuple(kept[:n])


def _covers(
    candidates: Candidates, other: tuple[int, ...], each: tuple[int, ...], attributes: frozenset[int]
) -> bool:
    """Return whether a change is like another one that comes before it: of the same side, or with more facts."""
    if len(each) == len(other) == 1:
        return bool(
            candidates.owner[each[0]] == candidates.owner[other[0]]
            and candidates.sides[each[0]] == candidates.sides[other[0]]
        )
    return frozenset(candidates.owner[list(other)].tolist()) <= attributes
