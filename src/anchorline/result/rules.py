"""The fewest rules that cover the decisions of many rows: every rule is the facts of one of their explanations."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline._links import call
from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate, estimate_share
from anchorline.guarantees.verdicts import among_neighbors
from anchorline.optimize.fewest import fewest_sets
from anchorline.result.explanation import Explanation
from anchorline.result.frames import frame_in

_MAX_CANDIDATES = 500  # those that cover most
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """If ``facts`` are true of a row, the decision is ``decision``.

    ``row`` is the row whose explanation states the facts, and ``stability`` the share of its neighbors in which
    its decision stays while they hold, measured on fresh neighbors; None if that was not measured. Of the rows,
    the facts are true of ``n_true``, and ``rows`` are those of them that have the decision.
    """

    facts: tuple[str, ...]
    decision: str
    row: int
    stability: Estimate | None
    n_true: int
    rows: tuple[int, ...]

    @property
    def agreement(self) -> float:
        """The share of the rows of which the facts are true that have the decision."""
        return len(self.rows) / self.n_true


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The fewest rules found that cover the wanted share of decisions, the one that covers most first.

    ``n_covered`` of ``n_rows`` decisions are covered by at least one rule, ``not_covered`` are the other rows.
    No set of as many of the ``n_candidates`` rules covers more than ``most_covered``, and all of them together
    cover ``coverable``. If ``is_fewest``, no smaller set covers the wanted ``share``. Candidates are the rules
    that cover most of each decision; ``n_left_out`` others were not looked at. The limits of all ``stability``
    hold together with probability ``confidence``.
    """

    rules: tuple[Rule, ...]
    n_rows: int
    n_covered: int
    most_covered: int
    coverable: int
    n_candidates: int
    n_left_out: int
    share: float
    is_fewest: bool
    not_covered: tuple[int, ...]
    confidence: float

    @property
    def is_reached(self) -> bool:
        """Whether the rules cover the wanted share of decisions."""
        return self.n_covered >= _wanted(self.share, self.n_rows)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame of the given backend: one row per rule."""
        limits = [rule.stability for rule in self.rules]
        columns: dict[str, list[Any]] = {
            "facts": [" and ".join(rule.facts) for rule in self.rules],
            "decision": [rule.decision for rule in self.rules],
            "covered": [len(rule.rows) for rule in self.rules],
            "agreement": [rule.agreement for rule in self.rules],
            "stability": [None if each is None else each.value for each in limits],
            "stability_low": [None if each is None else each.low for each in limits],
            "stability_high": [None if each is None else each.high for each in limits],
            "row": [rule.row for rule in self.rules],
        }
        return frame_in(backend, columns)

    def __str__(self) -> str:
        lines = [f"{self.headline} {self.proof}"]
        lines += ["covers  agree  stays            decision and facts"] if self.rules else []
        for rule in self.rules:
            stays = "" if rule.stability is None else f"{rule.stability.low:.1%} to {rule.stability.high:.1%}"
            facts = call("printable", f"{rule.decision}: {' and '.join(rule.facts)}")
            lines.append(f"{len(rule.rows):>6}  {_percent(rule.agreement):>5}  {stays:<16} {facts}")
        return "\n".join(lines)

    @property
    def headline(self) -> str:
        """How many decisions the rules cover, in words."""
        n, plural = len(self.rules), len(self.rules) != 1
        rules = f"{n} rule{'s' * plural} cover{'s' * (not plural)}"
        return (
            f"{rules} {self.n_covered:,} of {self.n_rows:,} decisions ({_percent(self.n_covered / self.n_rows)})."
        )

    @property
    def proof(self) -> str:
        """What is proven about the number of rules or about their cover, in words."""
        candidates, share = f"{self.n_candidates:,} candidate rule{'s' * (self.n_candidates != 1)}", self.share
        candidates += f", which leave out {self.n_left_out:,} that cover less," if self.n_left_out else ""
        if self.is_reached and self.is_fewest:
            return f"Proven: no smaller set of the {candidates} covers {100 * share:.10g}%."
        if self.is_reached:
            return "The search stopped early: a smaller set may do."
        if self.n_covered == self.coverable:
            return f"All {candidates} together cover no more."
        if self.coverable < _wanted(self.share, self.n_rows):
            return f"All {candidates} together cover {self.coverable:,}."
        if self.most_covered > self.n_covered:
            return f"The search stopped early: as many other rules may cover up to {self.most_covered:,}."
        return f"Proven: no set of as many of the {candidates} covers more; {100 * share:.10g}% needs more rules."


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Distinct rules: of which rows their facts are true, and which of these they cover, both (rows, rules).

    ``places`` are the explanations that state them, and ``n_left_out`` is the number of others that cover less.
    """

    places: list[int]
    true: np.ndarray
    covers: np.ndarray
    n_left_out: int


def find_rules(
    explained: Sequence[tuple[int, Explanation]],
    space: Any,
    *,
    share: float = 0.9,
    max_rules: int = 10,
    agreement: float = 0.95,
    confidence: float = 0.95,
) -> Rules:
    """Return the fewest rules that cover a share of the decisions of (row, explanation) pairs.

    See `Explanations.rules`. Every distinct fact is tested on every row, and the search has a limit.
    """
    _check(explained, share, max_rules, agreement, confidence)
    rows, entries = np.array([row for row, _ in explained]), [entry for _, entry in explained]
    candidates = _candidates(entries, space, agreement)
    answer = fewest_sets(candidates.covers, _wanted(share, len(rows)), max_rules)
    chosen = sorted(answer.chosen, key=lambda j: (-int(candidates.covers[:, j].sum()), j))
    risk = (1 - confidence) / max(1, len(chosen))
    rules = tuple(_rule(entries, rows, candidates, j, 1 - risk) for j in chosen)
    covered = candidates.covers[:, chosen].any(axis=1)
    stated = [entries[candidates.places[j]] for j in chosen]
    risks = [_risk(entry, rule) for entry, rule in zip(stated, rules, strict=True)]
    return Rules(
        rules=rules,
        n_rows=len(rows),
        n_covered=answer.n_covered,
        most_covered=answer.most_covered,
        coverable=int(candidates.covers.any(axis=1).sum()),
        n_candidates=len(candidates.places),
        n_left_out=candidates.n_left_out,
        share=share,
        is_fewest=answer.is_fewest,
        not_covered=tuple(rows[~covered].tolist()),
        confidence=max(0.0, 1 - sum(risks)),
    )


def _check(explained: Sequence[Any], share: float, max_rules: int, agreement: float, confidence: float) -> None:
    if not explained:
        raise ParameterError("No row has an explanation, but rules need at least one. Explain some rows first.")
    for name, value in (("share", share), ("agreement", agreement)):
        if not 0 < value <= 1:
            raise ParameterError(f"{name} is {value!r}, but it must be above 0 and at most 1. Type {name}=0.9.")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence is {confidence!r}, but it must be between 0 and 1. Type 0.95.")
    if max_rules < 1:
        raise ParameterError(f"max_rules is {max_rules!r}, but it must be at least 1. Type max_rules=10.")


def _wanted(share: float, n_rows: int) -> int:
    """Return how many decisions a share is at least."""
    return math.ceil(share * n_rows - _ROUNDING)


def _decision(explanation: Explanation) -> str:
    decided = explanation.certificate.decided
    if decided is None:
        raise ParameterError(
            f"The output {explanation.output!r} is a number, but rules are about decisions. Explain a class or "
            "labels, or pass threshold= to the explainer, so that the decision is on which side the number is."
        )
    return decided


def _candidates(entries: Sequence[Explanation], space: Any, agreement: float) -> _Candidates:
    """Return the facts of every explanation as a rule, if the decision agrees where they are true.

    A rule that covers no row that another one does not cover is left out, because it is never needed.
    """
    true = _true_facts(entries, space)
    decisions = np.array([_decision(entry) for entry in entries], dtype=object)
    first = {(decisions[i], tuple(sorted(_facts(entry)))): i for i, entry in reversed([*enumerate(entries)])}
    places = [i for (_, facts), i in sorted(first.items(), key=lambda item: item[1]) if facts]
    shape = (len(entries), len(places))
    holds = np.array([np.all([true[fact] for fact in _facts(entries[i])], axis=0) for i in places], dtype=bool)
    holds = holds.reshape(shape[::-1]).T
    covers = holds & (decisions[:, None] == decisions[places][None])
    agreeing = np.flatnonzero(covers.sum(axis=0) >= agreement * holds.sum(axis=0) - _ROUNDING)
    ordered = agreeing[np.argsort(-covers[:, agreeing].sum(axis=0), kind="stable")]
    kept = _first_of_each(ordered, [decisions[places[j]] for j in ordered.tolist()])
    counts = covers[:, kept].astype(np.float32)
    shared = counts.T @ counts
    earlier = np.tri(len(kept), k=-1, dtype=bool)  # those that cover more, or as much and come first
    needed = ~((shared == np.diagonal(shared)[:, None]) & earlier).any(axis=1)
    n_left_out, kept = len(agreeing) - len(kept), np.sort(kept[needed])
    return _Candidates([places[j] for j in kept.tolist()], holds[:, kept], covers[:, kept], n_left_out)


def _first_of_each(rules: np.ndarray, decisions: Sequence[str]) -> np.ndarray:
    """Return as many rules as are looked at, the first of each decision, so that none is left without rules."""
    most, seen, kept = max(1, _MAX_CANDIDATES // max(1, len({*decisions}))), Counter[str](), list[int]()
    for rule, decision in zip(rules.tolist(), decisions, strict=True):
        seen[decision] += 1
        kept += [rule] if seen[decision] <= most else []
    return np.array(kept, dtype=np.intp)


def _facts(explanation: Explanation) -> tuple[str, ...]:
    """Return the facts of an explanation, without bounds that the interval of the same attribute implies."""
    statements = {literal.name: literal.text for literal in reversed(explanation.single_literals)}
    literals = [term.literal for term in explanation.terms]
    whole = {literal.name for literal in literals if literal.text == statements.get(literal.name)}
    return tuple(
        literal.text
        for literal in literals
        if literal.name not in whole or literal.text == statements[literal.name]
    )


def _true_facts(entries: Sequence[Explanation], space: Any) -> dict[str, np.ndarray]:
    """Return, for every fact that some explanation states, of which rows it is true: (rows,)."""
    fingerprint = entries[0].parameters.get("space")
    if any(entry.parameters.get("space") != fingerprint for entry in entries) or space.fingerprint != fingerprint:
        raise ParameterError(
            "The explanations are not all of this space, so their facts cannot be tested on each other's rows. "
            "Pass the space of the explainer that made them: many.rules(space=explainer.space)."
        )
    around = [space.at(list(entry.instance)) for entry in entries]
    if not hasattr(around[0], "is_true_of"):
        raise ParameterError(
            f"Facts of a {type(space).__name__} are about one instance only, but rules need facts that can be "
            "true of several rows. Rules exist for tables and for vectors of -1 and +1."
        )
    true: dict[str, np.ndarray] = {}
    for own, entry in zip(around, entries, strict=True):
        for term in entry.terms:
            if term.literal.text not in true:
                true[term.literal.text] = np.array([_is_true(entry, term.index, own, other) for other in around])
    return true


def _is_true(entry: Explanation, literal: int, own: Any, other: Any) -> bool:
    """Return whether a literal of an explained row, or a pair of literals, is true of another row."""
    n_single = len(entry.single_literals)
    if literal < n_single:
        return bool(own.is_true_of(literal, other))
    first, second = (bool(own.is_true_of(j, other)) for j in entry.pairs[literal - n_single])
    return first == second if entry.parameters["pairs"] == "parity" else first and second


def _rule(
    entries: Sequence[Explanation], rows: np.ndarray, candidates: _Candidates, j: int, confidence: float
) -> Rule:
    place = candidates.places[j]
    entry = entries[place]
    return Rule(
        facts=_facts(entry),
        decision=_decision(entry),
        row=int(rows[place]),
        stability=_stability(entry, confidence),
        n_true=int(candidates.true[:, j].sum()),
        rows=tuple(rows[candidates.covers[:, j]].tolist()),
    )


def _stability(entry: Explanation, confidence: float) -> Estimate | None:
    """Return the share of neighbors in which the decision stays, with the confidence that one of several needs.

    Sampling that stopped when its result was clear keeps the limits that allow for this.
    """
    found = entry.certificate.stability
    if found is not None and found.method == "binomial" and not _stopped_by_looking(entry):
        found = estimate_share(round(found.value * found.n_samples), found.n_samples, confidence)
    return None if found is None else among_neighbors(found, entry.certificate.held_reach)


def _risk(entry: Explanation, rule: Rule) -> float:
    """Return the probability that the limits of a rule's stability do not hold, at most."""
    if rule.stability is None:
        return 0.0
    return 1 - (entry.certificate.confidence if _stopped_by_looking(entry) else rule.stability.confidence)


def _stopped_by_looking(entry: Explanation) -> bool:
    return bool(entry.parameters.get("n_samples") == "auto")


def _percent(share: float) -> str:
    """Return a share in percent, rounded down, so that only all is 100%."""
    return f"{math.floor(1000 * share + _ROUNDING) / 10:g}%"
