"""Raw tables: numbers, categories, dates and holes, as pandas, Polars or Arrow frames or arrays."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.attributes import Attribute, Statement, Words, encode, sorted_rows
from anchorline.spaces.base import Literal
from anchorline.spaces.columns import CATEGORY, DATE, Column, listed, read_columns, read_table
from anchorline.spaces.natives import Cells, Natives, natives_of
from anchorline.spaces.options import (
    check_called,
    check_choices,
    check_unfixed,
    checked_groups,
    cut_points,
    known,
    level_text,
)
from anchorline.spaces.rows import Schema, plain, types_of
from anchorline.spaces.snapshot import snapshot
from anchorline.spaces.values import alike

_MAX_EXAMPLES = 10_000  # training rows shown to a model to learn the range of its outputs
_EXAMPLES_A_BATCH = 4096
_CELLS_AT_ONCE = 50_000  # looked at together: what is computed on the way stays in the processor's cache


class Table:
    """Rows of a table; a flip takes the attribute's value from a training row that breaks the literal.

    One literal an attribute, true of the row: an interval of numbers or dates, a category, "is missing".
    Neighbors are put together from the row's own values and values of training rows, so that every one of
    them has possible values, types and categories.

    Parameters
    ----------
    frame
        The training table, without the target: a pandas, Polars or Arrow frame, or a 2-D array.
    names
        Column names of an array; without them x0, x1, ...
    n_bins
        Numbers and dates are cut at so many quantiles (4); a value many rows share stands alone.
    cuts
        Column to cut points: ``{"age": [30, 40, 50]}`` gives ``30 <= age < 40``; dates as ``"2018-03-04"``.
    groups
        Columns that form one attribute and flip together, copied from one training row: one-hot
        indicators, an address. ``{"place": ["latitude", "longitude"]}``, or a list of lists.
    fixed
        Columns that never change.
    within
        "keep": an unflipped attribute keeps its value. "redraw": it takes the value of a training row for
        which the literal is true, so that a statement about the whole interval is what is tested.
    rare
        Categories of a smaller share (0.01) of the training rows go together.
    categorical
        Columns of numbers to be read as categories; as a mapping, what each value is called:
        ``{"sex": {0: "female", 1: "male"}}``.

    Examples
    --------
    >>> table = Table(np.array([[25, 0], [38, 1], [47, 0], [52, 1], [61, 0]]), names=["age", "member"])
    >>> [literal.text for literal in table.at({"age": 40, "member": 1}).literals]
    ['38 <= age < 47', 'member = 1']
    >>> [literal.held for literal in table.at({"age": 40, "member": 1}).literals]
    ['age keeps its value 40', 'member = 1']
    """

    def __init__(
        self,
        frame: Any,
        *,
        names: Sequence[str] | None = None,
        n_bins: int = 4,
        cuts: Mapping[str, Sequence[Any]] | None = None,
        groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]] = (),
        fixed: Iterable[str] = (),
        within: str = "keep",
        rare: float = 0.01,
        categorical: Mapping[str, Mapping[Any, str]] | Iterable[str] = (),
    ) -> None:
        check_choices(n_bins, cuts, within, rare)
        self.schema = _schema_of(frame, names)
        self.names, self.within = self.schema.names, within
        self.fixed = tuple(known(fixed, self.names, "fixed"))
        self.groups = checked_groups(groups or {}, self.names, self.fixed)
        shown, cuts = self._shown(categorical), cuts or {}
        edges = {name: self._edges(name, cuts[name]) for name in known(cuts, self.names, "cuts")}
        check_unfixed(edges, self.fixed)
        told = {name: points.tolist() for name, points in edges.items()}
        self._settings = [int(n_bins), told, self.groups, self.fixed, within, float(rare), shown]
        attributes: list[Attribute] = []

        def orders() -> Iterator[tuple[int, np.ndarray]]:  # one at a time: all together are as large as the table
            for attribute, order in self._encoded(int(n_bins), edges, rare, shown):
                attributes.append(attribute)
                yield from ((j, order) for j in attribute.positions)

        self._pool = self.schema.natives.arranged(orders())
        self._attributes = self._compared(attributes)
        positions = [attribute.positions for attribute in attributes]
        self._members = np.array(list(itertools.zip_longest(*positions, fillvalue=-1)), dtype=np.intp)

    def _shown(self, categorical: Mapping[str, Mapping[Any, str]] | Iterable[str]) -> dict[str, dict[str, str]]:
        """Columns to be read as categories, and what the text of each level is called."""
        found = {}
        for name in known(categorical, self.names, "categorical"):
            column, told = self._column(name), self.schema.types[self.names.index(name)]
            if column.kind == DATE:
                raise ParameterError(f"categorical has {name!r}, which holds dates; needed numbers or categories.")
            called = categorical[name] if isinstance(categorical, Mapping) else {}
            if not isinstance(called, Mapping):
                raise ParameterError(
                    f"categorical[{name!r}] is {called!r}; needed a mapping: {{0: 'female', ...}}."
                )
            found[name] = {level_text(key, column.kind): str(text) for key, text in called.items()}
            check_called(name, found[name], column, told.categories or ())
        return found

    def _edges(self, name: str, cuts: Any) -> np.ndarray:
        return cut_points(cuts, self._column(name), name)

    def _column(self, name: str) -> Column:
        return self.schema.columns[self.names.index(name)]

    def _encoded(
        self,
        n_bins: int,
        edges: Mapping[str, np.ndarray],
        rare: float,
        shown: Mapping[str, Mapping[str, str]],
    ) -> Iterator[tuple[Attribute, np.ndarray]]:
        """Every attribute that may change, and the training rows as it sorts them."""
        grouped = {name: group for group, members in self.groups.items() for name in members}
        members: dict[str, list[int]] = {}
        for j, name in enumerate(self.names):
            if name not in self.fixed:
                members.setdefault(grouped.get(name, name), []).append(j)
        for name, positions in members.items():
            columns = [self.schema.columns[j] for j in positions]
            encodings = [
                encode(
                    self.names[j],
                    column,
                    n_bins=n_bins,
                    cuts=edges.get(self.names[j]),
                    rare=rare,
                    shown=shown.get(self.names[j]),
                    zone=" UTC" if self.schema.types[j].zoned else "",
                )
                for j, column in zip(positions, columns, strict=True)
            ]
            yield sorted_rows(name, positions, encodings, columns)

    def _compared(self, attributes: Sequence[Attribute]) -> tuple[Attribute, ...]:
        """Where every literal has one other side at most: also whether that side's rows are alike."""
        if any(len(attribute.numbers) > 2 for attribute in attributes):  # no neighborhood is deterministic
            return tuple(attributes)
        return tuple(
            replace(a, alike=tuple(self._alike(a, *ends) for ends in itertools.pairwise(a.starts)))
            for a in attributes
        )

    def _alike(self, attribute: Attribute, start: int, stop: int) -> bool:
        """Dates are not: some libraries hold more of them than can be compared in all."""
        return all(
            self.schema.columns[j].kind != DATE and alike(self._pool.pick(j, np.arange(start, stop)))
            for j in attribute.positions
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of names, kinds, values and choices; the same for equal pandas, Polars and Arrow tables."""
        digest = hashlib.sha256(json.dumps([self.names, self._settings], default=str).encode())
        for column in self.schema.columns:
            digest.update(column.kind.encode() + column.missing.tobytes())
            values = np.where(column.missing, "" if column.kind == CATEGORY else 0.0, column.values)
            digest.update(json.dumps(values.tolist()).encode() if column.kind == CATEGORY else values.tobytes())
        return "table:" + digest.hexdigest()

    def at(self, instance: Any) -> "TableNeighborhood":
        """The neighborhood of a row: dict, Series, frame of one row, list, or the position of a training row."""
        row, columns = self.schema.read(instance)
        return TableNeighborhood(
            self._pool, self._attributes, self._members, self.schema.n_rows, row, columns, self.fixed, self.within
        )

    def unclear(self, instance: Any) -> list[str]:
        """Columns in which training rows read like this one and yet have other values: None and NaN, 1 and "1"."""
        return self.schema.unclear(instance)

    def examples(self) -> Iterator[Any]:
        """Training rows as model inputs, in batches; evenly spread where there are more than 10,000."""
        n = self.schema.n_rows
        rows = np.unique(np.linspace(0, n - 1, min(n, _MAX_EXAMPLES)).astype(np.intp))
        for start in range(0, len(rows), _EXAMPLES_A_BATCH):
            yield self.schema.natives.rows(rows[start : start + _EXAMPLES_A_BATCH])


@dataclass(frozen=True, eq=False)
class TableNeighborhood:
    """A row of a table, and the rows that break some of its literals.

    ``pool`` has every column of the ``n_training`` rows sorted by what is true of them. ``members`` are the first
    column of every attribute, the second ..., -1 where it has fewer: (most, attributes).
    """

    pool: Natives
    attributes: tuple[Attribute, ...]
    members: np.ndarray
    n_training: int
    row: tuple[Any, ...]
    columns: tuple[Column, ...]
    held: tuple[str, ...]
    within: str

    @cached_property
    def _codes(self) -> list[tuple[int, ...]]:
        """The row's codes, an attribute each."""
        return [attribute.codes(columns) for attribute, columns in zip(self.attributes, self._parts, strict=True)]

    @cached_property
    def _parts(self) -> list[list[Column]]:
        """The row's columns, by attribute."""
        return [[self.columns[j] for j in attribute.positions] for attribute in self.attributes]

    @cached_property
    def _blocks(self) -> np.ndarray:
        """Start and stop, in the pool, of the training rows that keep an attribute's literal: (2, attributes)."""
        blocks = [a.block(codes) for a, codes in zip(self.attributes, self._codes, strict=True)]
        return np.array(blocks, dtype=np.intp).reshape(-1, 2).T

    @cached_property
    def _breakable(self) -> np.ndarray:
        """The attributes whose literal some training row breaks: (d,) of their numbers."""
        start, stop = self._blocks
        kept = np.flatnonzero(stop - start < self.n_training)
        if not len(kept):
            raise InstanceError(
                "No training row differs from this row in any literal: there are no neighbors. Give a larger "
                "training table, more bins (n_bins), cuts, or fewer fixed columns."
            )
        return kept

    @cached_property
    def _keeping(self) -> np.ndarray:
        """Start and stop, in the pool, of the training rows that keep a literal: (2, d)."""
        return self._blocks[:, self._breakable]

    @cached_property
    def fixed(self) -> dict[str, str]:
        """Attributes that never change here, and why."""
        unbroken = sorted(set(range(len(self.attributes))) - {*self._breakable.tolist()})
        return {name: "held fixed as asked" for name in self.held} | {
            self.attributes[i].name: f"no training row breaks {self._statement(i).text!r}" for i in unbroken
        }

    @cached_property
    def literals(self) -> tuple[Literal, ...]:
        """One a breakable attribute, in the order of the columns."""
        return tuple(self._literal(i) for i in self._breakable.tolist())

    @cached_property
    def key(self) -> bytes:
        """The row's values, as JSON."""
        return b"table:" + json.dumps(self.instance).encode()

    @property
    def original(self) -> Any:
        """The row, as a table of one row of the training table's type; a copy, which the model may spoil."""
        return self.pool.neighbors(self.row, 1, ())

    @cached_property
    def deterministic(self) -> bool:
        """Whether every literal can be broken in one way only: then all neighbors can be enumerated."""
        return self.within == "keep" and all(
            self.attributes[i].breaks_one_way(self._codes[i]) for i in self._breakable
        )

    @cached_property
    def instance(self) -> list[Any]:
        """The row in plain values, in the order of the columns."""
        return [plain(column, native) for column, native in zip(self.columns, self.row, strict=True)]

    def realize(self, flips: np.ndarray, rng: np.random.Generator | None) -> Any:
        """Put every neighbor together: flipped attributes from a training row that breaks the literal.

        A draw is a 32-bit word scaled to the number of rows to draw from; the law is met to 2^-32 a row.
        """
        flipped = np.ascontiguousarray(np.asarray(flips, dtype=bool).T)
        if flipped.ndim != 2 or len(flipped) != len(self._breakable):
            raise ParameterError(f"flips have shape {np.shape(flips)}; needed (n, {len(self._breakable)}).")
        if rng is None and not self.deterministic:
            raise ParameterError("A table draws values: realize(flips, rng) needs a random generator.")
        return self.pool.neighbors(self.row, len(flips), self._drawn(flipped, Words(rng)))

    def _drawn(self, flipped: np.ndarray, words: Words) -> Iterator[Cells]:
        """The cells to draw, some literals at a time: all that is looked at then fits into a processor's cache."""
        step = max(1, _CELLS_AT_ONCE // max(1, flipped.shape[1]))
        for first in range(0, len(flipped), step):
            yield from self._cells(flipped[first : first + step], slice(first, first + step), words)

    def _cells(self, flipped: np.ndarray, literals: slice, words: Words) -> list[Cells]:
        """The cells of some literals: of flipped ones from a row that breaks it, else, if asked, that keeps it."""
        (start, stop), n = self._keeping[:, literals], flipped.shape[1]
        asked = flipped
        if self.within == "redraw":  # no training row to draw from: the value stays
            asked = flipped | (start < stop)[:, None]
        (at,) = asked.reshape(-1).nonzero()
        ends = at.searchsorted(np.arange(len(start) + 1) * n)
        counts = ends[1:] - ends[:-1]
        begin, size = stop.repeat(counts), (self.n_training - stop + start).repeat(counts)
        if self.within == "redraw":
            broken = flipped.reshape(-1)[at]
            begin = np.where(broken, begin, start.repeat(counts))
            size = np.where(broken, size, (stop - start).repeat(counts))
        first, *others = self._columns[:, literals]
        cells = Cells(first, counts, at, self._rows(begin, size, words.take(len(at))))
        return [cells, *(cells.of(columns, n) for columns in others)]

    def _rows(self, begin: np.ndarray, size: np.ndarray, words: np.ndarray) -> np.ndarray:
        """One of the ``size`` rows of the pool that ``begin`` there, for each; both are written over.

        After the last row comes the first: so all that break a literal lie side by side, too.
        """
        rows = size.view(np.uint64)
        rows *= words
        rows >>= np.uint64(32)
        rows += begin.view(np.uint64)
        around = np.subtract(rows, np.uint64(self.n_training), out=begin.view(np.uint64))
        return np.minimum(rows, around, out=rows).view(np.intp)  # less than nothing is more than anything

    @cached_property
    def _columns(self) -> np.ndarray:
        """`members` of the literals: (most, d)."""
        return self.members[:, self._breakable]

    def _literal(self, i: int) -> Literal:
        attribute, statement = self.attributes[i], self._statement(i)
        kept = self.within == "keep" or not np.ptp(self._blocks[:, i])  # no training row to draw from: it stays
        held = attribute.kept(self._parts[i], statement) if kept else statement.text
        return Literal(attribute.name, statement.text, held)

    def _statement(self, i: int) -> Statement:
        return self.attributes[i].statement(self._parts[i], self._codes[i])


def _schema_of(frame: Any, names: Sequence[str] | None) -> Schema:
    """Read the training table; `ParameterError` where it cannot be one."""
    table, _ = read_table(frame, ParameterError)
    # The user may change the frame later; what is known of it must stay true.
    native = snapshot(table if isinstance(table, np.ndarray) else table.to_native())
    table, given = read_table(native, ParameterError)
    natives = natives_of(native)
    if natives is None:
        raise ParameterError(
            f"The table is a {type(frame).__module__}.{type(frame).__name__}; needed a pandas, Polars or Arrow "
            "table or a 2-D array. Convert it, e.g. `frame.to_pandas()`."
        )
    if 0 in table.shape:
        raise ParameterError(f"The table has shape {table.shape}; needed at least one row and one column.")
    if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
        raise ParameterError(f"names is {names!r}; needed a list of column names. Type names=['age', 'member'].")
    names = None if names is None else [str(name) for name in names]
    if names is not None and (given is not None or len(names) != table.shape[1]):
        came = "a frame has its own names" if given is not None else f"the array has {table.shape[1]} columns"
        raise ParameterError(f"names has {len(names)} entries; {came}. Leave it out, or name every column.")
    told = given or names or [f"x{j}" for j in range(table.shape[1])]
    if len(set(told)) < len(told):
        raise ParameterError(f"Column names must differ; given: {listed(told)}. Rename one.")
    columns = tuple(read_columns(table, told, ParameterError))
    return Schema(tuple(told), columns, natives, types_of(native, natives))
