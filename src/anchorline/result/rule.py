"""A rule: few facts, as wide as possible, that keep a decision; and rules that cover many rows."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from anchorline.facts import Fact
from anchorline.result.explanation import Output, Queries, Rows, Share, contradictory_facts, contradictory_measures
from anchorline.result.frames import frame_of
from anchorline.result.json_format import Displayed, Record, is_plain

_ROUNDING = 1e-9  # of shares


class RuleVerdict(enum.Enum):
    """Whether the decision stays as often as asked, while the facts hold; see docs/rules.md."""

    ALWAYS = "always"  # in every altered copy with the facts: a theorem about trees, or all copies were listed
    HOLDS = "holds"  # at least as often as asked, by the lower limit
    FALLS_SHORT = "falls_short"  # less often, by the upper limit; or no facts were found
    UNDECIDED = "undecided"
    MEASURED = "measured"  # no share was asked for: the most that k facts hold


@dataclass(frozen=True, slots=True)
class Strip:
    """What the model does along the values of one fact's column, while the other facts of the rule hold.

    ``labels`` (m,) are the values at which a new part begins, without the first part: numbers, or dates as ISO
    texts; of a category, that of the row, and its parts are "this one" and "all others". ``shares`` (m + 1,) are
    the shares of the pool in the parts, ``stays`` those of altered copies in them that keep the decision, None
    where none was drawn. ``first <= part < last`` is the fact, ``own`` the part of the row; m + 1 stands for
    missing values. ``missing`` is the share of the pool without a value. Shares are those of a few hundred copies
    and have no limits: they are a picture.
    """

    labels: tuple[Any, ...]
    shares: tuple[float, ...]
    stays: tuple[float | None, ...]
    first: int
    last: int
    own: int
    missing: float


@dataclass(frozen=True, slots=True)
class RuleProof:
    """What is known about the choice of facts.

    ``status`` is "proven" (no rule of fewer facts reaches the share, and none of as many covers more, for all
    neighbors or for all leaves) or "found". ``n_tried`` rules were compared, and ``n_certified`` tried on fresh
    neighbors; all their limits hold together.
    """

    status: str
    n_tried: int
    n_certified: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule(Displayed):
    """A rule about one prediction: its facts, how often the decision stays while they hold, and for how many rows.

    ``holds`` is the smaller of ``holds_drawn`` (copies whose values of the facts' columns are those of random rows
    for which the facts are true) and ``holds_law`` (altered copies that break no fact; None if fewer than 5% break
    none). ``all`` is the share of all altered copies that keep the decision. A number stays if it differs from the
    prediction by at most ``within``, which is None for decisions. ``coverage`` is the share of the table's rows
    for which the facts are true, of instances without a table the share of all their values. Without facts, every
    altered copy is meant. ``strips`` has one entry per fact. ``settings`` are what the user chose: holds, k,
    within, sigma, queries, seed, confidence; ``space`` is that of `Explanation`.
    """

    _KIND: ClassVar[str] = "rule"

    instance: Any
    prediction: float
    output: Output
    facts: tuple[Fact, ...]
    verdict: RuleVerdict
    within: float | None
    holds: Share
    holds_drawn: Share | None
    holds_law: Share | None
    all: Share
    coverage: float
    rows: Rows | None
    strips: tuple[Strip, ...]
    proof: RuleProof
    queries: Queries
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def is_proven(self) -> bool:
        """Whether no rule of fewer facts reaches the share, and none of as many covers more."""
        return self.proof.status == "proven"

    @property
    def is_reached(self) -> bool:
        """Whether the decision stays as often as asked; true if nothing was asked for."""
        return self.verdict in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS, RuleVerdict.MEASURED)

    def __repr__(self) -> str:
        facts = f"{len(self.facts)} fact{'s' * (len(self.facts) != 1)}"
        return f"Rule({self.output.name!r}, {facts}, holds={self.holds.value:.3f}, {self.verdict.value})"

    def details(self) -> str:
        """Return how we know: what an altered copy is, every figure with its limits, and how it was found."""
        from anchorline.render.text import details_text

        return details_text(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw a strip per fact: where the row lies, where the fact ends, and where the model turns."""
        from anchorline.render.pictures import plot_rule

        return plot_rule(self, ax)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame of the given backend with one row per fact."""
        from anchorline.render.statements import fact_text

        rows = [(fact_text(fact, self.space), fact.column) for fact in self.facts]
        return frame_of(backend, {"fact": "text", "column": "text"}, rows)

    def _contradictions(self) -> Iterator[str]:
        """Yield what figures of a rule contradict each other."""
        if len(self.strips) != len(self.facts):
            yield f"{len(self.strips)} strips for {len(self.facts)} facts."
        yield from contradictory_facts(self.facts)
        for strip in self.strips:
            yield from _contradictory_strip(strip)
        if len({fact.attribute for fact in self.facts}) != len(self.facts):
            yield "Two facts are about the same attribute."
        yield from contradictory_measures(self, is_least=bool(self.facts))
        if not 0 <= self.coverage <= 1 + _ROUNDING:
            yield f"The coverage is {self.coverage!r}."
        if (self.within is None) != (self.output.kind != "number"):
            yield f"within is {self.within!r}, but the output is a {self.output.kind}."
        asked = self.settings["holds"]
        line = 1.0 if self.verdict is RuleVerdict.ALWAYS else asked
        if self.verdict in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS) and self.holds.low < line - _ROUNDING:
            yield f"The verdict is {self.verdict.value}, but the lower limit is {self.holds.low!r}."
        if (self.verdict is RuleVerdict.MEASURED) != (asked is None):
            yield f"The verdict is {self.verdict.value}, but holds={asked!r} was asked for."


def _contradictory_strip(strip: Strip) -> Iterator[str]:
    """Yield whether a strip has shares beyond 0 and 1, or labels that cannot be shown."""
    shares = [share for share in (*strip.shares, *strip.stays, strip.missing) if share is not None]
    if not all(map(is_plain, strip.labels)) or not all(0 <= share <= 1 + _ROUNDING for share in shares):
        yield "A strip has invalid shares or labels."


# The fewest rules that cover many rows: each is the rule of one of them.

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
        return frame_of(backend, _COLUMNS, rows)

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
