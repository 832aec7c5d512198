"""Frames as arrays of numbers, for models and peers that take nothing else; imports nothing of the library.

Models that contain `codes_of` are stored in files, which other releases of the library can read.
"""

from typing import Any

import numpy as np


def codes_of(frame: Any) -> np.ndarray:
    """Return numbers as they are and categories as codes, because encoding text takes most of the time."""
    columns = (column for _, column in frame.items())
    return np.column_stack(
        [
            (column.cat.codes if column.dtype == "category" else column).to_numpy(dtype=np.float64)
            for column in columns
        ]
    )
