"""Results as pandas, Polars or Arrow frames."""

from collections.abc import Mapping
from typing import Any

from anchorline.errors import MissingDependencyError, ParameterError


def frame_in(backend: Any, columns: Mapping[str, list[Any]], kinds: Mapping[str, str] | None = None) -> Any:
    """Return a pandas, Polars or Arrow frame; ``kinds``, if given, are "text", "number" or "place" per column.

    Examples
    --------
    >>> frame_in("pyarrow", {"k": [1, 2]}, {"k": "number"}).to_pydict()
    {'k': [1.0, 2.0]}
    """
    import narwhals as nw  # noqa: PLC0415  heavy

    known = nw.Implementation
    try:
        library = known.from_backend(backend)
    except (AssertionError, TypeError, ValueError):
        library = known.UNKNOWN
    if library not in (known.PANDAS, known.POLARS, known.PYARROW, known.MODIN, known.CUDF):
        raise ParameterError(f"backend is {backend!r}, but it must be 'pandas', 'polars' or 'pyarrow'.")
    types = {"text": nw.String(), "number": nw.Float64(), "place": nw.Int64()}
    try:
        if library is known.PANDAS and kinds is not None:
            return _pandas_frame(columns, kinds)
        schema = None if kinds is None else {name: types[kind] for name, kind in kinds.items()}
        return nw.from_dict(columns, schema=schema, backend=library).to_native()
    except ModuleNotFoundError as error:
        message = f"backend is {backend!r}, which is not installed ({error})."
        raise MissingDependencyError(f"{message} Type: pip install {library.name.lower()}") from error


def _pandas_frame(columns: Mapping[str, list[Any]], kinds: Mapping[str, str]) -> Any:
    """Build by pandas itself: before version 3, casting a missing text to text gives the text "None"."""
    import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

    types: dict[str, Any] = {"text": pd.Series(["a"]).dtype, "number": "float64", "place": "int64"}
    return pd.DataFrame({name: pd.Series(values, dtype=types[kinds[name]]) for name, values in columns.items()})
