"""Neighbors of a row: which cells change, which values they take, and when they can be enumerated."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.errors import ParameterError


def test_where_flips_decide_all_neighbors_are_enumerated():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((50, 3)) < 0.4, columns=list("abc")).assign(n=rng.integers(0, 2, 50))
    explainer = al.Explainer(lambda X: X["a"] * 0.5 - X["b"] * 0.25 + X["n"] * 0.1, al.Table(frame))
    explanation = explainer.explain(0, k=4)
    assert explanation.certificate.exhaustive
    assert explanation.certificate.n_samples == 16
    drawn = explainer.explain(0, k=4, sampling="draw", n_samples=20_000)
    assert drawn.contributions == pytest.approx(explanation.contributions, abs=0.02)
    assert not explainer.space.at(0).realize(np.zeros((1, 4)), None).empty


TWO_WAYS = [  # the literal of row 1 can be broken by two values, although most pairs have the same reading
    pd.DataFrame({"x": [1, 2, 3, 1]}),
    pd.DataFrame({"x": ["a", "b", "c", "a"]}),
    pd.DataFrame({"x": [2**60, 1, 1, 2**60 + 1]}),
    pd.DataFrame({"x": [0.0, 3.0, 3.0, -0.0]}),
    pd.DataFrame({"x": pd.Series(["1", "a", "a", 1], dtype=object)}),
    pl.DataFrame({"x": [None, 1.0, 1.0, math.nan]}),
    pa.table({"x": [None, 1.0, 1.0, math.nan]}),
    np.array([[0.0], [3.0], [-0.0]]),
    pd.DataFrame({"x": np.array([0, 10**18, 1], dtype="datetime64[ns]")}),
]


@pytest.mark.parametrize("table", TWO_WAYS)
def test_where_values_are_drawn_a_generator_is_needed(table):
    neighborhood = al.Table(table).at(1)
    assert not neighborhood.deterministic
    with pytest.raises(ParameterError, match="needs a random generator"):
        neighborhood.realize(np.ones((1, 1), bool), None)


def test_frames_of_one_type_and_of_several_give_the_same_neighbors():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))
    frame["e"] = (1000 * frame["e"]).round()
    groups = {"pair": ["b", "d"]}
    flips = rng.random((3000, 4)) < 0.3
    for within in ("keep", "redraw"):
        of_one = al.Table(frame, groups=groups, within=within).at(3)
        of_two = al.Table(frame.astype({"e": int}), groups=groups, within=within).at(3)
        one, two = (there.realize(flips, np.random.default_rng(1)) for there in (of_one, of_two))
        pd.testing.assert_frame_equal(one, two.astype({"e": float}))
        kept = one.to_numpy() == frame.iloc[3].to_numpy()
        pair = kept[:, [1, 3]]
        assert (pair.all(axis=1) | ~pair.any(axis=1)).all()  # both columns of the pair change, or neither


CONVERSIONS = {
    "array": lambda frame: frame.to_numpy(),
    "frame of one type": lambda frame: frame,
    "frame of several": lambda frame: frame.astype({"a": np.float32}),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("within", ["keep", "redraw"])
@pytest.mark.parametrize("kind", CONVERSIONS)
def test_neighbors_cell_by_cell(kind, within):
    """Groups of different sizes, a fixed column and one that no row breaks: every cell has the right value."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 50, size=(40, 9)).astype(float), columns=list("abcdefghi"))
    frame["h"] = 7.0
    names = None if kind != "array" else list(frame.columns)
    groups = {"three": ["f", "b", "i"], "two": ["g", "a"]}
    table = al.Table(CONVERSIONS[kind](frame), names=names, groups=groups, fixed=["d"], n_bins=2, within=within)
    neighborhood = table.at(5)
    flips = rng.random((25_000, len(neighborhood.literals))) < 0.4  # more than are handled at once
    neighbors = neighborhood.realize(flips, np.random.default_rng(1))
    if kind != "array":
        neighbors = np.column_stack([np.asarray(neighbors[name]) for name in frame])
    values, own = frame.to_numpy(), frame.iloc[5].to_numpy()
    assert (neighbors[:, [3, 7]] == own[[3, 7]]).all()
    for literal, flipped in zip(neighborhood.literals, flips.T, strict=True):
        columns = [frame.columns.get_loc(name) for name in groups.get(literal.name, [literal.name])]
        sides = values[:, columns] < np.median(values[:, columns], axis=0)
        keeps = (sides == sides[5]).all(axis=1)
        drawn = {tuple(row) for row in neighbors[flipped][:, columns]}
        assert drawn == {tuple(row) for row in values[~keeps][:, columns]}
        left = {tuple(row) for row in neighbors[~flipped][:, columns]}
        kept = values[keeps] if within == "redraw" else own[None]
        assert left == {tuple(row) for row in kept[:, columns]}


@pytest.mark.parametrize("within", ["keep", "redraw"])
def test_neighbors_do_not_depend_on_how_many_cells_are_looked_at_together(within, monkeypatch):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 7)), columns=list("abcdefg"))
    there = al.Table(frame, groups=[["b", "f"]], fixed=["c"], within=within).at(3)
    flips = np.random.default_rng(1).random((501, 5)) < 0.3
    whole = there.realize(flips, np.random.default_rng(2))
    for cells in (1, 1100, 10**9):
        monkeypatch.setattr(al.spaces.natives, "_CELLS_AT_ONCE", cells)
        pd.testing.assert_frame_equal(there.realize(flips, np.random.default_rng(2)), whole)


@pytest.mark.parametrize("shape", [(4, 2), (4, 1), (4, 4), (3,), (2, 3, 3)])
@pytest.mark.parametrize("within", ["keep", "redraw"])
def test_flips_of_another_shape_are_refused(shape, within):
    there = al.Table(np.random.default_rng(0).normal(size=(50, 3)), within=within).at(0)
    with pytest.raises(ParameterError, match=r"flips have shape .* must be \(n, 3\)"):
        there.realize(np.zeros(shape, bool), np.random.default_rng(0))


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "PCG64", "PCG64DXSM", "SFC64"])
def test_any_generator_draws_every_row_alike(kind):
    neighborhood = al.Table(np.arange(100.0)[:, None], n_bins=2).at(0)
    drawn = neighborhood.realize(np.ones((50_000, 1), bool), np.random.Generator(getattr(np.random, kind)(0)))
    counts = np.bincount(drawn[:, 0].astype(int), minlength=100)[50:]
    assert np.abs(counts - 1000).max() < 5 * math.sqrt(1000)


def test_objects_stay_objects_in_a_frame_of_nothing_else():
    frame = pd.DataFrame({"a": ["x", "y", None], "b": ["u", "u", "v"]}, dtype=object)
    drawn = al.Table(frame).at(0).realize(np.ones((9, 2), bool), np.random.default_rng(0))
    assert list(drawn.dtypes) == [object, object]
    assert set(drawn["a"]) == {"y", None}
    assert list(drawn.columns) == ["a", "b"]
