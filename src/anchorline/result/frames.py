"""Results as pandas, Polars or Arrow frames."""

from collections.abc import Mapping
from typing import Any

from anchorline.errors import MissingDependencyError, ParameterError


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


def is_pandas(backend: Any) -> bool:
    """Return whether a backend is pandas."""
    return bool(_library(backend).is_pandas())


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
