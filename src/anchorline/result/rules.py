"""The fewest rules that cover many rows: each is the rule of one of them; figures only."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from anchorline.result.frames import frame_in
from anchorline.result.json_format import Record
from anchorline.result.rule import Rule, RuleVerdict

_COLUMNS = {
    "facts": "text",
    "decision": "text",
    "alike": "place",
    "otherwise": "place",
    "holds_low": "number",
    "coverage": "number",
    "verdict": "text",
    "row": "place",
}


@dataclass(frozen=True, slots=True)
class CoveringRule:
    """The rule of one row, and which of the other rows meet it.

    ``row`` is the number of the row whose rule it is. ``alike`` are those of the rows that have its facts and get
    its decision (of numbers: a value within its tolerance), ``otherwise`` those of rows that have its facts and
    get another one. The rule was certified for altered copies of ``row``; nothing was certified for other rows.
    """

    rule: Rule
    row: int
    alike: tuple[int, ...]
    otherwise: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules(Record):
    """The fewest rules found that cover many rows, the one that covers most first; see `Explanations.rules`.

    ``n_rows`` rows were given, and ``n_failed`` more that have no rule because they failed. ``left_over`` are the
    numbers of the rows that no candidate covers. Candidates are the ``n_candidates`` different rules that hold as
    often as asked, and whose decision at least the share ``agree`` of the rows with their facts get. ``status`` is
    "proven" (no fewer of the candidates cover as many rows) or "found".
    """

    _KIND: ClassVar[str] = "rules"
    _FROZEN: ClassVar[tuple[str, ...]] = ("settings", "versions")
    _CONTRADICTION: ClassVar[str] = "The rules contradict each other"
    _OTHER_KIND: ClassVar[str] = "Not anchorline rules"

    rules: tuple[CoveringRule, ...]
    n_rows: int
    n_failed: int
    n_candidates: int
    left_over: tuple[int, ...]
    status: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def is_proven(self) -> bool:
        """Whether no fewer of the candidates cover as many rows."""
        return self.status == "proven"

    @property
    def n_covered(self) -> int:
        """The number of rows that a rule covers."""
        return self.n_rows - len(self.left_over)

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[CoveringRule]:
        return iter(self.rules)

    def __str__(self) -> str:
        from anchorline.render.text import rules_text

        return rules_text(self)

    def __repr__(self) -> str:
        return f"Rules({len(self.rules)} rules cover {self.n_covered} of {self.n_rows} rows, {self.status})"

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame of the given backend with one row per rule."""
        from anchorline.render.statements import fact_text

        rows = [
            (
                "; ".join(fact_text(fact, each.rule.space) for fact in each.rule.facts),
                None if each.rule.output.decision is None else str(each.rule.output.decision),
                len(each.alike),
                len(each.otherwise),
                each.rule.holds.low,
                each.rule.coverage,
                each.rule.verdict.value,
                each.row,
            )
            for each in self.rules
        ]
        columns = {name: [row[j] for row in rows] for j, name in enumerate(_COLUMNS)}
        return frame_in(backend, columns, _COLUMNS)

    def _contradictions(self) -> Iterator[str]:
        covered = {row for each in self.rules for row in each.alike}
        if self.n_covered != len(covered) or covered & {*self.left_over}:
            yield f"{len(covered)} rows are covered and {len(self.left_over)} left over, of {self.n_rows}."
        for each in self.rules:
            if each.row not in each.alike or {*each.alike} & {*each.otherwise}:
                yield f"The rule of row {each.row} does not cover it, or a row gets two decisions."
            if each.rule.verdict not in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS):
                yield f"The rule of row {each.row} has the verdict {each.rule.verdict.value}."
        if self.status not in ("proven", "found"):
            yield f"The status is {self.status!r}."
