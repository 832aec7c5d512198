"""Changes: what would turn a decision, as figures and codes, their JSON, and the sentences derived from them."""

import html
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, ClassVar

from anchorline.errors import ParameterError
from anchorline.facts import Fact
from anchorline.render.digits import exact_number, same_decimals
from anchorline.render.drawings import document, style_sheet
from anchorline.render.statements import class_text, column_text, fact_text, shown, singular, value_text
from anchorline.result.explanation import Output, Share, contradictory_facts
from anchorline.result.frames import frame_in
from anchorline.result.json_format import Record, frozen, is_plain
from anchorline.spaces.columns import level_text

LIMITS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
_USUAL_CONFIDENCE = 0.95  # a smaller one is said
_EXACT = 6  # significant digits that are printed as they are
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One attribute of an example: its values before and after.

    ``after`` is None if the attribute, such as a word, is then absent. Several columns that change together have
    tuples of values. ``bound`` is a fact such as ``debt < 6,500`` that is true of the new value and of exactly the
    allowed training values beyond it; None if there are none beyond. ``distance`` is the share of training rows
    between the two values; see docs/reasons.md.
    """

    attribute: str
    columns: tuple[str, ...]
    before: Any
    after: Any
    bound: Fact | None
    distance: float

    def __post_init__(self) -> None:
        for name in ("before", "after"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Realism:
    """How far an example is from the nearest training row that is not the case itself, beside real rows.

    ``typical`` is the median distance of real rows from their nearest other rows, and ``share`` the share of real
    rows that are at least as far from theirs as the example.
    """

    distance: float
    typical: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """A change that turns the decision.

    ``moves`` are the values of the example, which was asked of the model. ``output`` and ``decision`` are what the
    model answers to it. ``share`` is the share of all training values that meet the bounds with which the decision
    turns; None if too few queries were left to measure it, or if the examples are whole rows. ``realism`` compares
    the example's distance from the nearest training row with that of real rows; None without a training table.
    """

    moves: tuple[Move, ...]
    cost: float
    output: float | None
    decision: Any
    share: Share | None
    realism: Realism | None

    @property
    def values(self) -> dict[str, Any]:
        """The example's new values by column."""
        pairs: dict[str, Any] = {}
        for move in self.moves:
            after = move.after if len(move.columns) > 1 else (move.after,)
            pairs |= dict(zip(move.columns, after, strict=True))
        return pairs


@dataclass(frozen=True, slots=True)
class Level:
    """What was tried of the changes of ``n_facts`` facts: ``n_tried`` of ``n_total`` combinations of values.

    ``n_grid`` is the number of combinations of the values that were tried alone. Combinations that contain a
    change that turns by itself do not count. ``by_leaves`` says that the leaves of the model's trees decided them,
    and that values that the trees cannot distinguish count as one.
    """

    n_facts: int
    n_tried: int
    n_grid: int
    n_total: int
    by_leaves: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all combinations of the values that were tried alone were tried."""
        return self.n_tried >= self.n_grid

    @property
    def is_exhaustive(self) -> bool:
        """Whether all combinations of allowed training values were tried."""
        return self.n_tried >= self.n_total


@dataclass(frozen=True, kw_only=True, eq=False)
class Changes(Record):
    """What would change a decision, fewest changes first.

    ``prediction`` is the explained output at the instance, None if the model answers labels, and ``output`` says
    what it is and what the model decides. ``goal`` holds what counts as turned: its ``kind`` and what is
    ``wanted``. ``levels`` state what was tried of changes of one fact, of two facts, and so on; ``n_attributes``
    attributes have an allowed value other than the instance's own. ``held`` are columns that never change.
    ``labels`` maps columns whose values have names to these, by the texts of the values.
    """

    _KIND: ClassVar[str] = "changes"

    options: tuple[Counterfactual, ...]
    prediction: float | None
    output: Output
    goal: Mapping[str, Any]
    columns: tuple[str, ...]
    labels: Mapping[str, Mapping[str, str]]
    instance: Any
    held: tuple[str, ...]
    levels: tuple[Level, ...]
    n_attributes: int
    n_queries: int
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    versions: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.options)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.options)

    def __getitem__(self, place: int) -> Counterfactual:
        return self.options[place]

    def __hash__(self) -> int:
        return hash(self.to_json())

    @property
    def fewest(self) -> int | None:
        """The smallest number of facts of a change that was found, or None if nothing turns."""
        return min((len(option.moves) for option in self.options), default=None)

    @property
    def n_ruled_out(self) -> int:
        """The largest number s for which no change of at most s facts turns, among the values tried."""
        return self._ruled_out([level.is_complete for level in self.levels])

    @property
    def n_proved(self) -> int:
        """The largest number s for which no change of at most s facts turns, among all allowed training values."""
        return self._ruled_out([level.is_exhaustive for level in self.levels])

    def _ruled_out(self, claims: list[bool]) -> int:
        ruled_out = 0
        for level, holds in zip(self.levels, claims, strict=True):
            if not holds or self.fewest == level.n_facts:
                break
            ruled_out = level.n_facts
        return ruled_out

    def changed(self, place: int = 0) -> dict[str, Any]:
        """Return the example of an option as a whole row: the instance's values by column, with the changes."""
        if self.space["kind"] not in ("table", "hypercube"):
            raise ParameterError(
                "The instance is not a row of columns, so its example has no values by column. Use the moves of "
                "the option."
            )
        row, values = dict(zip(self.columns, self.instance, strict=True)), self.options[place].values
        if self.space["kind"] == "hypercube":
            return row | {name: -row[name] for name in values}
        return row | values

    @property
    def are_rows(self) -> bool:
        """Whether the examples are whole training rows."""
        return bool(self.settings["examples"] == "rows")

    def __str__(self) -> str:
        return "\n".join(_Texts(self).lines())

    def __repr__(self) -> str:
        return f"Changes({len(self.options)} found, fewest facts: {self.fewest}, {self.n_queries:,} queries)"

    def details(self) -> str:
        """Return how surely the facts turn the decision, how real the examples are, and what was tried."""
        return "\n".join(_Texts(self).details())

    def _repr_html_(self) -> str:
        return f'<div class="anchorline"><style>{style_sheet("sum.css")}</style>{_section(self)}</div>'

    def to_html(self) -> str:
        """Return one self-contained page without script or network; its policy allows its own style sheet only."""
        return document("What would change it", f"<header><h1>What would change it?</h1></header>{_section(self)}")

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per move, as a frame of the given backend."""
        ends = _Texts(self).ends
        rows = [(place, option, move) for place, option in enumerate(self.options) for move in option.moves]
        shares = [option.share for _, option, _ in rows]
        columns: dict[str, list[Any]] = {
            "option": [place for place, _, _ in rows],
            "attribute": [move.attribute for _, _, move in rows],
            "before": [ends(move, move.before) for _, _, move in rows],
            "after": [ends(move, move.after) for _, _, move in rows],
            "distance": [move.distance for _, _, move in rows],
            "cost": [option.cost for _, option, _ in rows],
            "output": [option.output for _, option, _ in rows],
            "decision": [None if option.decision is None else str(option.decision) for _, option, _ in rows],
            "share": [None if each is None else each.value for each in shares],
            "share_low": [None if each is None else each.low for each in shares],
            "share_high": [None if each is None else each.high for each in shares],
        }
        texts = {"attribute", "before", "after", "decision"}
        kinds = {name: "text" if name in texts else "number" for name in columns} | {"option": "place"}
        return frame_in(backend, columns, kinds)

    def _contradictions(self) -> Iterator[str]:
        used = [[column for move in option.moves for column in move.columns] for option in self]
        sizes, most = [len(option.moves) for option in self], self.settings["k"] or len(self.columns)
        held = {*self.held, *self.settings["fixed"]}
        if self.space["kind"] in ("table", "hypercube") and len(self.columns) != len(self.instance):
            yield "The number of values of the instance is not that of the columns."
        if sizes != sorted(sizes) or not all(0 < size <= most for size in sizes):
            yield "A change has more facts than allowed, or than one that comes after it."
        if not all(len(each) == len({*each}) and {*each} <= {*self.columns} for each in used):
            yield "A change moves a column twice, or one that does not exist."
        moves = [move for option in self for move in option.moves]
        if not all(map(_has_plain_values, moves)):
            yield "A change has an invalid value, or not one value per column of a group."
        yield from contradictory_facts(move.bound for move in moves if move.bound is not None)
        if not isinstance(self.settings["allowed"], Mapping):
            yield "What is allowed is not an object."
        if not all(map(is_plain, (self.goal["wanted"], *(option.decision for option in self)))):
            yield "A decision or a goal is neither a number nor a text."
        if held & {column for each in used for column in each}:
            yield "A change moves a column that is held fixed."
        if not all(map(self._is_reached, self)):
            yield "The answer to an example does not reach the goal."
        if [level.n_facts for level in self.levels] != list(range(1, len(self.levels) + 1)):
            yield "The levels are not in order."

    def _is_reached(self, option: Counterfactual) -> bool:
        """Return whether an example's answer, as stated, reaches the goal, as stated."""
        kind, wanted, output = self.goal["kind"], self.goal["wanted"], option.output
        if kind in LIMITS:
            return output is not None and bool(LIMITS[kind](output, wanted))
        return bool((option.decision == wanted) == (kind in ("class", "label")))


def _has_plain_values(move: Move) -> bool:
    """Return whether a move has one plain value before and after, of several columns one for each."""
    n = len(move.columns)
    both = [value if n > 1 else (value,) for value in (move.before, move.after)]
    return all(isinstance(values, tuple) and len(values) == n and all(map(is_plain, values)) for values in both)


# Sentences


class _Texts:
    """The sentences about changes; ``escape`` makes text from data safe to print or to show on a page."""

    def __init__(self, changes: Changes, escape: Callable[[str], str] = shown) -> None:
        self.changes, self.escape, settings, output = changes, escape, changes.settings, changes.output
        wishes = settings["fixed"] or settings["allowed"] or settings["direction"]
        self.allowed = "allowed " if wishes or settings["toward"] is not None else ""  # only if some are forbidden
        self.facts = re.sub(r"\W+", " ", str(changes.space["noun"]))  # neither markup nor control characters
        self.unit = f" {escape(output.unit)}" if output.unit else ""
        name = escape(output.name if output.kind == "number" else class_text(output.name))
        name = "output" if output.name == "f(x)" else name
        if output.is_probability:
            self.name = f"P({name})"
        elif output.scale is not None:
            self.name = f"{output.scale} of {name}"
        else:
            self.name = f"score of {name}" if output.kind == "class" else name

    def lines(self) -> list[str]:
        """Return what would turn the decision: one sentence for one change, a line per change for several."""
        changes, options, (happens, does_it) = self.changes, self.changes.options, self._turned()
        if not options:
            most = changes.settings["k"] or len(changes.columns)
            if changes.are_rows or changes.n_proved < min(most, changes.n_attributes):
                tried = "table rows" if changes.are_rows else "changes"
                return [f"None of the {self.allowed}{tried} tried {does_it}."]
            return [f"No {self.allowed}change of {self._up_to(most)}{self._to_values(most)} {does_it}."]
        if len(options) == 1:
            lines = [f"{happens} with {_counted(len(options[0].moves), 'changes')}: {self._option(options[0])}."]
        else:
            lines = [f"{happens} with any of these changes:", *(f"  {self._option(option)}" for option in options)]
        fewest = changes.fewest or 0
        if changes.are_rows:
            lines.append("With these values, it is a row of the table.")
        elif fewest > 1 and changes.n_proved >= fewest - 1:
            size = "single" if fewest == 2 else "smaller"
            lines.append(f"No {self.allowed}{size} change{self._to_values(fewest - 1)} does it.")
        return lines

    def _up_to(self, n: int) -> str:
        """Return a number of facts, words, regions or stretches."""
        return f"{'' if n == 1 else 'up to '}{_counted(n, self.facts)}"

    def _to_values(self, n: int) -> str:
        """Return which values a denial is about: those of the table, because no others are tried."""
        values = " to a value in the table" if n == 1 else " to values in the table"
        return values if self.changes.space["kind"] == "table" else ""

    def _turned(self) -> tuple[str, str]:
        """Return what happens, as the beginning of a sentence and as the end of one that denies it."""
        kind, label = self.changes.goal["kind"], self._new_decision()
        if label is not None:
            label = self.escape(label)
            return f"The model's decision becomes {label}", f"makes the model's decision {label}"
        if kind not in LIMITS:
            return "The model's decision becomes another", "changes the model's decision"
        does, do = {
            ">=": ("reaches", "reach"),
            ">": ("rises above", "rise above"),
            "<=": ("falls to", "fall to"),
            "<": ("falls below", "fall below"),
        }[kind]
        wanted = _cut(self.changes.goal["wanted"], self.changes.prediction or 0.0, ROUND_HALF_EVEN)
        limit = f"{exact_number(wanted)}{self.unit}"
        subject = self.name if self.changes.output.is_probability else f"the model's {self.name}"
        return f"{subject[0].upper()}{subject[1:]} {does} {limit}", f"makes {subject} {do} {limit}"

    def _new_decision(self) -> str | None:
        """Return the decision that all changes lead to; None for several, or for one that has no name."""
        kind, wanted, output = self.changes.goal["kind"], self.changes.goal["wanted"], self.changes.output
        if kind in ("class", "label"):
            return class_text(wanted)
        if kind in LIMITS:
            others = [str(label) for label in output.classes or () if str(label) != output.name]
            is_decision = kind in (">=", "<") and wanted == output.threshold  # at it, the decision is made already
            if not is_decision or not output.is_probability or len(others) != 1:
                return None
            return class_text(output.name if kind == ">=" else others[0])
        decisions = {class_text(option.decision) for option in self.changes}
        return decisions.pop() if len(decisions) == 1 else None

    def _option(self, option: Counterfactual) -> str:
        """Return what changes, and what the model then answers."""
        several = self.changes.goal["kind"] not in LIMITS and len({each.decision for each in self.changes}) > 1
        answers = [self.escape(class_text(option.decision))] if several else []
        if option.output is not None:
            answers.append(f"{self.name} {self._answer(option.output)}{self.unit}")
        *first, last = [text for move in option.moves for text in self._move(move)]
        moves = f"{', '.join(first)} and {last}" if first else last
        without = "" if self.changes.space["kind"] in ("table", "hypercube") else "without "
        return f"{without}{moves} (then {'; '.join(answers)})" if answers else f"{without}{moves}"

    def _answer(self, output: float) -> str:
        """Return what an output is; a probability with the decimals that show that it turned, four at most."""
        if not self.changes.output.is_probability:
            return f"= {exact_number(_cut(output, self.changes.prediction or 0.0))}"
        limit = self.changes.goal["wanted"] if self.changes.goal["kind"] in LIMITS else 0.5
        wanted = _cut(limit, self.changes.prediction or 0.0, ROUND_HALF_EVEN)
        if output == limit:
            return f"= {max(exact_number(wanted), f'{wanted:.2f}', key=len)}"
        texts = [f"{output:.{digits}f}" for digits in (2, 3, 4)]
        texts = [text for text in texts if float(text) != limit and (float(text) > limit) == (output > limit)]
        if not texts:
            return f"is just {'above' if output > limit else 'below'} {exact_number(wanted)}"
        return f"= {next((text for text in texts if 0 < float(text) < 1), texts[0 if output in (0, 1) else -1])}"

    def _move(self, move: Move) -> list[str]:
        """Return the changes of one attribute's columns, such as ``debt 6,480 instead of 9,000``; or a part."""
        kind, escape, before, after = self.changes.space["kind"], self.escape, move.before, move.after
        if kind == "hypercube" and not isinstance(after, str):  # a sign
            return [f"{escape(move.attribute)} = {after:+d} instead of {before:+d}"]
        if kind == "hypercube":  # statements of their own
            return [f"{escape(after)} instead of {escape(str(before))}"]
        if kind != "table":
            mark = '"' if kind == "text" else ""
            return [f"{mark}{escape(str(before))}{mark}"]
        texts = []
        for name, old, new in _moved(move):
            ends = [old, new]
            if name not in self.changes.labels and isinstance(new, int | float):  # long decimals are cut
                if isinstance(old, int | float):
                    ends = [_cut(old, new, ROUND_HALF_EVEN), _cut(new, old)]
                else:
                    ends = [old, _cut(new, 0.0, ROUND_HALF_EVEN)]
            values = [self._value(end, name) for end in ends]
            if name not in self.changes.labels and all(isinstance(end, int | float) for end in ends):
                values = same_decimals(values)
            before, after = map(escape, values)
            texts.append(f"{escape(column_text(name))} {after} instead of {before}")
        return texts

    def _value(self, value: Any, column: str) -> str:
        """Return a value as a person would write it: by its name if it has one."""
        named = self.changes.labels.get(column, {}).get(level_text(value)) if value is not None else None
        return value_text(value, column) if named is None else shown(named)

    def ends(self, move: Move, values: Any) -> str:
        """Return the values of a move before or after it."""
        parts = values if isinstance(values, tuple) else (values,)
        return ", ".join(self._value(value, name) for name, value in zip(move.columns, parts, strict=True))

    def details(self) -> list[str]:
        """Return how surely the facts turn the decision, how real the examples are, and what was tried."""
        lines, changes = [], self.changes
        for place, option in enumerate(changes, start=1):
            if option.share is not None and any(move.bound is not None for move in option.moves):
                names = {name for move in option.moves for name in (move.attribute, *move.columns)}
                value = "allowed training value" if names & {*changes.settings["allowed"]} else "training value"
                facts = " and ".join(text for move in option.moves for text in self._bounds(move))
                lines.append(f"Change {place}, with bounds: {facts} {_share_text(option.share, value)}.")
            if option.realism is not None and not changes.are_rows:
                real = option.realism
                lines.append(
                    f"Change {place}: distance from the nearest training row {real.distance:.3f}; of real rows, "
                    f"the median is {real.typical:.3f}, and {real.share:.0%} are at least as far from theirs."
                )
        confidence = changes.settings["confidence"]
        is_drawn = any(option.share is not None and not option.share.is_exact for option in changes)
        if is_drawn and confidence < _USUAL_CONFIDENCE:
            lines.append(f"All limits hold together with {100 * confidence:g}% confidence.")
        if changes.settings["toward"] is not None:
            lines.append("Only values of the other case were allowed.")
        return [*lines, *self._tried()]

    def _bounds(self, move: Move) -> list[str]:
        if move.bound is not None:
            return [self.escape(fact_text(move.bound))]
        texts = [(column_text(name), self._value(new, name)) for name, _, new in _moved(move)]
        return [f"{self.escape(name)} = {self.escape(text)}" for name, text in texts]

    def _tried(self) -> list[str]:
        """Return what is proven about smaller changes, what was left untried, and the number of queries."""
        changes, lines, proven = self.changes, [], self.changes.n_proved
        queries = f"{changes.n_queries:,} queries."
        if changes.are_rows:
            n, of = sum(each.n_tried for each in changes.levels), sum(each.n_total for each in changes.levels)
            if proven:
                differs = f"differs in {self._up_to(proven)}"
                lines.append(f"Proven: no allowed row of the table that {differs} does it.")
            return [*lines, f"Tried: {n:,} of {of:,} rows of the table; {queries}"]
        if proven:
            by = " by the leaves of the trees" if changes.levels[proven - 1].by_leaves else ""
            change = f"{self.allowed}change of {self._up_to(proven)}{self._to_values(proven)}"
            lines.append(f"Proven{by}: no {change} does it.")
        if changes.n_ruled_out > proven:
            change = f"{self.allowed}change of {self._up_to(changes.n_ruled_out)}"
            lines.append(f"No {change} does it among the values tried.")
        levels = [(f"{e.n_tried:,} of {e.n_total:,}", _counted(e.n_facts, self.facts)) for e in changes.levels]
        tried = ", ".join(f"{count} changes of {facts}" for count, facts in levels)
        return [*lines, f"Tried: {tried}, of {_counted(changes.n_attributes, 'attributes')}; {queries}"]


def _cut(number: float, other: float, rounding: str = "") -> float:
    """Return a number of more than six digits with as many as four digits of its distance from another one need.

    By default, it is rounded away from the other one.
    """
    exact, apart = Decimal(repr(float(number))), Decimal(repr(abs(float(number) - float(other))))
    if isinstance(number, int) or not apart or len(exact.normalize().as_tuple().digits) <= _EXACT:
        return number
    away = ROUND_CEILING if number > other else ROUND_FLOOR
    return float(exact.quantize(Decimal(1).scaleb(apart.adjusted() - 3), rounding=rounding or away))


def _moved(move: Move) -> list[tuple[str, Any, Any]]:
    """Return the columns whose values differ, with the values before and after."""
    ends = (move.before, move.after) if len(move.columns) > 1 else ((move.before,), (move.after,))
    return [each for each in zip(move.columns, *ends, strict=True) if each[1] != each[2]]


def _share_text(share: Share, value: str) -> str:
    """Return with which share of the training values that meet the bounds the decision turns."""
    if share.is_exact and share.value == 1:
        return f"turns it with every {value} ({share.n:,} tried)"
    if share.is_exact:
        return f"turns it with {share.value:.1%} of the {value}s (all {share.n:,} tried)"
    return f"turns it with {share.low:.1%} to {share.high:.1%} of the {value}s ({share.n:,} drawn)"


def _counted(n: int, nouns: str) -> str:
    """Return a number with its noun, given in the plural."""
    number = _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"
    return f"{number} {singular(nouns) if n == 1 else nouns}"


def _section(changes: Changes) -> str:
    texts = _Texts(changes, lambda text: f"<bdi>{html.escape(shown(text), quote=True)}</bdi>")
    first, *others = texts.lines()
    items = "".join(f"<li>{line.strip()}</li>" for line in others if line.startswith("  "))
    notes = "".join(f"<p>{line}</p>" for line in others if not line.startswith("  "))
    details = "".join(f"<p>{line}</p>" for line in texts.details())
    listed = f"<ul>{items}</ul>" if items else ""
    folded = f"<details><summary>Details</summary>{details}</details>"
    return f"<section><p>{first}</p>{listed}{notes}{folded}</section>"
