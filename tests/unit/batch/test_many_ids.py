"""Rows keep what identifies them for their owner: the index of a pandas frame, and a column of ids."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from anchorline.batch import Work
from anchorline.batch.rows import rows_with_ids
from anchorline.batch.run import RunOptions, run_batch
from anchorline.errors import JournalError, ParameterError, RowError
from anchorline.explainer import Explainer
from anchorline.result.explanations import COLUMNS, FACT_COLUMNS, Explanations
from anchorline.result.frames import RowIds, plain_values
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from helpers.batch_models import FAILS, Trouble
from helpers.many_rows import CHEAP, ROWS, TRAIN, explainer_of, texts, with_ages

CASES = [f"A-{i}" for i in range(len(ROWS))]
NAMED = ROWS.assign(case=CASES)
COLUMN_NAMES = ["row", *COLUMNS]


@pytest.fixture(scope="module")
def explainer():
    return explainer_of()


def test_a_frame_has_the_index_of_the_rows(explainer):
    rows = ROWS.iloc[[7, 2, 5]].set_axis(pd.Index(["g", "b", "e"], name="code"))
    many = explainer.explain_many(rows, **CHEAP)
    frame, terms = many.to_frame(), many.to_frame(by="fact")
    assert (frame.index.tolist(), frame.index.name) == (["g", "b", "e"], "code")
    assert list(frame) == COLUMN_NAMES
    assert terms.index.tolist() == ["gbe"[place] for place in terms["row"]]
    assert many[1:].to_frame().index.tolist() == ["b", "e"]
    assert many[::-1].explained.to_frame().index.tolist() == ["e", "b", "g"]
    assert pickle.loads(pickle.dumps(many)).to_frame().index.equals(rows.index)
    assert texts(many) == texts(explainer.explain_many(rows.reset_index(drop=True), **CHEAP))


def test_an_index_from_a_selection_joins_with_the_rows(explainer):
    part = ROWS.iloc[10:13]
    frame = explainer.explain_many(part, **CHEAP).to_frame()
    assert part.join(frame["prediction"])["prediction"].notna().all()


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
def test_other_frames_have_the_index_as_a_column(explainer, backend):
    rows = ROWS.iloc[[7, 2]]
    many = explainer.explain_many(rows, **CHEAP)
    for by in ("row", "fact"):
        frame = many.to_frame(backend, by=by)
        names = frame.columns if backend == "polars" else frame.column_names
        assert names[:2] == ["index", "row"]
        labels = frame["index"].to_list() if backend == "polars" else frame["index"].to_pylist()
        assert set(labels) == {7, 2}
    named = explainer.explain_many(rows.rename_axis("code"), **CHEAP).to_frame("polars")
    assert named["code"].to_list() == [7, 2]


def test_an_index_with_levels_or_with_the_name_of_a_column(explainer):
    levels = pd.MultiIndex.from_tuples([("Lens", 1), ("Lens", 2)], names=["place", None])
    many = explainer.explain_many(ROWS[:2].set_axis(levels), **CHEAP)
    assert many.to_frame().index.equals(levels)
    assert many.to_frame("polars").select("place", "level_1").rows() == [("Lens", 1), ("Lens", 2)]
    reserved = explainer.explain_many(ROWS[1:3].rename_axis("row"), **CHEAP)
    assert reserved.to_frame().reset_index()[["index", "row"]].values.tolist() == [[1, 0], [2, 1]]
    assert reserved.to_frame("polars")["index"].to_list() == [1, 2]


@pytest.mark.parametrize("rows", [ROWS[:3], pl.from_pandas(ROWS[:3]), ROWS[:3].to_dict("records")])
def test_the_default_index_and_rows_without_index_change_nothing(explainer, rows):
    many = explainer.explain_many(rows, **CHEAP)
    assert many.to_frame().index.equals(pd.RangeIndex(3))
    assert many[1:].to_frame().index.equals(pd.RangeIndex(2))
    assert many.to_frame("polars").columns == COLUMN_NAMES
    assert many.to_frame("polars", by="fact").columns == list(FACT_COLUMNS)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, lambda rows: rows.to_dict("records")])
def test_the_column_of_ids_is_kept_and_not_explained(explainer, convert, tmp_path):
    many = explainer.explain_many(convert(NAMED[:4]), id="case", **CHEAP)
    assert texts(many) == texts(explainer.explain_many(ROWS[:4], **CHEAP))
    for backend in ("pandas", "polars"):
        frame, terms = many[1:].to_frame(backend), many.to_frame(backend, by="fact")
        assert list(frame.columns) == ["row", "case", *COLUMNS]
        assert list(frame["case"]) == CASES[1:4]
        assert list(terms["case"]) == [CASES[place] for place in terms["row"]]
    many.to_parquet(tmp_path / "why.parquet")
    again = Explanations.from_parquet(tmp_path / "why.parquet")
    assert again == many == pickle.loads(pickle.dumps(many))
    assert again != explainer.explain_many(ROWS[:4], **CHEAP)
    assert again.to_frame()["case"].tolist() == CASES[:4]
    assert "(case): A-" in str(again.summary())


def test_an_id_that_the_table_has_stays_explained():
    train = TRAIN.assign(case=np.arange(len(TRAIN)) % 9)
    model = lambda frame: np.asarray(frame["case"]) / 10  # noqa: E731
    many = Explainer(model, Table(train)).explain_many(train[:3], id="case", **CHEAP)
    assert many.to_frame()["case"].tolist() == [0, 1, 2]
    assert all("case" in e.facts[0].attribute for e in many)


def test_a_space_without_names_does_not_read_the_id():
    rows = pd.DataFrame({"a": [1, -1], "case": [31, 32], "b": [1, 1]})
    explainer = Explainer(lambda z: 0.5 * z[:, 0], Hypercube())
    many = explainer.explain_many(rows, id="case", k=2)
    assert [len(e.instance) for e in many] == [2, 2]
    assert many.to_frame()["case"].tolist() == [31, 32]


def test_failures_name_the_id():
    explainer, rows = explainer_of(Trouble()), with_ages((2, FAILS)).assign(case=CASES)[:4]
    many = explainer.explain_many(rows, id="case", errors="keep", **CHEAP)
    assert str(many.failures[0]).startswith("Row 2 (case 'A-2') has no explanation.")
    assert many[1:][1] == many.failures[0]
    with pytest.raises(RowError, match=r"Row 2 \(case 'A-2'\) has no"):
        explainer.explain_many(rows, id="case", **CHEAP)


def test_wrong_ids_are_refused(explainer):
    with pytest.raises(ParameterError, match=r"id is 'Case', but it must be the name of a column.*'case'"):
        explainer.explain_many(NAMED, id="Case")
    with pytest.raises(ParameterError, match=r"id is 'case', .* column of row 1: 'age'"):
        explainer.explain_many([{"age": 1, "case": 1}, {"age": 2}], id="case")
    for taken in ("row", "prediction", "fact"):
        with pytest.raises(ParameterError, match=f"id is '{taken}', the name of a column of the result"):
            explainer.explain_many(NAMED.assign(**{taken: 1}), id=taken)
    with pytest.raises(ParameterError, match="a ndarray without column names"):
        explainer.explain_many(NAMED.to_numpy(), id="case")


def test_duplicates_are_explained_with_a_warning(explainer):
    rows = NAMED[:3].assign(case=["a", "b", "a"])
    with pytest.warns(UserWarning, match=r"one value in more than one row: 'a' in rows 0 and 2\.") as caught:
        many = explainer.explain_many(rows, id="case", **CHEAP)
    assert caught[0].filename == __file__
    assert many.to_frame()["case"].tolist() == ["a", "b", "a"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer.explain_many(NAMED[:1], id="case", **CHEAP)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, None, 3], [1, None, 3]),
        ([2**60 + 1, None], [2**60 + 1, None]),
        ([float("nan"), pd.NaT, pd.NA], [None, None, None]),
        ([1, "b", True], ["1", "b", "True"]),
        ([2**53 + 1, 0.5], [str(2**53 + 1), "0.5"]),
        ([np.int64(4), np.bool_(True)], ["4", "True"]),
        (["half \ud800", (1, 2)], ["half \\ud800", "(1, 2)"]),
        ([pd.Timestamp("2026-01-02"), None], [pd.Timestamp("2026-01-02"), None]),
        ([], []),
    ],
)
def test_ids_of_any_type_fit_every_frame_and_file(explainer, given, expected, tmp_path):
    ids = RowIds.from_values("case", given)
    assert list(ids.values) == plain_values(given) == expected
    records = explainer.explain_many(ROWS[: len(given)], **CHEAP).records
    many = Explanations.from_records(records, ids)
    many.to_parquet(tmp_path / "why.parquet")
    assert Explanations.from_parquet(tmp_path / "why.parquet") == many
    for backend in ("pandas", "polars", "pyarrow"):
        frame = many.to_frame(backend)
        column = frame["case"].to_pylist() if backend == "pyarrow" else frame["case"].to_list()
        assert plain_values(column) == expected


@pytest.mark.parametrize("name", ["case.number", "Fall Nr. 'ä'", "index", "with\nbreak"])
def test_ids_of_any_name_are_read_back(explainer, name, tmp_path):
    (tmp_path / "case=3").mkdir()
    out = tmp_path / "case=3" / "why.parquet"
    many = explainer.explain_many(ROWS[4:6].assign(**{name: [8, 9]}), id=name, **CHEAP)
    many.to_parquet(out)
    assert Explanations.from_parquet(out.parent).to_frame()[name].tolist() == [8, 9]
    frame = many.to_frame("polars")
    assert (frame.width, frame[name].to_list()) == (len(COLUMN_NAMES) + 2, [8, 9])


def run(out, rows=NAMED[:6], id="case", model=None, **options):
    explainer = explainer_of() if model is None else explainer_of(model)
    found, ids = rows_with_ids(rows, explainer, id)
    work = Work.from_keywords(explainer, **CHEAP)
    return run_batch(found, work, Path(out), {"model": "m", "data": "d"}, RunOptions(**options), ids)


def test_a_batch_keeps_the_ids_and_resumes_only_with_the_same_column(tmp_path):
    out, rows = tmp_path / "why.parquet", with_ages((4, FAILS)).assign(case=CASES, other=CASES)[:6]
    with pytest.raises(RowError, match=r"Row 4 \(case 'A-4'\)"):
        run(out, rows, model=Trouble(), fail_fast=True)
    for other in ("other", None):
        with pytest.raises(JournalError, match=rf"id was 'case', is {other!r}"):
            run(out, rows, other, Trouble(), resume=True)
    report = run(out, rows, model=Trouble(), resume=True)
    assert "  Row 4 (case 'A-4') has no explanation" in "\n".join(report.lines())
    assert report.first_failures == run(out, rows, model=Trouble(), resume=True).first_failures
    with pytest.raises(JournalError, match="id was 'case', is None"):
        run(out, rows, None, Trouble(), resume=True)
    assert pq.read_schema(out).names == ["row", "case", *COLUMNS]
    assert Explanations.from_parquet(out).to_frame()["case"].tolist() == CASES[:6]


def test_a_file_without_ids_has_no_trace_of_them(tmp_path):
    run(tmp_path / "why.parquet", id=None)
    schema = pq.read_schema(tmp_path / "why.parquet")
    assert schema.names == COLUMN_NAMES
    assert list(schema.metadata) == [b"anchorline.batch"]
    assert b'"id"' not in schema.metadata[b"anchorline.batch"]
