"""Frames as arrays of numbers, for models and peers that take nothing else; imports nothing of the library.

Models that contain `codes_of` are stored in files, which other releases of the library can read.
"""

from typing import Any

import numpy as np


def frame_of(codes: np.ndarray, like: Any) -> Any:
    """Return arrays of numbers (n, d) as a frame with the columns and categories of another one."""
    import pandas as pd

    columns = {}
    for values, (name, column) in zip(codes.T, like.items(), strict=True):
        is_text = column.dtype == "category"
        columns[name] = pd.Categorical.from_codes(values.astype(int), dtype=column.dtype) if is_text else values
    return pd.DataFrame(columns)


def codes_of(frame: Any) -> np.ndarray:
    """Return numbers as they are and categories as codes, because encoding text takes most of the time."""
    columns = (column for _, column in frame.items())
    return np.column_stack(
        [
            (column.cat.codes if column.dtype == "category" else column).to_numpy(dtype=np.float64)
            for column in columns
        ]
    )
