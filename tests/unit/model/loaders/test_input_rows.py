"""`InputRows`: columns of any frame as numbers, whole numbers and texts."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anchorline import errors
from anchorline.model.loaders.rows import InputRows


def test_columns_named_by_whole_numbers():
    for n_rows in (1, 2, 5):
        frame = pd.DataFrame(np.arange(3.0 * n_rows).reshape(n_rows, 3), columns=[2, 0, 1])
        rows = InputRows(frame)
        assert (rows.names, rows.n_rows) == (["2", "0", "1"], n_rows)
        np.testing.assert_array_equal(np.column_stack([rows.numbers(j) for j in range(3)]), frame)


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_numpy])
@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[us]", "timedelta64[ns]", "timedelta64[us]"])
@pytest.mark.parametrize("missing", [False, True])
def test_dates_are_not_numbers(make, kind, missing):
    rows = InputRows(make(pd.DataFrame({"day": np.array([10**15, "NaT" if missing else 10**16], dtype=kind)})))
    for read in (rows.numbers, rows.integers):
        with pytest.raises(errors.ModelInputError, match=r"holds .*([Dd]ate|[Tt]ime).*needs numbers there"):
            read(0)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_the_text_of_a_date_does_not_depend_on_other_rows(make):
    whole = pd.DataFrame({"day": pd.to_datetime(["2020-01-01"] * 3).tz_localize("Europe/Paris")})
    holed = whole.assign(day=whole["day"].where([True, True, False]))
    assert InputRows(make(whole)).texts(0)[:2] == InputRows(make(holed)).texts(0)[:2]


@pytest.mark.parametrize("values", [np.array([2**63 + 5], np.uint64), [1e19], [-1e19], [2.0**63], [np.inf]])
def test_whole_numbers_that_do_not_fit(values):
    with pytest.raises(errors.ModelInputError, match=r"'n' holds .*beyond 64 bits"):
        InputRows(pd.DataFrame({"n": values})).integers(0)


@pytest.mark.parametrize("values", [[2**63 - 1, -(2**63)], np.array([2**63 - 1], np.uint64), [True], [-(2.0**63)]])
def test_whole_numbers_that_fit(values):
    assert InputRows(pd.DataFrame({"n": values})).integers(0).tolist() == [int(value) for value in values]
