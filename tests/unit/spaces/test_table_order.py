"""The order of the training rows changes nothing: not the fingerprint, the neighbors, the range or the bytes."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.spaces import order as order_module
from anchorline.spaces.columns import Column, read_values
from anchorline.spaces.encoding import build_levels
from anchorline.spaces.values import identity_for_model

N = 60


def frame() -> pd.DataFrame:
    """Columns in which values that compare equal differ for a model, many of them in otherwise equal rows."""
    rng = np.random.default_rng(5)
    moments = np.datetime64("2024-05-01T12:00:00", "ns") + rng.integers(0, 3, N).astype("m8[ns]")
    return pd.DataFrame(
        {
            "objects": pd.Series([[1, True, 1.0, "1", "x"][i] for i in rng.integers(0, 5, N)], dtype=object),
            "numbers": pd.Series(
                [[1, 1.0, np.int64(1), None, np.nan][i] for i in rng.integers(0, 5, N)], dtype=object
            ),
            "zeros": np.array([-0.0, 0.0, 1.0])[rng.integers(0, 3, N)],
            "large": 2**60 + rng.integers(0, 4, N),
            "dates": moments,
            "zoned": pd.Series(moments).dt.tz_localize("UTC"),
            "exact": pd.Series(
                [decimal.Decimal(f"0.1{'0' * 20}{i}") for i in rng.integers(0, 3, N)], dtype=object
            ),
            "city": rng.choice(["Bonn", "Rome", None], N),
        }
    )


def tables() -> dict[str, object]:
    given = frame()
    plain = given.drop(columns=["objects", "numbers", "exact"])
    gaps = [None, float("nan"), 1.0] * (N // 3)
    return {
        "pandas": given,
        "array of objects": given.drop(columns=["dates", "zoned"]).to_numpy(dtype=object),
        "array": given[["zeros", "large"]].to_numpy(),
        "polars": pl.from_pandas(plain).with_columns(gaps=pl.Series(gaps, strict=False)),
        "arrow": pa.Table.from_pandas(plain).append_column("gaps", pa.array(gaps, from_pandas=False)),
    }


def taken(table, rows):
    if isinstance(table, pd.DataFrame):
        return table.iloc[rows].reset_index(drop=True)
    return table.take(rows) if isinstance(table, pa.Table) else table[rows]


def identities(table) -> list[list[tuple[type, str]]]:
    """What a model can see of every cell, column by column."""
    if isinstance(table, np.ndarray):
        return [[identity_for_model(value) for value in column] for column in table.T]
    if isinstance(table, pa.Table):
        return [[repr(value) for value in column] for column in table.columns]
    columns = [table[name] for name in table.columns]
    if isinstance(table, pl.DataFrame):
        columns = [c.cast(pl.Int64) if c.dtype.is_temporal() else c for c in columns]
    return [[identity_for_model(value) for value in column] for column in columns]


@pytest.mark.parametrize("kind", tables())
@pytest.mark.parametrize("multiplier", [None, 0], ids=["hashes", "all hashes equal"])
def test_a_reshuffled_table_is_the_same_table(kind, multiplier, monkeypatch):
    if multiplier is not None:  # rows are then sorted by all that distinguishes them
        monkeypatch.setattr(order_module, "_MULTIPLIER", np.uint64(multiplier))
    given = tables()[kind]
    shuffle = np.random.default_rng(1).permutation(N)
    first, second = al.Table(given), al.Table(taken(given, shuffle))
    assert first.fingerprint == second.fingerprint
    for own, other in zip(first.examples(), second.examples(), strict=True):
        assert identities(own) == identities(other)
    flips = np.random.default_rng(2).random((500, len(first.at(0).literals))) < 0.5
    for i in (0, 17):
        at, same = first.at(int(shuffle[i])), second.at(i)
        assert identities(at.original) == identities(same.original)
        assert at.key == same.key
        neighbors = [hood.realize(flips, np.random.default_rng(3)) for hood in (at, same)]
        assert identities(neighbors[0]) == identities(neighbors[1])


def test_groups_and_redrawn_values_do_not_depend_on_the_order():
    given, shuffle = frame(), np.random.default_rng(1).permutation(N)
    first, second = (
        al.Table(taken(given, rows), groups={"both": ["objects", "large"]}, within="redraw")
        for rows in (np.arange(N), shuffle)
    )
    at, same = first.at(int(shuffle[4])), second.at(4)
    flips = np.random.default_rng(2).random((300, len(at.literals))) < 0.5
    neighbors = [hood.realize(flips, np.random.default_rng(3)) for hood in (at, same)]
    assert identities(neighbors[0]) == identities(neighbors[1])


def test_another_table_has_another_fingerprint():
    given = frame()[["zeros", "large", "city"]]
    twice = pd.concat([given, given[:1]], ignore_index=True)
    swapped = given.assign(city=given["city"].iloc[::-1].to_numpy())
    assert len({al.Table(table).fingerprint for table in (given, twice, swapped)}) == 3


def test_a_reshuffled_table_gives_the_same_bytes_and_verifies():
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"age": rng.integers(18, 90, 12_000), "debt": rng.normal(size=12_000).round(2)})

    def model(rows):
        return rows["age"].to_numpy() / 10 + rows["debt"].to_numpy()

    row = {"age": 41, "debt": 0.25}
    options = {"k": 3, "n_samples": 500, "n_certify": 1000}
    shuffled = train.sample(frac=1, random_state=7)
    own, other = (al.Explainer(model, al.Table(table)).explain(row, **options) for table in (train, shuffled))
    assert own.to_json() == other.to_json()
    assert own.verify(model, al.Table(shuffled)).holds


def test_a_position_names_the_row_of_the_table_as_it_was_given():
    given = frame()
    table = al.Table(given)
    for i in (0, 3, N - 1, -1):
        assert identities(table.at(i).original) == identities(given.iloc[[i]])


def test_a_value_of_several_types_is_found_in_the_same_way_in_every_order():
    given = pd.DataFrame({"a": pd.Series([True, 1, 1.0, 2] * 3, dtype=object), "b": range(12)})
    found = set()
    for rows in (given, given[::-1].reset_index(drop=True)):
        table = al.Table(rows)
        found.add(identity_for_model(table.at({"a": decimal.Decimal(1), "b": 1}).original["a"][0]))
    assert len(found) == 1


def test_dates_of_polars_and_arrow_with_nanoseconds_are_distinguished():
    ticks = pl.Series("d", [0, 1, 2, 0]).cast(pl.Datetime("ns"))
    table = pl.DataFrame({"d": ticks, "x": [1, 1, 1, 2]})
    first, second = al.Table(table), al.Table(table[[2, 1, 0, 3]])
    rows = [next(space.examples())["d"].cast(pl.Int64).to_list() for space in (first, second)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("texts", [["b", "a", None, "b", "", "a", "b"], ["a"], [None, None, "c"]])
def test_texts_that_are_looked_up_once_have_the_same_order_levels_and_codes(texts):
    read = read_values(pd.Series(texts, dtype="str"), "c", ParameterError)
    plain = Column(read.kind, read.values, read.missing)
    assert [None if gone else text for text, gone in zip(read.values, read.missing, strict=True)] == texts
    rows = np.arange(len(texts))[::-1]
    for one, other in ((read, plain), (read.taken(rows), plain.taken(rows))):
        assert one.values.tolist() == other.values.tolist()
        assert np.array_equal(order_module._keys(one), order_module._keys(other))
        levels = [build_levels("c", column, 0.0, {}) for column in (one, other)]
        assert levels[0].codes_of == levels[1].codes_of
        assert np.array_equal(*(level.codes(column) for level, column in zip(levels, (one, other), strict=True)))
    unseen = build_levels("c", plain.taken(rows[:1]), 0.0, {})
    assert np.array_equal(unseen.codes(read), unseen.codes(plain))
