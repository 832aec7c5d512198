"""Results as pandas, Polars or Arrow frames, and what identifies rows for their owner: an index, or ids."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from anchorline.errors import MissingDependencyError, ParameterError

_PLAIN = (bool, int, float, str, datetime, date, timedelta, Decimal)  # a bool is an int, a datetime is a date
_INT64 = range(-(2**63), 2**63)


def frame_in(backend: Any, columns: Mapping[str, list[Any]], kinds: Mapping[str, str] | None = None) -> Any:
    """Return a pandas, Polars or Arrow frame; ``kinds``, if given, are "text", "number", "place" or "any".

    Examples
    --------
    >>> frame_in("pyarrow", {"k": [1, 2]}, {"k": "number"}).to_pydict()
    {'k': [1.0, 2.0]}
    """
    import narwhals as nw

    known, library = nw.Implementation, _library(backend)
    if library not in (known.PANDAS, known.POLARS, known.PYARROW, known.MODIN, known.CUDF):
        raise ParameterError(f"backend is {backend!r}, but it must be 'pandas', 'polars' or 'pyarrow'.")
    types = {"text": nw.String(), "number": nw.Float64(), "place": nw.Int64()}
    try:
        if library is known.PANDAS and kinds is not None:
            return _pandas_frame(columns, kinds)
        if kinds is None:
            return nw.from_dict(columns, backend=library).to_native()
        schema = {name: types[kind] for name, kind in kinds.items() if kind != "any"}
        typed = nw.from_dict({name: columns[name] for name in schema}, schema=schema, backend=library)
        free = [nw.new_series(name, columns[name], backend=library) for name in columns if name not in schema]
        return (typed.with_columns(*free).select(*columns) if free else typed).to_native()
    except ModuleNotFoundError as error:
        message = f"backend is {backend!r}, which is not installed ({error})."
        raise MissingDependencyError(f"{message} Type: pip install {library.name.lower()}") from error


def frame_of(backend: Any, kinds: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Any:
    """Return a frame of rows, whose columns are named and typed by ``kinds``, as in `frame_in`."""
    columns = {name: [row[place] for row in rows] for place, name in enumerate(kinds)}
    return frame_in(backend, columns, kinds)


def _library(backend: Any) -> Any:
    import narwhals as nw

    try:
        return nw.Implementation.from_backend(backend)
    except (AssertionError, TypeError, ValueError):
        return nw.Implementation.UNKNOWN


def _pandas_frame(columns: Mapping[str, list[Any]], kinds: Mapping[str, str]) -> Any:
    """Build by pandas itself: before version 3, casting a missing text to text gives the text "None"."""
    import pandas as pd

    types: dict[str, Any] = {"text": pd.Series(["a"]).dtype, "number": "float64", "place": "int64"}
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=_free_type(values) if kinds[name] == "any" else types[kinds[name]])
            for name, values in columns.items()
        }
    )


def _free_type(values: list[Any]) -> str | None:
    """Return a type that keeps whole numbers exact if some are missing; None lets pandas choose."""
    kinds = {type(value) for value in values}
    return "Int64" if kinds == {int, type(None)} else None


# What identifies rows.


@dataclass(frozen=True, slots=True)
class RowIds:
    """The name and the values of the column that identifies rows; one value per row, None where it is missing.

    Examples
    --------
    >>> ids = RowIds.from_values("case", ["A-17", float("nan"), "A-17"])
    >>> ids.values, ids.label(0), ids.duplicates()
    (('A-17', None, 'A-17'), "case 'A-17'", {'A-17': [0, 2]})
    """

    name: str
    values: tuple[Any, ...]

    @classmethod
    def from_values(cls, name: str, values: Iterable[Any]) -> "RowIds":
        """Return ids of one type that every frame and file can hold; values of other types become texts."""
        return cls(name, tuple(plain_values(values)))

    def take(self, places: Iterable[int]) -> "RowIds":
        """Return the ids at these places."""
        return RowIds(self.name, tuple(self.values[place] for place in places))

    def label(self, place: int) -> str:
        """Return the name and the value of one row's id, for messages."""
        value = self.values[place]
        return f"{self.name} {repr(value) if isinstance(value, str) else str(value):.60}"

    def duplicates(self) -> dict[Any, list[int]]:
        """Return the values that more than one row has, with the places of these rows."""
        places: dict[Any, list[int]] = defaultdict(list)
        for place, value in enumerate(self.values):
            places[value].append(place)
        return {value: found for value, found in places.items() if len(found) > 1}


def plain_values(values: Iterable[Any]) -> list[Any]:
    """Return values as Python values of one type, or as texts; missing values are None.

    Examples
    --------
    >>> plain_values([1, 2.5, None]), plain_values([1, "b"]), plain_values([2**63])
    ([1.0, 2.5, None], ['1', 'b'], ['9223372036854775808'])
    """
    plain = [_plain(value) for value in values]
    present = [value for value in plain if value is not None]
    kinds = {next(kind for kind in _PLAIN if isinstance(value, kind)) for value in present}
    if kinds == {int, float} and all(abs(value) < 2**63 and float(value) == value for value in present):
        plain, kinds = [None if value is None else float(value) for value in plain], {float}
    if len(kinds) > 1 or (kinds == {int} and not all(value in _INT64 for value in present)):
        return [None if value is None else str(value) for value in plain]
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    try:
        missing = value is None or bool(value != value)  # noqa: PLR0124  NaN and NaT
    except TypeError:  # pandas.NA has no truth value
        missing = True
    except ValueError:  # an array
        missing = False
    if missing:
        return None
    return value if isinstance(value, _PLAIN) and not isinstance(value, str) else clean_text(str(value))


def index_of(frame: Any) -> Any:
    """Return the index of a pandas frame; None for other rows and for the default index 0, 1, 2, ..."""
    from narwhals.dependencies import is_pandas_dataframe

    if not is_pandas_dataframe(frame):
        return None
    index = frame.index
    is_default = type(index).__name__ == "RangeIndex" and (index.start, index.step, index.name) == (0, 1, None)
    return None if is_default else index


def labeled_frame(
    backend: Any, columns: Mapping[str, list[Any]], kinds: Mapping[str, str], ids: RowIds | None, index: Any
) -> Any:
    """Return a frame with the ids after its first column, and with the index, which only pandas has as such.

    Other frames have the index as first columns, named like its levels. An unnamed index is called ``index``.
    """
    first, *others = columns
    names = [first, *([] if ids is None else [ids.name]), *others]
    given = {**columns} if ids is None else {**columns, ids.name: list(ids.values)}
    as_index = index is not None and _library(backend).is_pandas()
    levels = {} if index is None or as_index else _levels(index, names)
    ordered = {**levels, **{name: given[name] for name in names}}
    frame = frame_in(backend, ordered, {name: kinds.get(name, "any") for name in ordered})
    if as_index:
        frame.index = index.set_names([None if name in names else name for name in index.names])
    return frame


def _levels(index: Any, taken: Sequence[str]) -> dict[str, list[Any]]:
    """Return the levels of an index as columns whose names differ from those that are taken."""
    levels: dict[str, list[Any]] = {}
    for i, given in enumerate(index.names):
        default = "index" if index.nlevels == 1 else f"level_{i}"
        name = default if given is None or str(given) in taken else str(given)
        while name in taken or name in levels:
            name += "_"
        levels[name] = plain_values(index.get_level_values(i).tolist())
    return levels


def clean_text(text: str) -> str:
    """Return a text that every file can hold, with half surrogate pairs escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
