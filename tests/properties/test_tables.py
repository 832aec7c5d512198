"""Every neighbor consists of values from the training table, and breaks exactly the flipped literals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from anchorline import Table
from anchorline.errors import InstanceError
from anchorline.search.sampling import DrawnFlips
from anchorline.spaces.base import Law
from helpers.frames import LIBRARIES, assert_same_types, cells, holds, identity, in_library, sheets

QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
N_NEIGHBORS = 24


def neighborhood_of(table, instance):
    """Return the neighborhood, or None if no training row differs from the row."""
    neighborhood = table.at(instance)
    try:
        return neighborhood if neighborhood.literals else None
    except InstanceError:
        return None


def drawn(neighborhood, seed):
    rng = np.random.default_rng(seed)
    flips = rng.random((N_NEIGHBORS, len(neighborhood.literals))) < 0.4
    flips[0], flips[1] = False, True
    return flips, neighborhood.realize(flips, rng)


def names_of(sheet):
    return sheet.names if sheet.library != "numpy" else tuple(f"x{j}" for j in range(len(sheet.names)))


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
@QUICK
def test_every_neighbor_is_possible(library, data):
    sheet = data.draw(sheets(library))
    names, position = names_of(sheet), data.draw(st.integers(0, sheet.n_rows - 1))
    within = data.draw(st.sampled_from(["keep", "redraw"]))
    neighborhood = neighborhood_of(Table(sheet.frame, within=within, literals="intervals"), position)
    if neighborhood is None:
        return
    flips, neighbors = drawn(neighborhood, data.draw(st.integers(0, 99)))
    assert_same_types(sheet.frame, neighbors)
    assert_same_types(sheet.frame, neighborhood.original)
    literals = {literal.name: (j, literal) for j, literal in enumerate(neighborhood.literals)}
    assert set(literals) | set(neighborhood.fixed) == set(names)
    for position_of, name in enumerate(names):
        column, values = cells(sheet.frame, position_of), cells(neighbors, position_of)
        own = column[position]
        assert identity(cells(neighborhood.original, position_of)[0]) == identity(own)
        if name not in literals:
            assert {identity(value) for value in values} == {identity(own)}
            continue
        j, literal = literals[name]
        assert holds(literal.text, name, own, column)
        training_values = {identity(value) for value in column}
        for broken, value in zip(flips[:, j], values, strict=True):
            assert identity(value) in training_values
            assert holds(literal.text, name, value, column) is not bool(broken)
            if not broken and within == "keep":
                assert identity(value) == identity(own)


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
@QUICK
def test_a_group_comes_from_one_row_that_breaks_it(library, data):
    sheet = data.draw(sheets(library, plain_names=True))
    names = names_of(sheet)
    size = data.draw(st.integers(1, len(names)))
    members, position = names[:size], data.draw(st.integers(0, sheet.n_rows - 1))
    within = data.draw(st.sampled_from(["keep", "redraw"]))
    table = Table(sheet.frame, groups={"group": members}, within=within, literals="intervals")
    neighborhood = neighborhood_of(table, position)
    if neighborhood is None or "group" in neighborhood.fixed:
        return
    flips, neighbors = drawn(neighborhood, data.draw(st.integers(0, 99)))
    assert_same_types(sheet.frame, neighbors)
    j = [literal.name for literal in neighborhood.literals].index("group")
    literal = neighborhood.literals[j]
    columns = [cells(sheet.frame, i) for i in range(size)]
    training_values = {tuple(identity(column[row]) for column in columns) for row in range(sheet.n_rows)}
    own = tuple(identity(column[position]) for column in columns)
    for i, broken in enumerate(flips[:, j]):
        values = [cells(neighbors, at)[i] for at in range(size)]
        assert tuple(map(identity, values)) in training_values
        assert group_holds(literal.text, members, values, columns) is not bool(broken)
        if not broken and within == "keep":
            assert tuple(map(identity, values)) == own


def group_holds(text, members, values, columns):
    """Return whether all parts of a group's text are true; each part names one column."""
    parts = text.split(" and ")
    true = []
    for part in parts:
        (at,) = [i for i, name in enumerate(members) if name in part.split(" <= ", 1)[-1].split(" = ")[0]]
        true.append(holds(part, members[at], values[at], columns[at]))
    return all(true)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@given(data=st.data())
@QUICK
def test_a_row_is_the_same_row_however_it_comes(library, data):
    sheet = data.draw(sheets(library))
    table, position = Table(sheet.frame), data.draw(st.integers(0, sheet.n_rows - 1))
    expected = table.at(position)
    values = [cells(sheet.frame, j)[position] for j in range(len(sheet.names))]
    forms = [values, tuple(values), dict(zip(sheet.names, values, strict=True)), position - sheet.n_rows]
    if library == "pandas":
        forms += [sheet.frame.iloc[position], sheet.frame.iloc[[position]]]
    else:
        forms.append(sheet.frame[position : position + 1])
    for form in forms:
        neighborhood = table.at(form)
        assert neighborhood.key == expected.key
        assert neighborhood.instance == expected.instance
        assert_same_types(sheet.frame, neighborhood.original)
        for j in range(len(sheet.names)):
            assert identity(cells(neighborhood.original, j)[0]) == identity(cells(expected.original, j)[0])


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
@QUICK
def test_the_plain_row_is_the_row(library, data):
    """The plain values in JSON give the same row again, which `verify` relies on."""
    sheet = data.draw(sheets(library))
    table, position = Table(sheet.frame), data.draw(st.integers(0, sheet.n_rows - 1))
    expected = table.at(position)
    again = table.at(list(expected.instance))
    assert again.key == expected.key
    for j in range(len(sheet.names)):
        one, other = (cells(neighborhood.original, j)[0] for neighborhood in (expected, again))
        assert identity(one) == identity(other) or (library == "numpy" and one == other)


@given(data=st.data())
@QUICK
def test_libraries_agree(data):
    """Equal tables of different libraries have the same fingerprint, literals and key."""
    sheet = data.draw(sheets("pandas", plain_names=True, portable=True))
    position = data.draw(st.integers(0, sheet.n_rows - 1))
    frame = sheet.frame.reset_index(drop=True)
    results = []
    for library in ("pandas", "polars", "arrow"):
        table = Table(in_library(frame, library))
        neighborhood = neighborhood_of(table, position)
        results.append((table.fingerprint, neighborhood and (neighborhood.literals, neighborhood.key)))
    assert results[0] == results[1] == results[2]


# --- the distribution of flips and values -----------------------------------------------------------------


@pytest.fixture(scope="module")
def training_frame():
    rng = np.random.default_rng(7)
    n = 500
    return pd.DataFrame(
        {
            "work": pd.Categorical(rng.choice(list("abcde"), n, p=[0.4, 0.3, 0.15, 0.1, 0.05])),
            "count": rng.poisson(3, n),
            "latitude": rng.integers(0, 6, n),
            "longitude": rng.integers(0, 6, n),
        }
    )


N_DRAWS, FLIP_PROBABILITY = 60_000, 0.27


@pytest.fixture(scope="module", params=["keep", "redraw"])
def sample(request, training_frame):
    groups = {"place": ["latitude", "longitude"]}
    table = Table(training_frame, groups=groups, within=request.param, literals="intervals")
    neighborhood = table.at(11)
    source = DrawnFlips(12345, N_DRAWS, Law.of_literals(len(neighborhood.literals), FLIP_PROBABILITY).ends)
    flips = source.rows(0, N_DRAWS)[0].astype(bool)
    return training_frame, neighborhood, flips, neighborhood.realize(flips, source.generator(0)), request.param


def test_flips_come_at_their_rate_and_alone(sample):
    _, _, flips, _, _ = sample
    spread = np.sqrt(FLIP_PROBABILITY * (1 - FLIP_PROBABILITY) / N_DRAWS)
    assert np.all(np.abs(flips.mean(axis=0) - FLIP_PROBABILITY) < 4.5 * spread)
    off = np.corrcoef(flips.T) - np.eye(flips.shape[1])
    assert np.abs(off).max() < 4.5 / np.sqrt(N_DRAWS)


@pytest.mark.parametrize("columns", [["work"], ["count"], ["latitude", "longitude"]])
def test_broken_values_are_those_of_the_rows_that_break_the_literal(sample, columns):
    frame, neighborhood, flips, neighbors, within = sample
    j = [literal.name for literal in neighborhood.literals].index(columns[0] if len(columns) == 1 else "place")
    text = neighborhood.literals[j].text
    keys, drawn_keys = (list(zip(*(f[c].tolist() for c in columns), strict=True)) for f in (frame, neighbors))
    lists = [frame[c].tolist() for c in columns]
    true = np.array([group_holds(text, columns, key, lists) for key in keys])
    assert_drawn_like([k for k, t in zip(keys, true, strict=True) if not t], drawn_keys, flips[:, j])
    if within == "redraw":
        assert_drawn_like([k for k, t in zip(keys, true, strict=True) if t], drawn_keys, ~flips[:, j])


def assert_drawn_like(rows, drawn_keys, where):
    """Assert by a chi-square test that the drawn values are distributed as in the candidate rows."""
    levels = sorted(set(rows))
    drawn_values = [key for key, taken in zip(drawn_keys, where, strict=True) if taken]
    assert set(drawn_values) <= set(levels)
    if len(levels) > 1:
        observed = np.array([drawn_values.count(level) for level in levels])
        expected = np.array([rows.count(level) for level in levels]) / len(rows) * len(drawn_values)
        assert chisquare(observed, expected).pvalue > 1e-4


def test_attributes_are_drawn_apart(sample):
    """The values drawn for two attributes are independent, although the training rows are not."""
    _, _, flips, neighbors, _ = sample
    both = flips[:, 0] & flips[:, 1]
    table = pd.crosstab(neighbors["work"][both].astype(str), neighbors["count"][both].clip(upper=6)).to_numpy()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    assert statistic < degrees + 4.5 * np.sqrt(2 * degrees)
