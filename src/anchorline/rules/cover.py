"""The fewest rules that cover many rows, chosen from the rows' own rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.facts import KINDS, Fact, true_of
from anchorline.result.rule import CoveringRule, Rule, Rules, RuleVerdict
from anchorline.search.assemble import VERSIONS

_WORK = 3_000_000  # rows looked at in the search for fewer rules: about two seconds, and constant


def cover(rules: Mapping[int, Rule], n_failed: int, agree: float | None = None) -> Rules:
    """Return the fewest of the rules of many rows, by their numbers, that cover as many rows as all of them.

    A rule covers the rows that have its facts and get its decision. It is a candidate if it holds as often as
    asked, and if at least the share ``agree`` of the rows with its facts get its decision; by default that is the
    share that the rule was asked to hold.
    """
    _check(rules, agree)
    numbers = list(rules)
    candidates, coverable = list(_candidates([*rules.values()], agree)), 0
    for each in candidates:
        coverable |= each.alike
    chosen, is_proven = fewest([each.alike for each in candidates])
    found = []
    for each in (candidates[place] for place in chosen):
        alike, otherwise = (tuple(numbers[i] for i in _members(bits)) for bits in (each.alike, each.otherwise))
        row = numbers[each.row]
        found.append(CoveringRule(rule=rules[row], row=row, alike=alike, otherwise=otherwise))
    return Rules(
        rules=tuple(found),
        n_rows=len(numbers),
        n_failed=n_failed,
        n_candidates=len(candidates),
        left_over=tuple(number for i, number in enumerate(numbers) if not coverable >> i & 1),
        status="proven" if is_proven else "found",
        settings={"agree": agree},
        versions=VERSIONS,
    )


def _check(rules: Mapping[int, Rule], agree: float | None) -> None:
    is_share = isinstance(agree, int | float) and not isinstance(agree, bool) and 0 <= agree <= 1
    if agree is not None and not is_share:
        raise ParameterError(f"agree is {agree!r}, but it must be a share from 0 to 1, or None. Type agree=0.9.")
    kinds = {rule.space["kind"] for rule in rules.values()} - {"table", "hypercube"}
    if kinds:
        raise ParameterError(
            f"The rules are about a {kinds.pop()}, whose words or regions are its own. Only rules about rows of a "
            "table can apply to other rows, too."
        )
    if len({(rule.space["fingerprint"], rule.output.kind) for rule in rules.values()}) > 1:
        raise ParameterError("The rules are about different tables or outputs. Pass the rows of one explainer.")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A rule by the place of its row; sets of places, as the bits of a number: alike, and decided differently."""

    row: int
    alike: int
    otherwise: int


class _Rows:
    """Rows in plain values, as their rules hold them; a fact is compared with all of them at once."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules, is_number = rules, rules[0].within is not None
        self.columns = {name: np.empty(len(rules), dtype=object) for name in rules[0].space["names"]}
        for column, values in zip(
            self.columns.values(), zip(*(rule.instance for rule in rules), strict=True), strict=True
        ):
            column[:] = values
        outputs = [rule.prediction if is_number else rule.output.decision for rule in rules]
        self.outputs = np.array(outputs, dtype=np.float64 if is_number else object)
        self.numbers: dict[tuple[str, bool], np.ndarray] = {}

    def have(self, place: int) -> np.ndarray:
        """Return of which rows the facts of the rule at a place are true, (n,)."""
        true = np.ones(len(self.rules), dtype=bool)
        for fact in self.rules[place].facts:
            true &= self._is_true(fact, place)
        return true

    def get(self, place: int) -> np.ndarray:
        """Return which rows get the decision of the rule at a place, or a number within its tolerance, (n,)."""
        within = self.rules[place].within
        if within is not None:
            return np.asarray(np.abs(self.outputs - self.outputs[place]) <= within)
        return np.asarray(self.outputs == self.outputs[place], dtype=bool)

    def _is_true(self, fact: Fact, place: int) -> np.ndarray:
        values = self.columns[fact.column]
        own, missing = values[place], np.array([value is None for value in values])
        is_date = isinstance(fact.high if fact.low is None else fact.low, str)
        if any(KINDS[fact.kind]):
            if (fact.column, is_date) not in self.numbers:
                self.numbers[fact.column, is_date] = np.array([_number(value, is_date) for value in values])
            values = self.numbers[fact.column, is_date]
        # A fact may name a level differently than the row does, and so its value is taken from the row.
        return true_of(fact, values, missing, own, lambda bound: _number(bound, is_date))


def _number(value: Any, is_date: bool) -> float:
    """Return a plain value as a number, NaN if it is missing; infinite numbers are texts in JSON."""
    if value is None:
        return float("nan")
    return float(np.datetime64(value, "us").astype(np.int64)) if is_date else float(value)


def _candidates(rules: Sequence[Rule], agree: float | None) -> Iterator[_Candidate]:
    """Yield the different rules that hold as often as asked, and that the rows agree with; the best first."""
    if not rules:
        return
    table, found = _Rows(rules), dict[tuple[int, int], tuple[Any, _Candidate]]()
    for place, rule in enumerate(rules):
        if rule.verdict not in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS):
            continue
        have, get = table.have(place), table.get(place)
        least = rule.settings["holds"] if agree is None else agree
        if (have & get).sum() < least * have.sum():
            continue
        each = _Candidate(place, _bits(have & get), _bits(have & ~get))
        key = -each.alike.bit_count(), len(rule.facts), each.otherwise.bit_count(), -rule.holds.low, place
        known = found.get((each.alike, each.otherwise))
        if known is None or key < known[0]:
            found[each.alike, each.otherwise] = key, each
    yield from (each for _, each in sorted(found.values(), key=lambda entry: entry[0]))


def _bits(is_in: np.ndarray) -> int:
    return int.from_bytes(np.packbits(is_in, bitorder="little").tobytes(), "little")


def _members(bits: int) -> list[int]:
    data = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little")).tolist()


def fewest(sets: Sequence[int], work: int = _WORK) -> tuple[list[int], bool]:
    r"""Return the fewest of some sets that cover as much as all of them, and whether that is proven.

    Sets are the bits of numbers. Greedy first, then branch and bound: some set must cover the element that the
    fewest sets cover, so try each of them. Elements of which no two are in one set bound how many sets are needed.
    The sets come in the order in which they cover most; of equal ones, the first is chosen. ``work`` limits the
    elements that are looked at.

    Examples
    --------
    >>> fewest([0b001111, 0b010101, 0b101010])  # greedy begins with the first, and needs three
    ([1, 2], True)
    """
    kept = list[int]()  # sets that no other contains
    for place in sorted(range(len(sets)), key=lambda i: (-sets[i].bit_count(), i)):
        if sets[place] and not any(sets[place] | sets[other] == sets[other] for other in kept):
            kept.append(place)
    everything = 0
    for place in kept:
        everything |= sets[place]
    elements = _Elements.of([sets[place] for place in kept], everything)
    best = _greedy(sets, kept, everything)
    stack: list[tuple[int, tuple[int, ...]]] = [(elements.all, ())]
    while stack:
        left, taken = stack.pop()
        if not left:
            best = [kept[i] for i in taken]  # fewer than before, by the bound
            continue
        work -= left.bit_count()
        if work < 0:
            return _by_gain(sets, best), False
        if len(taken) + elements.needed(left) >= len(best):
            continue
        rarest = next(e for e in range(len(elements.sets_of)) if left >> e & 1)
        options = sorted(elements.sets_of[rarest], key=lambda i: (elements.members[i] & left).bit_count())
        stack += [(left & ~elements.members[i], (*taken, i)) for i in options]  # the last is looked at first
    return _by_gain(sets, best), True


@dataclass(frozen=True, slots=True)
class _Elements:
    """What is to be covered: one element per different list of sets that contain it, the rarest first.

    ``sets_of`` are these lists, ``members`` the elements of each set, ``near`` those in a set with each element.
    """

    sets_of: list[tuple[int, ...]]
    members: list[int]
    near: list[int]

    @classmethod
    def of(cls, sets: Sequence[int], everything: int) -> "_Elements":
        lists: dict[int, list[int]] = {e: [] for e in _members(everything)}
        for i, each in enumerate(sets):
            for e in _members(each):
                lists[e].append(i)
        sets_of = sorted({tuple(places) for places in lists.values()}, key=lambda places: (len(places), places))
        members = [0] * len(sets)
        for e, places in enumerate(sets_of):
            for i in places:
                members[i] |= 1 << e
        near = [0] * len(sets_of)
        for e, places in enumerate(sets_of):
            for i in places:
                near[e] |= members[i]
        return cls(sets_of, members, near)

    @property
    def all(self) -> int:
        return (1 << len(self.sets_of)) - 1

    def needed(self, left: int) -> int:
        """Return how many sets are needed at least: elements are taken of which no two are in one set."""
        n = 0
        while left:
            e = (left & -left).bit_length() - 1
            left &= ~self.near[e]
            n += 1
        return n


def _greedy(sets: Sequence[int], kept: Sequence[int], left: int) -> list[int]:
    chosen = list[int]()
    while left:
        chosen.append(max(kept, key=lambda i: (sets[i] & left).bit_count()))
        left &= ~sets[chosen[-1]]
    return chosen


def _by_gain(sets: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """Return the chosen sets, each the one that adds most to those before it."""
    rest, ordered, covered = sorted(chosen), list[int](), 0
    while rest:
        ordered.append(max(rest, key=lambda i: (sets[i] & ~covered).bit_count()))
        rest.remove(ordered[-1])
        covered |= sets[ordered[-1]]
    return ordered
