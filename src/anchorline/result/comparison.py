"""A comparison of two models, and of one model on two cohorts of rows: passive figures."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from anchorline.facts import Fact
from anchorline.result.explanation import Output, Share, contradictory_facts
from anchorline.result.frames import frame_of
from anchorline.result.json_format import Displayed


class Move(enum.Enum):
    """How an attribute's effect differs; by limits that hold together with all others."""

    TURNED = "turned"  # it acts the other way
    ROSE = "rose"
    FELL = "fell"
    MOVED = "moved"  # it acts differently, neither more nor less on the whole
    SAME = "same"  # no difference is established


class Outcome(enum.Enum):
    """What limits say about a gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Amount:
    """A mean with its limits."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Part:
    """The share of rows of one part of the table that are decided differently.

    ``column`` is None if the part are rows that the old model decides as ``value`` says. ``is_more`` says whether
    more of them are decided differently than of the other rows, by limits.
    """

    column: str | None
    value: str
    share: Share
    is_more: bool


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """How one attribute acts in both models: roots of mean squares over rows, in units of the output.

    ``old`` and ``new`` are the typical sizes of its effect on a row, ``change`` is that of the difference of the
    effects, and at least ``change_low``.
    """

    attribute: str
    move: Move
    old: float
    new: float
    change: float
    change_low: float


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row to read: both outputs and decisions, and the old facts; ``kept`` says whether these still hold."""

    row: int
    old: float
    new: float
    old_decision: str | None
    new_decision: str | None
    facts: tuple[Fact, ...]
    kept: bool | None


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule of the old model that the new one breaks: the row that it was found for, and how often it holds.

    ``example`` has the plain values of a copy with the facts that the new model decides differently, ``output`` is
    its answer to it.
    """

    row: int
    facts: tuple[Fact, ...]
    old_decision: str | None
    old: Share
    new: Share
    example: tuple[Any, ...]
    output: float


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on a figure, which must be at most ``most``: "decisions", "reasons", or an attribute."""

    what: str
    most: float
    figure: Amount
    outcome: Outcome


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Displayed):
    """How a new model differs from an old one; all limits hold together, and at every look.

    ``decisions`` is the share of rows that are decided differently; a number is, if it differs by more than
    ``within``. ``reasons`` is the share of old explanations that the new model refutes, wrongly in one row of 100
    at most: of certified ones, of rows decided alike; None if there is none. ``n_explained`` rows were explained.
    ``output`` is that of the old model, ``spread`` the distance of the 5% and 95% quantiles of its outputs.
    """

    _KIND: ClassVar[str] = "comparison"

    output: Output
    spread: float
    within: float | None
    n_explained: int
    decisions: Share
    parts: tuple[Part, ...]
    reasons: Share | None
    attributes: tuple[AttributeChange, ...]
    rows: tuple[ChangedRow, ...]
    rules: tuple[BrokenRule, ...]
    n_rules: int
    gates: tuple[Gate, ...]
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def outcome(self) -> Outcome:
        """What all gates say together: failed if one failed, passed if all passed."""
        outcomes = {gate.outcome for gate in self.gates}
        for worst in (Outcome.FAILED, Outcome.UNDECIDED):
            if worst in outcomes:
                return worst
        return Outcome.PASSED

    @property
    def changed(self) -> tuple[AttributeChange, ...]:
        """The attributes whose effects differ, the largest difference first."""
        return tuple(each for each in self.attributes if each.move is not Move.SAME)

    def __repr__(self) -> str:
        return f"Comparison({self.n_explained} rows, decisions={self.decisions.value:.3f}, {self.outcome.value})"

    def to_junit(self) -> str:
        """Return the gates as JUnit XML: a test case per gate; an undecided one is an error."""
        from anchorline.render.comparisons import junit

        return junit(self)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame with one row per attribute."""
        kinds = {"attribute": "text", "move": "text"}
        kinds |= dict.fromkeys(("old", "new", "change", "change_low"), "number")
        rows = [
            (each.attribute, each.move.value, each.old, each.new, each.change, each.change_low)
            for each in self.attributes
        ]
        return frame_of(backend, kinds, rows)

    def _contradictions(self) -> Iterator[str]:
        shares = [self.decisions, *(part.share for part in self.parts)]
        for share in [*shares, *([] if self.reasons is None else [self.reasons])]:
            if not 0 <= share.low <= share.value <= share.high <= 1:
                yield f"A share is {share.value!r} with the limits {share.low!r} to {share.high!r}."
        for facts in (*(row.facts for row in self.rows), *(rule.facts for rule in self.rules)):
            yield from contradictory_facts(facts)
        for gate in self.gates:
            if gate.outcome is not judged(gate.figure, gate.most):
                yield f"The gate on {gate.what!r} is {gate.outcome.value}, which its limits do not support."


def judged(figure: Amount, most: float) -> Outcome:
    """Return what the limits of a figure say about the most that is allowed."""
    if figure.high <= most:
        return Outcome.PASSED
    return Outcome.FAILED if figure.low > most else Outcome.UNDECIDED


@dataclass(frozen=True, slots=True)
class AttributeDrift:
    """The mean effect of an attribute in both cohorts, and the difference with its limits."""

    attribute: str
    before: float
    after: float
    change: Amount
    is_real: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Drift(Displayed):
    """How one model's outputs and reasons differ between two cohorts of rows; all limits hold together.

    The effect of an attribute on a row is the mean output of altered copies that keep its value, minus that of
    copies for which it is redrawn from the rows before: how much the value adds to this row.
    """

    _KIND: ClassVar[str] = "drift"

    output: Output
    n_before: int
    n_after: int
    before: float
    after: float
    change: Amount
    is_real: bool
    attributes: tuple[AttributeDrift, ...]
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def drifted(self) -> tuple[AttributeDrift, ...]:
        """The attributes whose mean effect differs, the largest difference first."""
        return tuple(each for each in self.attributes if each.is_real)

    def __repr__(self) -> str:
        return f"Drift({self.n_before} and {self.n_after} rows, {len(self.drifted)} attributes differ)"

    def _contradictions(self) -> Iterator[str]:
        for name, change, is_real in [
            (self.output.name, self.change, self.is_real),
            *((each.attribute, each.change, each.is_real) for each in self.attributes),
        ]:
            if not change.low <= change.value <= change.high:
                yield f"The change of {name!r} is {change.value!r}, limits {change.low!r} to {change.high!r}."
            if is_real != (change.low > 0 or change.high < 0):
                yield f"Whether the change of {name!r} is real does not follow from its limits."
