"""Tables of any types in any library: neighbors consist of values of the table, and rows survive JSON."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anchorline import Table
from anchorline.laws import Random
from helpers.frames import LIBRARIES, assert_same_types, cells, identity, in_library, sheets
from helpers.table_facts import facts_of

QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
LAWS = st.sampled_from(["independent", "realistic"])
N_NEIGHBORS = 24


def names_of(sheet):
    return sheet.names if sheet.library != "numpy" else tuple(f"x{j}" for j in range(len(sheet.names)))


def neighbors_of(there, seed, q=0.6):
    return there.realize(there.draw(N_NEIGHBORS, Random.of(seed, there.key, "neighbors"), q))


def rows_of(table, columns):
    """Return the identities of the values in some columns, one tuple per row."""
    return list(zip(*([identity(cell) for cell in cells(table, j)] for j in columns), strict=True))


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
@QUICK
def test_every_neighbor_is_possible(library, data):
    """Types stay, and the columns of an attribute have values of one row."""
    sheet, law = data.draw(sheets(library)), data.draw(LAWS)
    names, position = names_of(sheet), data.draw(st.integers(0, sheet.n_rows - 1))
    size = data.draw(st.integers(0, len(names)))
    table = Table(sheet.frame, groups={"group": names[:size]} if size else None, neighbors=law)
    there = table.at(position)
    neighbors = neighbors_of(there, data.draw(st.integers(0, 99)))
    assert_same_types(sheet.frame, neighbors)
    assert_same_types(sheet.frame, there.original)
    every = range(len(names))
    assert rows_of(there.original, every) == [rows_of(sheet.frame, every)[position]]
    for columns in ([*range(size)], *([j] for j in range(size, len(names)))):
        if columns:
            assert {*rows_of(neighbors, columns)} <= {*rows_of(sheet.frame, columns)}


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
@QUICK
def test_the_plain_row_is_the_row(library, data):
    """The plain values in JSON give the same row again, which `verify` relies on."""
    sheet = data.draw(sheets(library))
    table, position = Table(sheet.frame), data.draw(st.integers(0, sheet.n_rows - 1))
    expected = table.at(position)
    again = table.at(json.loads(json.dumps(expected.instance, allow_nan=False)))
    assert again.key == expected.key
    for j in range(len(sheet.names)):
        one, other = (cells(there.original, j)[0] for there in (expected, again))
        assert identity(one) == identity(other) or (library == "numpy" and one == other)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@given(data=st.data())
@QUICK
def test_a_row_is_the_same_row_however_it_comes(library, data):
    sheet = data.draw(sheets(library))
    table, position = Table(sheet.frame), data.draw(st.integers(0, sheet.n_rows - 1))
    values = [cells(sheet.frame, j)[position] for j in range(len(sheet.names))]
    forms = [values, dict(zip(sheet.names, values, strict=True)), position - sheet.n_rows]
    forms.append(sheet.frame.iloc[[position]] if library == "pandas" else sheet.frame[position : position + 1])
    for form in forms:
        there = table.at(form)
        assert there.key == table.at(position).key
        assert rows_of(there.original, range(len(values))) == [tuple(map(identity, values))]


@given(data=st.data())
@QUICK
def test_libraries_agree(data):
    """Equal tables of different libraries have the same fingerprint, facts and neighbors."""
    sheet = data.draw(sheets("pandas", plain_names=True, portable=True))
    position, law = data.draw(st.integers(0, sheet.n_rows - 1)), data.draw(LAWS)
    results = []
    for library in ("pandas", "polars", "arrow"):
        table = Table(in_library(sheet.frame.reset_index(drop=True), library), neighbors=law)
        there = table.at(position)
        donors = there.draw(N_NEIGHBORS, Random.of(0, there.key, "neighbors"), 0.6)
        results.append((table.fingerprint, there.key, facts_of(there), there.instance, donors.tolist()))
    assert results[0] == results[1] == results[2]
