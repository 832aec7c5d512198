"""Tables as plain columns, for comparisons across backends."""

import pandas as pd
import polars as pl

from anchorline.io import read_table

BACKENDS = ["pandas", "polars", "pyarrow"]


def columns_of(frame):
    """Return the columns of any frame as plain lists, with None for missing values."""
    if isinstance(frame, pd.DataFrame):
        return {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame}
    return frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()


def columns(path, **keywords):
    """Read a table with every backend, check that the content is the same, and return it."""
    contents = [columns_of(read_table(path, backend=backend, **keywords)) for backend in BACKENDS]
    assert contents[0] == contents[1] == contents[2]
    return contents[0]
