"""LIME's ``training_data_stats``: a table with the stated distribution of every column, for want of the rows."""

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

from anchorline.compat.lime_discretizer import same_split
from anchorline.errors import ParameterError

_NEEDED = ("means", "stds", "mins", "maxs", "feature_values", "feature_frequencies")
_N_ROWS = 2000
_SEED = 20_260  # of the order of the rows; fixed, so that the same statistics give the same table
_SMALLEST_PROBABILITY = 1e-9  # of an interval under its normal distribution, below which values are spread evenly
_NORMAL = NormalDist()


def table_from_statistics(
    stats: Any, names: list[str], categorical: Mapping[str, Any]
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """Return 2,000 rows that have these statistics, and the cut points of the columns of numbers.

    Each column follows its own statistics: every interval or category has its stated frequency, and numbers in
    an interval follow the normal distribution with the stated mean and standard deviation, restricted to that
    interval. Columns are independent of each other, because LIME's statistics do not say how they depend.
    """
    missing = [key for key in _NEEDED if not isinstance(stats, Mapping) or key not in stats]
    if missing:
        raise ParameterError(
            f"training_data_stats lacks {', '.join(missing)}, but it must be a dict with {', '.join(_NEEDED)}. If "
            "you have the training rows, leave it out and pass them as training_data: they say more."
        )
    columns, cuts = [], {}
    for j, name in enumerate(names):
        try:
            columns.append(_column(stats, j, is_category=name in categorical))
            if name not in categorical:
                cuts[name] = [same_split(float(cut), columns[-1]) for cut in stats["mins"][j][1:]]
        except (LookupError, TypeError, ValueError) as error:
            raise ParameterError(
                f"training_data_stats for column {j} ({name!r}) cannot be read ({type(error).__name__}: {error}). "
                "It must have one mean, stds, mins and maxs entry per interval, and one frequency per value."
            ) from error
    return np.column_stack(columns), cuts


def _column(stats: Mapping[str, Any], j: int, *, is_category: bool) -> np.ndarray:
    """Return the values of one column, in an order that is independent of the other columns: (n_rows,)."""
    values, counts = stats["feature_values"][j], np.asarray(stats["feature_frequencies"][j], dtype=np.float64)
    if len(values) != len(counts) or not len(values) or not counts.min() >= 0 or not counts.sum() > 0:
        raise ValueError(f"{len(values)} values and frequencies {counts.tolist()}")
    ends = np.cumsum(counts) / counts.sum()
    positions = (np.arange(_N_ROWS) + 0.5) / _N_ROWS  # evenly spaced quantiles
    chosen = np.minimum(np.searchsorted(ends, positions), len(values) - 1)
    filled = np.empty(_N_ROWS)
    for i, value in enumerate(values):
        rows = np.flatnonzero(chosen == i)
        quantiles = (np.arange(len(rows)) + 0.5) / max(len(rows), 1)
        filled[rows] = value if is_category else _interval(stats, j, int(value), quantiles)
    return filled[np.random.Philox(key=[_SEED, j]).random_raw(_N_ROWS).argsort()]


def _interval(stats: Mapping[str, Any], j: int, number: int, quantiles: np.ndarray) -> np.ndarray:
    """Return the quantiles of a normal distribution restricted to one interval of column j."""
    mean, std, low, high = (float(stats[key][j][number]) for key in ("means", "stds", "mins", "maxs"))
    below, above = _NORMAL.cdf((low - mean) / std), _NORMAL.cdf((high - mean) / std)
    if above - below < _SMALLEST_PROBABILITY:
        return low + quantiles * (high - low)
    scores = [_NORMAL.inv_cdf(below + quantile * (above - below)) for quantile in quantiles.tolist()]
    return np.clip(mean + std * np.array(scores), low, high)
