"""A rule: few facts, as wide as possible, while which a decision stays; figures and codes only."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from anchorline.facts import Fact
from anchorline.result.explanation import Output, Queries, Rows, Share
from anchorline.result.frames import frame_in
from anchorline.result.json_format import Record

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
class Rule(Record):
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
    _FROZEN: ClassVar[tuple[str, ...]] = ("instance", "settings", "space", "versions")
    _CONTRADICTION: ClassVar[str] = "The rule contradicts itself"
    _OTHER_KIND: ClassVar[str] = "Not an anchorline rule"

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

    def __str__(self) -> str:
        from anchorline.render.text import rule_text

        return rule_text(self)

    def __repr__(self) -> str:
        facts = f"{len(self.facts)} fact{'s' * (len(self.facts) != 1)}"
        return f"Rule({self.output.name!r}, {facts}, holds={self.holds.value:.3f}, {self.verdict.value})"

    def details(self) -> str:
        """Return how we know: what an altered copy is, every figure with its limits, and how it was found."""
        from anchorline.render.text import rule_details

        return rule_details(self)

    def _repr_html_(self) -> str:
        from anchorline.render.report import rule_fragment

        return rule_fragment(self)

    def to_html(self) -> str:
        """Return one page without scripts or network."""
        from anchorline.render.report import rule_page

        return rule_page(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw a strip per fact: where the row lies, where the fact ends, and where the model turns."""
        from anchorline.render.pictures import plot_rule

        return plot_rule(self, ax)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame of the given backend with one row per fact."""
        from anchorline.render.statements import fact_text

        columns: dict[str, list[Any]] = {
            "fact": [fact_text(fact, self.space) for fact in self.facts],
            "column": [fact.column for fact in self.facts],
        }
        return frame_in(backend, columns, {"fact": "text", "column": "text"})

    def _contradictions(self) -> Iterator[str]:
        return _contradictions(self)


def _contradictions(rule: Rule) -> Iterator[str]:
    """Yield what figures of a rule contradict each other."""
    if len(rule.strips) != len(rule.facts):
        yield f"{len(rule.strips)} strips for {len(rule.facts)} facts."
    if len({fact.attribute for fact in rule.facts}) != len(rule.facts):
        yield "Two facts are about the same attribute."
    for name in ("holds", "holds_drawn", "holds_law", "all"):
        share = getattr(rule, name)
        if share is not None and not (0 <= share.low <= share.value <= share.high <= 1 and share.n >= 0):
            yield f"{name} is {share.value!r} with the limits {share.low!r} to {share.high!r}."
    both = [share.value for share in (rule.holds_drawn, rule.holds_law) if share is not None]
    if rule.facts and (not both or abs(rule.holds.value - min(both)) > _ROUNDING):
        yield "holds is not the smaller of holds_drawn and holds_law."
    if not 0 <= rule.coverage <= 1 + _ROUNDING:
        yield f"The coverage is {rule.coverage!r}."
    if (rule.within is None) != (rule.output.kind != "number"):
        yield f"within is {rule.within!r}, but the output is a {rule.output.kind}."
    asked = rule.settings["holds"]
    line = 1.0 if rule.verdict is RuleVerdict.ALWAYS else asked
    if rule.verdict in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS) and rule.holds.low < line - _ROUNDING:
        yield f"The verdict is {rule.verdict.value}, but the lower limit is {rule.holds.low!r}."
    if (rule.verdict is RuleVerdict.MEASURED) != (asked is None):
        yield f"The verdict is {rule.verdict.value}, but holds={asked!r} was asked for."
    if rule.rows is not None and not 0 <= (rule.rows.alike or 0) <= rule.rows.with_facts <= rule.rows.looked_at:
        yield f"{rule.rows.alike} of {rule.rows.with_facts} rows with the facts, of {rule.rows.looked_at}."
