"""Kinds of tables."""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd

from tests.first_try.kinds import N_ROWS, Try, frame, kind, label, numbers

NUMPY, PANDAS, OTHER = "NumPy, SciPy and Python", "pandas", "other libraries"


def rank(rows: Any) -> np.ndarray:
    """Answer with the sum of the columns' ranks of texts, whatever the columns hold: a model of anything."""
    table = pd.DataFrame(rows)
    total = np.zeros(len(table))
    for j in range(table.shape[1]):
        total += [sum(map(ord, str(value)[-6:])) % 97 for value in table.iloc[:, j]]
    return total


def income(rows: Any) -> np.ndarray:
    """Answer with the first column of a table of any library or an array."""
    import narwhals as nw

    own = nw.from_native(rows, pass_through=True)
    return np.asarray(own[:, 0] if isinstance(own, np.ndarray) else own[:, 0].to_numpy(), dtype=float)


def with_column(values: Any, **given: Any) -> Try:
    """Add one column to the numbers."""
    return Try(rank, numbers().assign(extra=values), decisions=None, columns=("age", "income", "extra"), **given)


def _pandas() -> None:
    rng = np.random.default_rng(0)
    some = rng.integers(0, 30, N_ROWS)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(some, "D")
    words = np.array(["red", "green", "blue"])[some % 3]
    for title, make in {
        "nullable Int64": lambda: pd.array(np.where(some > 25, None, some), dtype="Int64"),
        "nullable boolean": lambda: pd.array(some > 10, dtype="boolean"),
        "string": lambda: pd.array(words, dtype="string"),
        "category, one unused": lambda: pd.Categorical(words, categories=["red", "green", "blue", "pink"]),
        "ordered category": lambda: pd.Categorical(words, categories=["blue", "green", "red"], ordered=True),
        "Decimal": lambda: [decimal.Decimal(int(value)) / 4 for value in some],
        "mixed objects": lambda: pd.Series([int(v) if v % 2 else "abcde"[v % 5] for v in some], dtype=object),
        "dates": lambda: days,
        "dates with a time zone": lambda: days.tz_localize("Europe/Paris"),
        "timedelta": lambda: pd.to_timedelta(some, "h"),
        "Period": lambda: pd.PeriodIndex(days, freq="D"),
        "pd.cut": lambda: pd.cut(some, [-1, 5, 10, 20, 30]),
        "date objects": lambda: [day.date() for day in days],
        "time objects": lambda: [dt.time(int(v) % 24, 30) for v in some],
        "datetime objects": lambda: pd.Series([day.to_pydatetime() for day in days], dtype=object),
        "sparse": lambda: pd.arrays.SparseArray((some > 20).astype(float)),
        "infinite numbers": lambda: np.where(some > 25, np.inf, some.astype(float)),
    }.items():
        kind("table", PANDAS, f"column of {title}")(lambda make=make: with_column(make()))
    kind("table", PANDAS, "column of Arrow numbers", "pyarrow")(
        lambda: with_column(pd.array(some, dtype="int64[pyarrow]"))
    )
    kind("table", PANDAS, "column of Arrow texts", "pyarrow")(
        lambda: with_column(pd.array(words, dtype="string[pyarrow]"))
    )
    for title, cell in {"lists": [1, 2], "dicts": {"a": 1}, "bytes": b"abc", "complex numbers": 1 + 2j}.items():
        kind("table", PANDAS, f"column of {title}", refused=r"fixed=\['extra'\]")(
            lambda cell=cell: with_column(pd.Series([cell] * N_ROWS))
        )

        def fixed(cell: Any = cell) -> Try:
            import anchorline as al

            own = numbers().assign(extra=pd.Series([cell] * N_ROWS))
            return Try(income, al.Table(own, fixed=["extra"]), decisions=None, columns=("age", "income"))

        kind("table", PANDAS, f"column of {title}, fixed")(fixed)


_pandas()


@kind("table", PANDAS, "MultiIndex columns")
def _() -> Try:
    own = numbers().set_axis(pd.MultiIndex.from_tuples([("a", "age"), ("a", "income")]), axis=1)
    return Try(lambda rows: rows["a"]["age"], own, decisions=None, columns=("a_age", "a_income"))


@kind("table", PANDAS, "unnamed columns")
def _() -> Try:
    own = pd.DataFrame(numbers().to_numpy())
    return Try(income, own, decisions=None, columns=("x0", "x1"))


@kind("table", PANDAS, "unnamed columns, with a row as a Series")
def _() -> Try:
    own = pd.DataFrame(numbers().to_numpy())
    return Try(income, own, own.iloc[3], decisions=None, columns=("x0", "x1"))


@kind("table", PANDAS, "duplicate names", refused="Rename")
def _() -> Try:
    return Try(income, numbers().set_axis(["a", "a"], axis=1))


@kind("table", PANDAS, "row as a frame of one row")
def _() -> Try:
    return Try(income, numbers(), numbers().iloc[[3]], decisions=None, columns=("age", "income"))


@kind("table", PANDAS, "row as a Series")
def _() -> Try:
    return Try(income, numbers(), numbers().iloc[3], decisions=None, columns=("age", "income"))


@kind("table", PANDAS, "table of one row", refused="more rows")
def _() -> Try:
    return Try(income, numbers().iloc[[0]], decisions=None)


@kind("table", PANDAS, "table with the target", notes="approved")
def _() -> Try:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(numbers(), label())
    return Try(model, numbers().assign(approved=label()), columns=("age", "income"))


@kind("table", PANDAS, "row without the target of the table", notes="approved")
def _() -> Try:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(numbers(), label())
    return Try(model, numbers().assign(approved=label()), numbers().iloc[0], columns=("age", "income"))


@kind("table", PANDAS, "one-hot matrix of pd.get_dummies", notes="purpose")
def _() -> Try:
    from sklearn.tree import DecisionTreeClassifier

    own = frame().rename(columns={"color": "purpose"})
    own["region"] = np.array(["north", "south", "east", "west"])[np.arange(N_ROWS) % 4]
    table = pd.get_dummies(own).astype(float)
    return Try(DecisionTreeClassifier(max_depth=5, random_state=0).fit(table, label()), table)


# ---- other libraries


def _polars() -> Any:
    import polars

    return polars.DataFrame({name: frame()[name].tolist() for name in ("income", "age", "color")})


@kind("table", OTHER, "Polars frame", "polars")
def _() -> Try:
    return Try(income, _polars(), _polars()[3], decisions=None, columns=("income", "age", "color"))


@kind("table", OTHER, "Polars LazyFrame", "polars", notes="collect")
def _() -> Try:
    return Try(income, _polars().lazy(), decisions=None, columns=("income", "age", "color"))


@kind("table", OTHER, "Polars frame with categories and dates", "polars")
def _() -> Try:
    import polars

    own = _polars().with_columns(
        polars.col("color").cast(polars.Categorical), day=polars.date(2024, 1, 1) + polars.duration(days="age")
    )
    return Try(income, own, decisions=None)


@kind("table", OTHER, "Polars durations and times", "polars")
def _() -> Try:
    import polars

    own = _polars().with_columns(wait=polars.duration(hours="age"), at=polars.time(polars.col("age") % 24))
    return Try(income, own, decisions=None)


@kind("table", OTHER, "Arrow table", "pyarrow")
def _() -> Try:
    import pyarrow

    return Try(income, pyarrow.table(_dict()), decisions=None, columns=("income", "color"))


@kind("table", OTHER, "Arrow batch", "pyarrow")
def _() -> Try:
    import pyarrow

    return Try(income, pyarrow.record_batch(_dict()), decisions=None, columns=("income", "color"))


@kind("table", OTHER, "Arrow dictionary column", "pyarrow")
def _() -> Try:
    import pyarrow

    own = pyarrow.table(_dict())
    return Try(income, own.set_column(1, "color", own["color"].dictionary_encode()), decisions=None)


def _dict() -> dict[str, list[Any]]:
    return {name: frame()[name].tolist() for name in ("income", "color")}


@kind("table", OTHER, "DuckDB relation", "duckdb", notes="collect")
def _() -> Try:
    import duckdb

    connection = duckdb.connect()
    connection.register("own", numbers()[["income", "age"]])
    return Try(income, connection.sql("select * from own"), decisions=None, columns=("age", "income"))


@kind("table", OTHER, "Dask frame", "dask.dataframe", notes="collect")
def _() -> Try:
    import dask.dataframe as dd

    own = dd.from_pandas(numbers()[["income", "age"]], npartitions=2)
    return Try(income, own, decisions=None, columns=("age", "income"))


@kind("table", OTHER, "xarray Dataset", "xarray", refused="to_dataframe")
def _() -> Try:
    return Try(income, numbers().to_xarray())


@kind("table", OTHER, "xarray DataArray of two dimensions", "xarray")
def _() -> Try:
    import xarray

    return Try(income, xarray.DataArray(numbers().to_numpy()), decisions=None, columns=("x0", "x1"))


@kind("table", OTHER, "torch tensor", "torch")
def _() -> Try:
    import torch

    own = torch.as_tensor(numbers().to_numpy())
    return Try(income, own, own[3], decisions=None, columns=("x0", "x1"))


@kind("table", NUMPY, "2-D array")
def _() -> Try:
    own = numbers().to_numpy()
    return Try(income, own, own[3], decisions=None, columns=("x0", "x1"))


@kind("table", NUMPY, "list of lists")
def _() -> Try:
    own = numbers().to_numpy().tolist()
    return Try(income, own, own[3], decisions=None, columns=("x0", "x1"))


@kind("table", NUMPY, "structured array")
def _() -> Try:
    own = numbers()[["income", "age"]].to_records(index=False)
    return Try(income, np.asarray(own), np.asarray(own)[3], decisions=None, columns=("age", "income"))


@kind("table", NUMPY, "masked array")
def _() -> Try:
    own = np.ma.masked_less(numbers().to_numpy(), 2.5)
    return Try(lambda rows: np.nan_to_num(income(rows)), own, own[3], decisions=None, columns=("x0", "x1"))


@kind("table", NUMPY, "list of dicts")
def _() -> Try:
    own = numbers()[["income", "age"]].to_dict("records")
    return Try(income, own, own[3], decisions=None, columns=("age", "income"))


@kind("table", NUMPY, "dict of columns")
def _() -> Try:
    own = numbers()[["income", "age"]].to_dict("list")
    return Try(income, own, decisions=None, columns=("age", "income"))


@kind("table", NUMPY, "SciPy sparse matrix")
def _() -> Try:
    from scipy import sparse

    own = sparse.csr_matrix(numbers().to_numpy())
    return Try(income, own, own[3], decisions=None, columns=("x0", "x1"))
