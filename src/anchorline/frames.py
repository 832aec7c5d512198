"""Results as frames of the library that is asked for."""

from collections.abc import Mapping
from typing import Any

from anchorline.errors import MissingDependencyError, ParameterError


def frame_in(backend: Any, columns: Mapping[str, list[Any]], kinds: Mapping[str, str] | None = None) -> Any:
    """A pandas, Polars or Arrow frame; ``kinds``, where told, are "text", "number" or "place" of each column.

    Examples
    --------
    >>> frame_in("pyarrow", {"k": [1, 2]}, {"k": "number"}).to_pydict()
    {'k': [1.0, 2.0]}
    """
    import narwhals as nw  # noqa: PLC0415  heavy

    types = {"text": nw.String(), "number": nw.Float64(), "place": nw.Int64()}
    schema = None if kinds is None else {name: types[kind] for name, kind in kinds.items()}
    try:
        return nw.from_dict(columns, schema=schema, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"backend is {backend!r}, which is not installed here ({error}).") from error
    except (TypeError, ValueError) as error:
        raise ParameterError(f"backend is {backend!r}; needed 'pandas', 'polars' or 'pyarrow'.") from error
