"""Many rows of a table, read together: column by column, in the same way as one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from anchorline.spaces.attributes import Attribute, Way
from anchorline.spaces.columns import BOOLEAN, NUMBER, Column, row_values
from anchorline.spaces.natives import Natives
from anchorline.spaces.rows import Schema
from anchorline.spaces.table import Table, TableNeighborhood
from anchorline.spaces.values import identity_for_model


class RowWays(NamedTuple):
    """How the attributes of n rows change: where their values come from, and which literals each way breaks.

    ``begins`` and ``sizes`` (attributes, 1 + ways, n) are rows of the circular pool, as in `Source`: first those
    of an attribute that keeps its literal, and then those of each way of changing. An attribute that no training
    row breaks has no way. ``breaks`` (3, attributes, ways, n) is whether a way breaks the statement, the first or
    the second bound.
    """

    begins: np.ndarray
    sizes: np.ndarray
    breaks: np.ndarray

    def take(self, rows: np.ndarray) -> "RowWays":
        """Return the ways of some of the rows."""
        return RowWays(*(each[..., rows] for each in self))


def changes_alone(table: Table) -> bool:
    """Return whether every attribute of a row changes by itself, and has at most three literals."""
    alone = table.neighbors == "independent" and table.valid is None
    return alone and table.literals in ("intervals", "bounds")


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table in its own types (``natives``), and as they were read (``columns``)."""

    table: Table
    natives: Natives
    columns: tuple[Column, ...]

    @classmethod
    def read(cls, table: Table, part: Any) -> "TableRows | None":
        """Read a part of a frame (narwhals) or of a 2-D array; None if its rows must be read one by one.

        Raises an error, as reading them one by one does for the row at fault.
        """
        given = _columns_of(part, table.names)
        if given is None:
            return None
        each = [_read(table.schema, j, column) for j, column in enumerate(given)]
        natives, columns = zip(*each, strict=True)
        return cls(table, table.schema.natives.of_columns(natives), columns)

    def __len__(self) -> int:
        return len(self.columns[0].values)

    @property
    def inputs(self) -> Any:
        """All rows as model inputs; a copy, which the model may change."""
        return self.natives.rows(np.arange(len(self)))

    def at(self, i: int) -> TableNeighborhood:
        """Return the neighborhood of row i."""
        columns = [Column(own.kind, own.values[i : i + 1], own.missing[i : i + 1]) for own in self.columns]
        return self.table.around(self.natives.row(i), tuple(columns))

    @cached_property
    def ways(self) -> RowWays:
        """How the attributes of the rows change."""
        each = [self._ways(attribute) for attribute in self.table.attributes]
        n_ways = max((part.breaks.shape[1] for part, _ in each), default=0)
        shape = (len(each), 1 + n_ways, len(self))
        begins, sizes = np.zeros((2, *shape), dtype=np.intp)
        breaks = np.zeros((3, shape[0], n_ways, shape[2]), dtype=bool)
        for number, (part, at) in enumerate(each):
            own = part.breaks.shape[1]
            begins[number, : 1 + own], sizes[number, : 1 + own] = part.begins[:, at], part.sizes[:, at]
            breaks[:, number, :own] = part.breaks[..., at]
        return RowWays(begins, sizes, breaks)

    def _ways(self, attribute: Attribute) -> tuple[RowWays, np.ndarray]:
        """Return how an attribute changes for each of its distinct codes, and which of these each row has."""
        pairs = zip(attribute.encodings, attribute.positions, strict=True)
        codes = [*zip(*(encoding.codes(self.columns[j]).tolist() for encoding, j in pairs), strict=True)]
        numbers = {own: number for number, own in enumerate(dict.fromkeys(codes))}
        sources = [self._sources(attribute, own) for own in numbers]
        n_ways = max(len(ways) for _, ways in sources)
        places, breaks = (
            np.zeros((2, 1 + n_ways, len(sources)), np.intp),
            np.zeros((3, n_ways, len(sources)), bool),
        )
        for i, (kept, ways) in enumerate(sources):
            places[:, 0, i] = kept
            for number, way in enumerate(ways):
                places[:, 1 + number, i] = way[:2]
                breaks[list(way.breaks), number, i] = True
        return RowWays(places[0], places[1], breaks), np.array([numbers[own] for own in codes], dtype=np.intp)

    def _sources(self, attribute: Attribute, own: tuple[int, ...]) -> tuple[tuple[int, int], tuple[Way, ...]]:
        """Return the rows from which an attribute takes values, as `TableNeighborhood.sources` does."""
        table, (start, stop) = self.table, attribute.block(own)
        if stop - start == table.schema.n_rows:
            return (0, 0), ()  # no training row breaks it
        kept = (start, stop - start) if table.within == "redraw" else (0, 0)
        return kept, attribute.drawn(own, table.literals, table.drawing.draw).ways


def _columns_of(part: Any, names: Sequence[str]) -> list[Any] | None:
    """Return the columns in the order of the table; None if they are not all there, once each."""
    if isinstance(part, np.ndarray):
        return list(part.T) if part.ndim == 2 and part.shape[1] == len(names) else None
    if not isinstance(part, nw.DataFrame):
        return None
    by_name = {str(column.name): column for column in part.iter_columns()}
    return [by_name[name] for name in names] if len(by_name) == part.shape[1] and {*names} <= {*by_name} else None


def _read(schema: Schema, j: int, column: Any) -> tuple[Any, Column]:
    """Return a column in the table's own type, and as it was read."""
    own = schema.columns[j]
    numbers = _numbers(column)
    if numbers is not None and own.kind in (NUMBER, BOOLEAN) and not schema.types[j].ambiguous:
        model = schema.natives.pick(j, np.arange(1))
        if isinstance(model, np.ndarray) and model.dtype == numbers.dtype:
            values = numbers.astype(np.float64)
            missing = np.isnan(values)
            native = np.where(missing, np.nan, numbers).astype(model.dtype) if missing.any() else numbers.copy()
            return native, Column(own.kind, values, missing)
    given = column.tolist() if isinstance(column, np.ndarray) else row_values(column)
    numbered: dict[Any, int] = {}
    keys = map(identity_for_model, given)
    at = np.array([numbered.setdefault(key, len(numbered)) for key in keys], dtype=np.intp)
    first = np.unique(at, return_index=True)[1].tolist()
    natives = [schema.cast(j, given[row]) for row in first]
    cells = [schema.reading(j, native) for native in natives]
    values_of = np.concatenate([cell.values for cell in cells])[at]
    missing_of = np.concatenate([cell.missing for cell in cells])[at]
    return schema.natives.joined(j, natives, at), Column(cells[0].kind, values_of, missing_of)


def _numbers(column: Any) -> np.ndarray | None:
    """Return a column of NumPy's own numbers or booleans as an array, without a copy; None for any other."""
    values = column
    if not isinstance(column, np.ndarray):
        native = column.to_native()
        values = native.to_numpy() if isinstance(getattr(native, "dtype", None), np.dtype) else None
    return values if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" else None
