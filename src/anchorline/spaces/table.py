"""Raw tables: numbers, categories, dates and holes, as pandas, Polars or Arrow frames or arrays."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.columns import CATEGORY, DATE, Column, listed, read_column, read_table
from anchorline.errors import InstanceError, ParameterError
from anchorline.literals import Literal
from anchorline.spaces.attributes import Attribute, encode
from anchorline.spaces.natives import Natives, natives_of
from anchorline.spaces.rows import Schema, as_kind, plain, types_of

WITHIN = ("keep", "redraw")
_MOST_EXAMPLES = 10_000  # training rows shown to a model to learn the range of its outputs
_EXAMPLES_A_BATCH = 4096


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
        _check_choices(n_bins, within, rare)
        self._schema = _schema_of(frame, names)
        self.names, self.within = self._schema.names, within
        self.fixed = tuple(_known(fixed, self.names, "fixed"))
        self.groups = _checked_groups(groups, self.names, self.fixed)
        shown = dict(categorical) if isinstance(categorical, Mapping) else {name: {} for name in categorical}
        cuts = dict(cuts or {})
        _known(shown, self.names, "categorical")
        _known(cuts, self.names, "cuts")
        self._settings = [n_bins, cuts, self.groups, self.fixed, within, rare, shown]
        self._attributes = self._encode(n_bins, cuts, rare, shown)

    def _encode(
        self, n_bins: int, cuts: Mapping[str, Any], rare: float, shown: Mapping[str, Any]
    ) -> list[Attribute]:
        grouped = {name: group for group, members in self.groups.items() for name in members}
        members: dict[str, list[int]] = {}
        for j, name in enumerate(self.names):
            if name not in self.fixed:
                members.setdefault(grouped.get(name, name), []).append(j)
        attributes = []
        for attribute, positions in members.items():
            encodings = []
            for j in positions:
                name, column = self.names[j], self._schema.columns[j]
                edges = _cut_points(cuts[name], column, name) if name in cuts else None
                encodings.append(encode(name, column, n_bins=n_bins, cuts=edges, rare=rare, shown=shown.get(name)))
            columns = [self._schema.columns[j] for j in positions]
            parts = tuple(e.codes(column) for e, column in zip(encodings, columns, strict=True))
            attributes.append(Attribute(attribute, tuple(positions), tuple(encodings), parts))
        return attributes

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of names, kinds, values and choices; the same for equal pandas, Polars and Arrow tables."""
        digest = hashlib.sha256(json.dumps([self.names, self._settings], default=str).encode())
        for column in self._schema.columns:
            digest.update(column.kind.encode() + column.missing.tobytes())
            values = np.where(column.missing, "" if column.kind == CATEGORY else 0.0, column.values)
            digest.update(json.dumps(values.tolist()).encode() if column.kind == CATEGORY else values.tobytes())
        return "table:" + digest.hexdigest()

    def at(self, instance: Any) -> "TableNeighborhood":
        """The neighborhood of a row: dict, Series, frame of one row, list, or the position of a training row."""
        natives = self._schema.read(instance)
        table, _ = read_table(self._schema.natives.assemble(natives), InstanceError)
        columns = [
            as_kind(read_column(table, j, name, InstanceError), self._schema.columns[j].kind)
            for j, name in enumerate(self.names)
        ]
        return TableNeighborhood(
            self._schema.natives, tuple(self._attributes), natives, columns, self.fixed, self.within
        )

    def examples(self) -> Iterator[Any]:
        """Training rows as model inputs, in batches; evenly spread where there are more than 10,000."""
        n = len(self._schema.columns[0].values)
        rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_EXAMPLES)).astype(np.intp))
        natives = self._schema.natives
        for start in range(0, len(rows), _EXAMPLES_A_BATCH):
            some = rows[start : start + _EXAMPLES_A_BATCH]
            yield natives.assemble([natives.pick(column, some) for column in natives.columns])


@dataclass(frozen=True, eq=False)
class TableNeighborhood:
    """A row of a table, and the rows that break some of its literals."""

    natives: Natives
    attributes: tuple[Attribute, ...]
    row: tuple[Any, ...]
    columns: list[Column]
    held: tuple[str, ...]
    within: str

    @cached_property
    def _breakable(self) -> list[tuple[Attribute, int, int]]:
        """Attributes whose literal some training row breaks, with the block of rows that do not."""
        found = [(attribute, *attribute.block(self._of(attribute))) for attribute in self.attributes]
        kept = [entry for entry in found if entry[2] - entry[1] < entry[0].n_rows]
        if not kept:
            raise InstanceError(
                "No training row differs from this row in any literal: there are no neighbors. Give a larger "
                "training table, more bins (n_bins), cuts, or fewer fixed columns."
            )
        return kept

    @cached_property
    def fixed(self) -> dict[str, str]:
        """Attributes that never change here, and why."""
        breakable = {attribute.name for attribute, _, _ in self._breakable}
        unbroken = [a for a in self.attributes if a.name not in breakable]
        return {name: "held fixed as asked" for name in self.held} | {
            a.name: f"no training row breaks {a.statement(self._of(a)).text!r}" for a in unbroken
        }

    @cached_property
    def literals(self) -> tuple[Literal, ...]:
        """One a breakable attribute, in the order of the columns."""
        return tuple(self._literal(attribute) for attribute, _, _ in self._breakable)

    @cached_property
    def key(self) -> bytes:
        """The row's values, as JSON."""
        return b"table:" + json.dumps(self.instance).encode()

    @property
    def original(self) -> Any:
        """The row, as a table of one row of the training table's type."""
        return self.natives.assemble(self.row)

    @cached_property
    def deterministic(self) -> bool:
        """Whether every literal can be broken in one way only: then all neighbors can be enumerated."""
        return self.within == "keep" and all(a.breaks_one_way(self._of(a)) for a, _, _ in self._breakable)

    @cached_property
    def instance(self) -> list[Any]:
        """The row in plain values, in the order of the columns."""
        return [plain(column, native) for column, native in zip(self.columns, self.row, strict=True)]

    def realize(self, flips: np.ndarray, rng: np.random.Generator | None) -> Any:
        """Put every neighbor together: flipped attributes from a training row that breaks the literal.

        A draw is a 32-bit word scaled to the number of rows to draw from; the law is met to 2^-32 a row.
        """
        sources = self._sources(flips, rng)
        return self.natives.assemble(
            [
                self.natives.pick(column, sources[at])
                for column, at in zip(self._pool, self._source_of, strict=True)
            ]
        )

    def _sources(self, flips: np.ndarray, rng: np.random.Generator | None) -> list[np.ndarray]:
        """For every breakable attribute, then once for all others: which row of the pool each neighbor takes."""
        own = self.attributes[0].n_rows  # the row itself stands behind the training rows
        sources = []
        for j, (attribute, start, stop) in enumerate(self._breakable):
            source = np.full(len(flips), own)
            broken = flips[:, j]
            outside = _draw(rng, int(broken.sum()), attribute.n_rows - (stop - start))
            source[broken] = attribute.order[np.where(outside < start, outside, outside + (stop - start))]
            if self.within == "redraw" and stop > start:
                source[~broken] = attribute.order[start + _draw(rng, int((~broken).sum()), stop - start)]
            sources.append(source)
        return [*sources, np.full(len(flips), own)]

    @cached_property
    def _pool(self) -> list[Any]:
        """Native columns: all training rows, then the row itself."""
        return [self.natives.behind(j, value) for j, value in enumerate(self.row)]

    @cached_property
    def _source_of(self) -> list[int]:
        """For every column, which of `_sources` it is picked by."""
        found = [len(self._breakable)] * len(self.row)
        for i, (attribute, _, _) in enumerate(self._breakable):
            for j in attribute.positions:
                found[j] = i
        return found

    def _literal(self, attribute: Attribute) -> Literal:
        columns = self._of(attribute)
        text = attribute.statement(columns).text
        return Literal(attribute.name, text, attribute.kept(columns) if self.within == "keep" else text)

    def _of(self, attribute: Attribute) -> list[Column]:
        return [self.columns[j] for j in attribute.positions]


def _draw(rng: np.random.Generator | None, size: int, n: int) -> np.ndarray:
    """Whole numbers below n from raw words: the same on every version of NumPy."""
    if rng is None:
        raise ParameterError("A table draws values: realize(flips, rng) needs a random generator.")
    words = rng.bit_generator.random_raw(size) >> np.uint64(32)
    return ((words * np.uint64(n)) >> np.uint64(32)).astype(np.intp)


def _schema_of(frame: Any, names: Sequence[str] | None) -> Schema:
    """Read the training table; `ParameterError` where it cannot be one."""
    table, given = read_table(frame, ParameterError)
    native = table if isinstance(table, np.ndarray) else table.to_native()
    natives = natives_of(native)
    if natives is None:
        raise ParameterError(
            f"The table is a {type(frame).__module__}.{type(frame).__name__}; needed a pandas, Polars or Arrow "
            "table or a 2-D array. Convert it, e.g. `frame.to_pandas()`."
        )
    if 0 in table.shape:
        raise ParameterError(f"The table has shape {table.shape}; needed at least one row and one column.")
    if names is not None and (given is not None or len(names) != table.shape[1]):
        came = "a frame has its own names" if given is not None else f"the array has {table.shape[1]} columns"
        raise ParameterError(f"names has {len(names)} entries; {came}. Leave it out, or name every column.")
    told = given or ([str(name) for name in names] if names is not None else None)
    told = told or [f"x{j}" for j in range(table.shape[1])]
    if len(set(told)) < len(told):
        raise ParameterError(f"Column names must differ; given: {listed(told)}. Rename one.")
    columns = tuple(read_column(table, j, name, ParameterError) for j, name in enumerate(told))
    return Schema(tuple(told), columns, natives, types_of(native))


def _check_choices(n_bins: int, within: str, rare: float) -> None:
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 2:
        raise ParameterError(f"n_bins is {n_bins!r}; needed a whole number >= 2. Type n_bins=4.")
    if within not in WITHIN:
        raise ParameterError(f"within is {within!r}; needed one of {', '.join(WITHIN)}.")
    if isinstance(rare, bool) or not isinstance(rare, int | float) or not 0 <= rare < 1:
        raise ParameterError(f"rare is {rare!r}; needed a share from 0 to below 1. Type rare=0.01.")


def _known(given: Iterable[str], names: Sequence[str], what: str) -> list[str]:
    """The names given, all of them columns."""
    if isinstance(given, str):
        raise ParameterError(f"{what} is {given!r}; needed a list of columns. Type {what}=[{given!r}].")
    told = [str(name) for name in given]
    unknown = [name for name in told if name not in names]
    if unknown:
        raise ParameterError(f"{what} has {listed(unknown)}, which the table lacks; it has {listed(names)}.")
    return told


def _checked_groups(
    groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]], names: Sequence[str], fixed: Sequence[str]
) -> dict[str, list[str]]:
    """Group name to columns; every column in one group at most, and not fixed."""
    if isinstance(groups, str):
        raise ParameterError(f"groups is {groups!r}; needed e.g. groups={{'place': ['latitude', 'longitude']}}.")
    named = (
        dict(groups) if isinstance(groups, Mapping) else {", ".join(map(str, group)): group for group in groups}
    )
    found = {str(name): _known(members, names, f"groups[{name!r}]") for name, members in named.items()}
    seen: set[str] = set(fixed)
    for name, members in found.items():
        twice = [member for member in members if member in seen]
        if twice or len(set(members)) < len(members) or not members:
            raise ParameterError(f"Group {name!r} is {members}; needed columns, each fixed or in one group only.")
        seen |= set(members)
        if name in names and name not in members:
            raise ParameterError(f"Group {name!r} is called like a column that is not in it. Call it otherwise.")
    return found


def _cut_points(cuts: Sequence[Any], column: Column, name: str) -> np.ndarray:
    """Cut points as numbers; dates count microseconds."""
    try:
        if column.kind == DATE:
            return np.array([np.datetime64(str(cut), "us").astype(np.int64) for cut in cuts], dtype=np.float64)
        points = np.asarray(cuts, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; needed {column.kind} ({error}).") from None
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; needed at least one finite number.")
    return points
