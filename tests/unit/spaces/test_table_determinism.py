"""The same table gives the same bytes: in any order of its rows, in every library, in every batch and process."""

import decimal
import pickle

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from anchorline.laws import Random
from anchorline.spaces import rows as order_module
from anchorline.spaces.columns import identity_for_model
from anchorline.spaces.table import Table
from helpers.table_facts import facts_of

N = 60
LAWS = {
    "independent": {},
    "realistic": {"neighbors": "realistic"},
    "grouped": {"groups": {"both": ["large", "city"]}},
}


def frame() -> pd.DataFrame:
    """Columns in which values that compare equal differ for a model, many of them in otherwise equal rows."""
    rng = np.random.default_rng(5)
    moments = np.datetime64("2024-05-01T12:00:00", "ns") + rng.integers(0, 3, N).astype("m8[ns]")
    exact = [decimal.Decimal(f"0.1{'0' * 20}{i}") for i in rng.integers(0, 3, N)]
    return pd.DataFrame(
        {
            "objects": pd.Series([[1, True, 1.0, "1", "x"][i] for i in rng.integers(0, 5, N)], dtype=object),
            "numbers": pd.Series([[1, 1.0, 2, None, np.nan][i] for i in rng.integers(0, 5, N)], dtype=object),
            "zeros": np.array([-0.0, 0.0, 1.0])[rng.integers(0, 3, N)],
            "large": 2**60 + rng.integers(0, 4, N),
            "dates": moments,
            "zoned": pd.Series(moments).dt.tz_localize("UTC"),
            "exact": pd.Series(exact, dtype=object),
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


def identities(table):
    """What a model can see of every cell, column by column."""
    if isinstance(table, np.ndarray):
        return [[identity_for_model(value) for value in column] for column in table.T]
    if isinstance(table, pa.Table):
        return [[repr(value) for value in column] for column in table.columns]
    columns = [table[name] for name in table.columns]
    if isinstance(table, pl.DataFrame):
        columns = [c.cast(pl.Int64) if c.dtype.is_temporal() else c for c in columns]
    return [[identity_for_model(value) for value in column] for column in columns]


def seen(there, n=300, batch=0):
    """Everything about a row that an explanation may depend on."""
    donors = there.draw(n, Random.of(0, there.key, "a", batch), 0.54)
    candidates = there.candidates
    numbers = [candidates.attributes, candidates.starts, candidates.own, candidates.views, candidates.first]
    return {
        "key": there.key,
        "facts": facts_of(there),
        "numbers": [each.tolist() for each in (*numbers, candidates.last, candidates.ranks, candidates.shares)],
        "cells": there.cells(donors).tolist(),
        "neighbors": identities(there.realize(donors)),
        "original": identities(there.original),
    }


@pytest.mark.parametrize("kind", tables())
@pytest.mark.parametrize("multiplier", [None, 0], ids=["hashes", "all hashes equal"])
def test_a_reshuffled_table_is_the_same_table(kind, multiplier, monkeypatch):
    if multiplier is not None:  # rows are then sorted by all that distinguishes them
        monkeypatch.setattr(order_module, "_MULTIPLIER", np.uint64(multiplier))
    given = tables()[kind]
    shuffle = np.random.default_rng(1).permutation(N)
    first, second = Table(given), Table(taken(given, shuffle))
    assert first.fingerprint == second.fingerprint
    for (own, _), (other, _) in zip(first.examples(), second.examples(), strict=True):
        assert identities(own) == identities(other)
    for i in (0, 17):
        assert seen(first.at(int(shuffle[i]))) == seen(second.at(i))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("reference", [False, True])
def test_no_law_depends_on_the_order(law, reference):
    given, shuffle = frame(), np.random.default_rng(1).permutation(N)
    other = taken(given, shuffle)
    own, same = (given[:20], given[:20][::-1]) if reference else (None, None)
    first, second = Table(given, reference=own, **LAWS[law]), Table(other, reference=same, **LAWS[law])
    assert first.fingerprint == second.fingerprint
    assert seen(first.at(int(shuffle[4]))) == seen(second.at(4))


def in_libraries():
    """One table in four libraries; arrays hold its numbers only."""
    rng = np.random.default_rng(2)
    given = pd.DataFrame(
        {
            "amount": rng.lognormal(size=400).round(2),
            "count": rng.integers(0, 9, 400).astype(float),
            "city": rng.choice(["Bonn", "Rome", "Oslo"], 400),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), "D"),
            "member": rng.random(400) < 0.3,
        }
    )
    given.loc[rng.random(400) < 0.1, "amount"] = np.nan
    return given


def as_lists(table):
    rows = pl.DataFrame(table)
    return rows.with_columns(pl.col("amount").fill_nan(None), pl.col("day").cast(pl.Datetime("us"))).rows()


@pytest.mark.parametrize("law", ["independent", "realistic"])
@pytest.mark.parametrize("convert", [pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)])
def test_every_library_gives_the_same_neighbors_and_facts(convert, law):
    given = in_libraries()
    first, second = Table(given, neighbors=law), Table(convert(given), neighbors=law)
    assert first.fingerprint == second.fingerprint
    for row in (3, {"amount": None, "count": 4, "city": "Lima", "day": "2024-02-03", "member": True}):
        own, other = first.at(row), second.at(row)
        assert own.key == other.key
        assert facts_of(own) == facts_of(other)
        donors = own.draw(500, Random.of(0, own.key, "a"), 0.54)
        np.testing.assert_array_equal(donors, other.draw(500, Random.of(0, own.key, "a"), 0.54))
        np.testing.assert_array_equal(own.cells(donors), other.cells(donors))
        assert as_lists(own.realize(donors)) == as_lists(other.realize(donors))


@pytest.mark.parametrize(
    "convert", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix, np.asfortranarray]
)
def test_arrays_give_the_same_neighbors_and_facts_as_frames(convert):
    given = in_libraries()[["amount", "count"]].fillna(0.0)
    own, other = Table(given).at(5), Table(convert(given.to_numpy()), names=list(given)).at(5)
    assert facts_of(own) == facts_of(other)
    donors = own.draw(500, Random.of(0, own.key, "a"), 0.54)
    np.testing.assert_array_equal(own.realize(donors).to_numpy(), other.realize(donors))
    assert other.realize(donors).dtype == np.float64


def test_a_row_is_the_same_however_it_is_given():
    given = in_libraries()
    table = Table(given)
    rows = [3, given.iloc[3], given.iloc[[3]], given.iloc[3].to_dict(), given.iloc[3].tolist()]
    rows += [table.at(3).instance, pl.from_pandas(given[3:4]), pa.Table.from_pandas(given[3:4])]
    assert len({repr(seen(table.at(row))) for row in rows}) == 1


def test_rows_that_are_read_together_are_those_that_are_read_one_by_one():
    given = in_libraries()
    table = Table(given)
    rows = table.rows(nw.from_native(given[:20], eager_only=True))
    assert len(rows) == 20
    pd.testing.assert_frame_equal(rows.inputs, given[:20].reset_index(drop=True))
    for i in range(20):
        assert seen(rows.at(i), n=20) == seen(table.at(i), n=20)
    assert table.rows(nw.from_native(given[["city"]], eager_only=True)) is None


def test_batches_differ_and_can_be_drawn_alone():
    there = Table(in_libraries()).at(3)
    drawn = [seen(there, batch=batch)["cells"] for batch in (0, 1, 1, 2)]
    assert drawn[1] == drawn[2]
    assert drawn[0] != drawn[1] != drawn[3]


def test_a_table_goes_through_pickle():
    table = Table(in_libraries(), groups={"both": ["city", "day"]})
    again = pickle.loads(pickle.dumps(table))
    assert again.fingerprint == table.fingerprint
    assert seen(again.at(3)) == seen(table.at(3))


def test_another_table_has_another_fingerprint():
    given = in_libraries()
    twice = pd.concat([given, given[:1]], ignore_index=True)
    swapped = given.assign(city=given["city"].iloc[::-1].to_numpy())
    others = [
        {"fixed": ["city"]},
        {"cuts": {"count": [2.5]}},
        {"neighbors": "realistic"},
        {"reference": given[:9]},
    ]
    prints = [Table(each).fingerprint for each in (given, twice, swapped)]
    prints += [Table(given, **options).fingerprint for options in others]
    prints.append(Table(given, reference=given[:10]).fingerprint)
    assert len(set(prints)) == len(prints)


def test_a_table_and_its_rows_are_copies():
    given = in_libraries()
    before, table = given.copy(), Table(given)
    there = table.at(3)
    first = seen(there)
    donors = there.draw(9, Random.of(0, b"", "a"), 1.0)
    for spoiled in (there.original, there.realize(donors), next(table.examples())[0]):
        spoiled.loc[:, "count"] = -1.0
        spoiled.columns.name = "spoiled"
    pd.testing.assert_frame_equal(given, before)
    given.loc[:, "count"] = 99.0
    assert seen(there) == first == seen(Table(before).at(3))
