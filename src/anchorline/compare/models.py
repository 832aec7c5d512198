"""How a new model differs from an old one: on rows in random order, by the same altered copies of each."""

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from anchorline.compare.pairs import REFUTED, Answers, Pair, broken_rule, label_text, pair, share_of
from anchorline.errors import AnchorlineError, ParameterError
from anchorline.explainer import Explainer
from anchorline.guarantees.limits import lower_limit, mean_width
from anchorline.laws import Random
from anchorline.model.outputs import classes_of
from anchorline.result.comparison import (
    Amount,
    AttributeChange,
    BrokenRule,
    ChangedRow,
    Comparison,
    Gate,
    Move,
    Outcome,
    Part,
    judged,
)
from anchorline.result.explanation import Output, Share
from anchorline.search.assemble import VERSIONS
from anchorline.settings import Keywords, RuleSettings, Settings, checked_count
from anchorline.spaces.base import Space
from anchorline.spaces.columns import CATEGORY, Column, text_of, to_narwhals
from anchorline.spaces.table import Table, TableRows

Check = Callable[[], object] | None
MOST_DECIDED = 10_000  # rows whose decisions are compared
FEWEST_ROWS = 30  # of which a mean is normal enough for its limits
_MORE_ROWS = 50  # that are explained at once
_MOST_ROUNDS = 5  # times as many rows as asked for are explained, if a gate is not decided
_MOST_RULES = 50
_MOST_VALUES = 10  # of a column that divides rows into groups; of numbers, quarters
_SHOWN_ROWS = 10
_SAME = 0.1  # of the spread of outputs, within which a number counts as decided alike
_CHANCE = 0.5  # of agreement between halves that see noise
_TINY = 1e-6  # of the spread: a difference of effects that only rounding makes
OLD_DECISION = "old decision"  # the name of the output, if each row's is that of its own class
_PROTECTED = 0.05  # of the spread, by which the effect of a protected attribute may rise


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSettings(Keywords):
    """The keywords of `compare`, which describes them."""

    n: int = 200
    groups: tuple[str, ...] = ()
    within: float | None = None
    rules: int = 0
    max_decisions: float | None = None
    max_reasons: float | None = None
    protect: tuple[str, ...] = ()
    sigma: float = 1.0
    seed: int = 0
    confidence: float = 0.95

    def _check(self) -> None:
        checked_count("n", self.n, FEWEST_ROWS, "n=200")
        checked_count("rules", self.rules, 0, "rules=20")
        if self.rules > _MOST_RULES:
            raise ParameterError(f"rules is {self.rules}, but it must be at most {_MOST_RULES}. Type rules=20.")
        for name in ("groups", "protect"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise ParameterError(
                    f"{name} is {given!r}; it must be a list of columns. Type {name}=[{given!r}]."
                )
            object.__setattr__(self, name, tuple(given))
        for name in ("max_decisions", "max_reasons"):
            most = getattr(self, name)
            if most is not None and not (isinstance(most, int | float) and 0 <= most < 1):
                raise ParameterError(f"{name} is {most!r}, but it must be a share. Type {name}=0.02.")
        if self.within is not None and not (isinstance(self.within, int | float) and self.within > 0):
            raise ParameterError(f"within is {self.within!r}, but it must be a number above 0. Type within=10.")
        if self.common.sigma == 0:
            raise ParameterError(
                "sigma is 0, so copies keep none of the row's values, and what a value adds cannot be seen. Type "
                "sigma=1.0."
            )

    @property
    def common(self) -> Settings:
        """The settings by which each row is explained."""
        return Settings(sigma=self.sigma, seed=self.seed, confidence=self.confidence)


def compare_models(
    old: Any,
    new: Any,
    table: Table,
    frame: Any,
    settings: CompareSettings,
    choices: Mapping[str, Any],
    check: Check = None,
) -> Comparison:
    """Compare two models on rows of a frame; ``choices`` are keywords of `Explainer` for both."""
    work = comparing(old, new, table, frame, settings, choices, check)
    while True:
        try:
            next(work)
        except StopIteration as done:
            found: Comparison = done.value
            return found


def comparing(
    old: Any,
    new: Any,
    table: Table,
    frame: Any,
    settings: CompareSettings,
    choices: Mapping[str, Any],
    check: Check = None,
) -> Generator[float, None, Comparison]:
    """Yield, before each row, the share of the rows that are done; return what `compare_models` returns."""
    known = [labels for labels in (classes_of(model) for model in (old, new)) if labels is not None]
    if len(known) == 1 and choices.get("task") is None:  # an estimator and a function, of the same columns
        choices = {"classes": known[0]} | {name: value for name, value in choices.items() if value is not None}
    with _naming("old"):
        first = Explainer(old, table, **choices)
    with _naming("new"):
        second = Explainer(new, table, **choices)
    ignored = {*first.columns.ignored} & {*second.columns.ignored}
    space = table.holding(ignored) if ignored else table  # in which only what both ignore never changes
    first, second = first.over(space), second.over(space)
    return (yield from _Comparing(first, second, read_rows(first.space, frame), settings, check).run())


@contextmanager
def _naming(which: str) -> Iterator[None]:
    """Say of which model an error is."""
    try:
        yield
    except AnchorlineError as error:
        error.args = (f"The {which} model cannot be compared. {error}", *error.args[1:])
        raise


def read_rows(table: Space, frame: Any) -> TableRows:
    """Return the rows of a frame or an array as rows of the table."""
    assert isinstance(table, Table)
    part = to_narwhals(frame, ParameterError, eager_only=True)
    if not len(frame):
        raise ParameterError(f"There are no rows to compare. Pass a frame with at least {FEWEST_ROWS} rows.")
    read = table.rows(np.asarray(frame) if isinstance(frame, list | tuple) else part)
    if read is None:
        names = [str(name) for name in getattr(frame, "columns", ())]
        lacks = [name for name in table.names if name not in names]
        what = f"lack the column {lacks[0]!r}" if names and lacks else f"are of type {type(frame).__name__}"
        raise ParameterError(f"The rows {what}. They must be a frame or an array with the table's columns.")
    return read


def shuffled(rows: TableRows, most: int, seed: int, stream: str) -> np.ndarray:
    """Return the numbers of rows in the order of this seed, at most ``most``; raise for too few."""
    chosen = np.argsort(Random.of(seed, b"compare", stream).uniforms(len(rows)), kind="stable")[:most]
    if len(chosen) < FEWEST_ROWS:
        raise ParameterError(
            f"There are {len(chosen)} rows to compare, but at least {FEWEST_ROWS} are needed for limits of means. "
            "Pass more rows."
        )
    return chosen


@dataclass(eq=False)
class _Comparing:
    old: Explainer
    new: Explainer
    rows: TableRows
    settings: CompareSettings
    check: Check
    pairs: list[Pair] = field(default_factory=list)

    def run(self) -> Generator[float, None, Comparison]:
        settings = self.settings
        self.order = shuffled(self.rows, MOST_DECIDED, settings.seed, "rows")
        self.answers: list[Answers] = []
        for which, explainer in (("old", self.old), ("new", self.new)):
            with _naming(which):
                self.answers.append(Answers.of(explainer, self.rows, self.order))
        self._check_kinds()
        outputs = self.answers[0].outputs
        low, high = (0.0, 1.0) if outputs is None else np.quantile(outputs, (0.05, 0.95))
        self.spread = float(high - low)
        self.within = self._tolerance()
        self.differs = self._differing()
        self.names = self._attribute_names()
        gates_need_rows = settings.max_reasons is not None or bool(settings.protect)
        most = min(len(self.order), settings.n * (_MOST_ROUNDS if gates_need_rows else 1))
        while len(self.pairs) < most:
            n = len(self.pairs)
            for place in range(n, min(max(settings.n, n + _MORE_ROWS * (n >= settings.n)), most)):
                yield self._progress(place, most)
                number, differs = int(self.order[place]), bool(self.differs[place])
                row = self.rows.at(number)
                self.pairs.append(pair(self.old, self.new, row, number, settings.common, differs))
            if all(gate.outcome is not Outcome.UNDECIDED for gate in self._gates() if gate.what != "decisions"):
                break
        rules: list[BrokenRule] = []
        for i, number in enumerate(self._kept_rows()):
            yield self._progress(len(self.pairs) + i, len(self.pairs))
            rules += self._broken(number)
        return self._assemble(tuple(rules))

    def _progress(self, done: int, most: int) -> float:
        """Return the share of the rows that are done, those of rules included; stop if nobody waits."""
        if self.check is not None:
            self.check()
        return done / (most + min(self.settings.rules, most))

    def _check_kinds(self) -> None:
        old, new = self.answers
        for what, first, second in (
            ("scores or numbers", old.outputs, new.outputs),
            ("decisions", old.decisions, new.decisions),
        ):
            if (first is None) != (second is None):
                which = ("old", "new") if second is None else ("new", "old")
                raise ParameterError(
                    f"The {which[0]} model returns {what}, and the {which[1]} one does not. Compare models that "
                    "return the same: pass both as functions, or give task= or threshold=."
                )
        if old.decisions is None or new.decisions is None or self.old.threshold is not None:
            return
        known = [each.target.classes for each in (self.old, self.new)]
        decided = old.decisions, new.decisions
        ours, theirs = (
            sorted({*map(label_text, labels or own)}) for labels, own in zip(known, decided, strict=True)
        )
        if ours != theirs if None not in known else not {*ours} & {*theirs}:
            raise ParameterError(
                f"The old model has the classes {', '.join(ours)}, and the new one {', '.join(theirs)}. Compare "
                "models with the same classes; classes= names the columns of a function's answers."
            )

    def _tolerance(self) -> float | None:
        if self.answers[0].decisions is not None:
            if self.settings.within is not None:
                raise ParameterError(
                    "within is meant for numbers, but these models return decisions. Leave it out."
                )
            return None
        return self.settings.within or _SAME * self.spread

    def _differing(self) -> np.ndarray:
        (old, new), within = self.answers, self.within
        if old.decisions is not None and new.decisions is not None:
            texts = (np.array([*map(label_text, each)], dtype=object) for each in (old.decisions, new.decisions))
            return np.asarray(np.not_equal(*texts), dtype=bool)
        assert old.outputs is not None
        assert new.outputs is not None
        assert within is not None
        return np.asarray(np.abs(old.outputs - new.outputs) > within)

    def _attribute_names(self) -> tuple[str, ...]:
        names = self.old.space.at(0).names
        unknown = [name for name in self.settings.protect if name not in names]
        if unknown:
            raise ParameterError(f"protect has {unknown[0]!r}, but the attributes are {', '.join(names)}.")
        lacking = [name for name in self.settings.groups if name not in self.old.space.names]
        if lacking:
            raise ParameterError(
                f"groups has {lacking[0]!r}, which the table lacks: {', '.join(self.old.space.names)}."
            )
        return names

    # Figures

    @property
    def _failure(self) -> float:
        """Of each of the five kinds of figures: decisions, parts, reasons, attributes, rules."""
        return (1 - self.settings.confidence) / 5

    def _reasons(self) -> Share | None:
        """Return the share of old explanations that are refuted; the lower limit leaves room for wrong ones."""
        refuted = np.array([not each.kept for each in self.pairs if each.kept is not None])
        if not refuted.size:
            return None
        share = share_of(refuted, self._failure)
        return replace(share, low=max(0.0, (share.low - REFUTED) / (1 - REFUTED)))

    def _products(self) -> np.ndarray:
        """Return the unbiased estimates of squared effects, (rows, 4, attributes): old, new, both, difference."""
        effects = np.stack([each.effects for each in self.pairs])  # rows, models, halves, attributes
        old, new = effects[:, 0], effects[:, 1]
        both = (old[:, 0] * new[:, 1] + old[:, 1] * new[:, 0]) / 2
        change = new - old
        return np.stack([old[:, 0] * old[:, 1], new[:, 0] * new[:, 1], both, change[:, 0] * change[:, 1]], axis=1)

    def _attributes(self) -> Iterator[AttributeChange]:
        """Yield how each attribute acts in both models.

        That it acts differently is shown by the mean square of the difference, or by its sign: both halves of the
        copies agree on it in more than half of the rows. Signs see a small difference in most rows, squares see a
        large one in few.
        """
        products = self._products()
        means = np.maximum(products.mean(axis=0), 0.0)
        failure = self._failure / (5 * len(self.names))
        least = (_TINY * self.spread) ** 2
        change_low, _ = self._limits(products[:, 3], failure)
        rise_low, rise_high = self._limits(products[:, 1] - products[:, 0], failure)
        _, both_high = self._limits(products[:, 2], failure)
        agree = (products[:, 3] > least).sum(axis=0), (np.abs(products[:, 3]) > least).sum(axis=0)
        for j, name in enumerate(self.names):
            signs_differ = lower_limit(int(agree[0][j]), int(agree[1][j]), failure) > _CHANCE
            move = Move.SAME
            if change_low[j] > least or signs_differ:
                move = Move.MOVED
                if both_high[j] < -least:
                    move = Move.TURNED
                elif rise_low[j] > 0:
                    move = Move.ROSE
                elif rise_high[j] < 0:
                    move = Move.FELL
            old, new, _, change = np.sqrt(means[:, j]).tolist()
            low = float(np.sqrt(max(change_low[j], 0.0))) if move is not Move.SAME else 0.0
            yield AttributeChange(name, move, old, new, change, min(low, change))

    def _limits(self, values: np.ndarray, failure: float) -> tuple[np.ndarray, np.ndarray]:
        """Return both limits of the means of values (rows, m)."""
        mean, n = values.mean(axis=0), len(values)
        width = mean_width(values.std(axis=0, ddof=1), n, failure, self.settings.n)
        return mean - width, mean + width

    def _gates(self) -> Iterator[Gate]:
        settings = self.settings
        for what, most, share in (
            ("decisions", settings.max_decisions, share_of(self.differs, self._failure)),
            ("reasons", settings.max_reasons, self._reasons()),
        ):
            if most is not None:
                figure = Amount(0.0, 0.0, 1.0) if share is None else Amount(share.value, share.low, share.high)
                yield Gate(what, most, figure, judged(figure, most))
        if settings.protect:
            rises, most = self._rises(), _PROTECTED * self.spread
            for name in settings.protect:
                figure = rises[self.names.index(name)]
                yield Gate(name, most, figure, judged(figure, most))

    def _rises(self) -> list[Amount]:
        """Return by how much the typical size of each attribute's effect rises.

        Limits follow from those of the old mean square and of its rise, which is known better than both squares.
        """
        products, failure = self._products(), self._failure / (5 * len(self.names))
        old, rise = products[:, 0], products[:, 1] - products[:, 0]
        sizes = np.sqrt(np.maximum(products[:, :2].mean(axis=0), 0.0))
        limits = zip(*self._limits(old, failure), *self._limits(rise, failure), strict=True)
        rises = []
        for value, (old_low, old_high, rise_low, rise_high) in zip(sizes[1] - sizes[0], limits, strict=True):
            low = _risen(old_high if rise_low > 0 else old_low, rise_low)
            high = _risen(old_low if rise_high > 0 else old_high, rise_high)
            rises.append(Amount(float(np.clip(value, low, high)), low, high))
        return rises

    def _parts(self) -> Iterator[Part]:
        """Yield how often rows of each old decision, and of each group, are decided differently."""
        every, decisions = list[tuple[str | None, str, np.ndarray]](), self.answers[0].decisions
        if decisions is not None:
            words = np.array([self._word(decision) for decision in decisions], dtype=object)
            every += [(None, word, words == word) for word in sorted({*words})]
        for name in self.settings.groups:
            column = self.rows.columns[self.old.space.names.index(name)].taken(self.order)
            every += [(name, value, inside) for value, inside in groups_of(column, name)]
        failure = self._failure / max(1, 2 * len(every))
        for of, value, inside in every:
            share, others = share_of(self.differs[inside], failure), share_of(self.differs[~inside], failure)
            yield Part(of, value, share, share.low > others.high)

    def _cases(self) -> Iterator[ChangedRow]:
        """Yield the rows that changed most: decided differently, then refuted, then with another output."""

        def size(place: int) -> tuple[bool, bool, float]:
            each = self.pairs[place]
            return not self.differs[place], each.kept is not False, -abs(each.new_output - each.old.prediction)

        for place in sorted(range(len(self.pairs)), key=size)[:_SHOWN_ROWS]:
            each, number = self.pairs[place], int(self.order[place])
            outputs = each.old.prediction, each.new_output
            if self.differs[place] or each.kept is False or abs(outputs[1] - outputs[0]) > _TINY * self.spread:
                old, new = (
                    None if own.decisions is None else self._word(own.decisions[place]) for own in self.answers
                )
                yield ChangedRow(number, *outputs, old, new, each.old.facts, each.kept)

    def _word(self, decision: Any) -> str:
        if isinstance(decision, bool | np.bool_) and self.old.threshold is not None:
            return f"{'at or above' if decision else 'below'} {self.old.threshold:g}"
        return label_text(decision)

    def _kept_rows(self) -> list[int]:
        """Return the first rows that both models decide alike, whose old rules the new model may break."""
        n = min(self.settings.rules, len(self.pairs))
        return [*map(int, self.order[:n][~self.differs[:n]])]

    def _broken(self, number: int) -> list[BrokenRule]:
        """Return the old rule of a row if the new model breaks it."""
        own, row = self.settings, self.rows.at(number)
        settings = RuleSettings(
            within=self.within or None, sigma=own.sigma, seed=own.seed, confidence=own.confidence
        )
        failure = self._failure / min(own.rules, len(self.pairs))
        broken = broken_rule(self.old, self.new, row, number, settings, failure, self.check)
        return [] if broken is None else [broken]

    def _assemble(self, rules: tuple[BrokenRule, ...]) -> Comparison:
        one = self.pairs[0].old
        output: Output = replace(one.output, decision=None, runner_up=None)
        if output.kind in ("class", "label") and self.old.target.column is None:
            output = replace(output, name=OLD_DECISION)
        n_rules = min(self.settings.rules, len(self.pairs))
        attributes = sorted(
            self._attributes(), key=lambda each: (each.move is Move.SAME, -each.change, each.attribute)
        )
        return Comparison(
            output=output,
            spread=self.spread,
            within=self.within,
            n_explained=len(self.pairs),
            decisions=share_of(self.differs, self._failure),
            parts=tuple(self._parts()),
            reasons=self._reasons(),
            attributes=tuple(attributes),
            rows=tuple(self._cases()),
            rules=rules,
            n_rules=n_rules,
            gates=tuple(self._gates()),
            settings=self.settings.to_dict(),
            space=one.space,
            versions=VERSIONS,
        )


def _risen(square: float, rise: float) -> float:
    """Return by how much the root of a square rises if the square, which is at least -rise, rises so much."""
    square = max(square, -rise, 0.0)
    return math.sqrt(square + rise) - math.sqrt(square)


def groups_of(column: Column, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the groups of rows by a column: its values, or quarters of numbers and dates; missing values last."""
    present = ~column.missing
    values = column.values[present]
    distinct = np.unique(values) if column.kind != CATEGORY else np.array(sorted({*values}), dtype=object)
    if len(distinct) <= _MOST_VALUES:
        for value in distinct:
            yield text_of(value, column.kind), present & (column.values == value)
    elif column.kind == CATEGORY:
        raise ParameterError(
            f"groups has {name!r}, which has {len(distinct)} values; at most {_MOST_VALUES} are allowed. Leave "
            "it out, or merge values in a column of your own."
        )
    else:
        edges = np.unique(np.quantile(values.astype(np.float64), (0.25, 0.5, 0.75), method="higher"))
        numbers = np.where(present, column.values, 0).astype(np.float64)
        place = np.searchsorted(edges, numbers, side="right")
        texts = [text_of(edge, column.kind) for edge in edges]
        between = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
        for part, label in enumerate([f"below {texts[0]}", *between, f"{texts[-1]} or more"]):
            yield label, present & (place == part)
    if column.missing.any():
        yield "missing", column.missing.copy()
