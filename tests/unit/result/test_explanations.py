"""Many explanations: a sequence, frames, files, and what they have in common."""

import os
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anchorline as al
from anchorline.errors import FormatError, MissingDependencyError, OutputFileError, ParameterError
from anchorline.result.explanations import COLUMNS, Explanations, Failure, content_key, summarize


def rate(z):
    return np.tanh(0.5 * z[:, 0] - 0.25 * z[:, 1] + 0.1 * z[:, 2] * z[:, 3])


ROWS = [[1, 1, 1, 1], [1, -1, 1, -1], [1, 0, 1, 1], [-1, 1, -1, 1], [-1, -1, 1, 1]]


@pytest.fixture(scope="module")
def explainer():
    return al.Explainer(rate, al.Hypercube(["income", "debt", "owner", "town"]), output="rate", threshold=0.0)


@pytest.fixture(scope="module")
def many(explainer):
    return explainer.explain_many(ROWS, k=3, errors="keep")


def test_it_is_a_sequence_in_the_order_of_the_rows(many, explainer):
    assert len(many) == 5
    for i in (0, 1, 3, 4):
        assert many[i] == explainer.explain(ROWS[i], k=3)
    assert many[-1] == many[4]
    assert [type(entry).__name__ for entry in many] == ["Explanation"] * 2 + ["Failure"] + ["Explanation"] * 2
    with pytest.raises(IndexError):
        many[5]


def test_slices_keep_the_rows_places(many):
    part = many[2:]
    assert isinstance(part, Explanations)
    assert part[0] == many[2]
    assert part[0].row == 2
    assert many[::-1][0] == many[4]
    assert [record["row"] for record in many[::2].records] == [0, 2, 4]
    assert len(many[9:]) == 0


def test_failures_are_told_apart(many):
    assert len(many.explained) == 4
    assert [entry.error_type for entry in many.failures] == ["InstanceError"]
    assert "x[1] is 0" in many.failures[0].error
    assert str(many.failures[0]).startswith("Row 2 has no explanation. InstanceError")
    assert repr(many) == "Explanations(4 rows explained, 1 failed)"


def test_what_was_looked_at_is_not_pickled_twice():
    explainer = al.Explainer(lambda z: 0.5 * z[:, 0], al.Hypercube())
    many = explainer.explain_many([[1, 1, 1], [-1, 1, -1]] * 5)
    fresh = Explanations.from_records(many.records)
    size = len(pickle.dumps(fresh))
    assert [fresh[i] for i in range(10)]
    assert len(pickle.dumps(fresh)) == size


def test_records_are_copies(many):
    many.records[0]["prediction"] = 77
    assert many.records[0]["prediction"] == many[0].prediction


def test_made_of_explanations_or_of_records_it_is_the_same(many):
    again = Explanations(list(many))
    assert [r["explanation"] for r in again.records] == [r["explanation"] for r in many.records]
    assert Explanations.from_records(many.records) == many
    assert pickle.loads(pickle.dumps(many)) == many
    assert hash(Explanations.from_records(many.records)) == hash(many)
    assert many != "something else"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library(many, backend):
    frame = many.to_frame(backend)
    assert type(frame) is {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[backend]
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names == ["row", *COLUMNS]
    table = frame if backend == "pandas" else frame.to_pandas()
    assert table["row"].tolist() == [0, 1, 2, 3, 4]
    assert table["prediction"].isna().tolist() == [False, False, True, False, False]
    assert table["error_type"].isna().tolist() == [True, True, False, True, True]
    assert table["rule"][0].endswith(f"rate = {many[0].prediction:.3f}")
    assert al.Explanation.from_json(table["explanation"][3]) == many[3]


def test_a_frame_of_terms(many):
    terms = many.to_frame("polars", by="term")
    assert terms.columns == ["row", "key", "name", "literal", "contribution"]
    first = terms.filter(pl.col("row") == 0)
    assert first["literal"].to_list() == [term.literal.text for term in many[0].terms]
    assert first["contribution"].to_list() == [term.contribution for term in many[0].terms]
    with pytest.raises(ParameterError, match="it must be 'row' or 'term'"):
        many.to_frame(by="literal")


@pytest.mark.parametrize("backend", ["foo", 3, None, "dask"])
@pytest.mark.parametrize("by", ["row", "term"])
def test_backends_that_make_no_frame(many, backend, by):
    with pytest.raises(
        ParameterError, match=f"backend is {backend!r}, but it must be 'pandas', 'polars' or 'pyarrow'"
    ):
        many.to_frame(backend, by=by)
    with pytest.raises(
        ParameterError, match=f"backend is {backend!r}, but it must be 'pandas', 'polars' or 'pyarrow'"
    ):
        many[0].to_frame(backend)


def test_a_backend_that_is_not_installed(many, monkeypatch):
    monkeypatch.setitem(sys.modules, "modin", None)
    with pytest.raises(MissingDependencyError, match="backend is 'modin', which is not installed"):
        many.to_frame("modin")


def test_an_empty_one_has_frames_too():
    assert len(Explanations().to_frame("polars")) == 0
    assert Explanations().to_frame("pyarrow", by="term").num_rows == 0
    assert str(Explanations().summary()) == "0 rows explained, 0 failed."


def test_parquet_and_back(many, tmp_path):
    file = tmp_path / "why.parquet"
    many.to_parquet(file)
    assert Explanations.from_parquet(file) == many
    first = file.read_bytes()
    many.to_parquet(file)  # over the old one, the same bytes
    assert file.read_bytes() == first
    assert os.listdir(tmp_path) == ["why.parquet"]
    assert pl.read_parquet(file)["verdict"].null_count() == 1


def test_a_file_that_cannot_be_written_leaves_nothing(many, tmp_path):
    with pytest.raises(OutputFileError, match="folder does not exist"):
        many.to_parquet(tmp_path / "nowhere" / "why.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputFileError, match="folder"):
        many.to_parquet(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def test_files_that_hold_no_explanations_are_refused(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(FormatError, match="cannot be read"):
        Explanations.from_parquet(tmp_path / "a.parquet")
    pq.write_table(pa.table({"row": [1]}), tmp_path / "b.parquet")
    with pytest.raises(FormatError, match="lacks the column 'key'"):
        Explanations.from_parquet(tmp_path / "b.parquet")


def test_texts_that_no_file_can_hold_become_escapes(explainer, tmp_path):
    entry = Failure(0, "half a pair: \ud800", "Odd\udfff")
    Explanations([entry]).to_parquet(tmp_path / "odd.parquet")
    (found,) = Explanations.from_parquet(tmp_path / "odd.parquet")
    assert found == Failure(0, "half a pair: \\ud800", "Odd\\udfff")


def test_the_summary_counts_attributes_signs_and_sizes(many):
    summary = many.summary()
    assert (summary.n_rows, summary.n_failed, dict(summary.failures)) == (5, 1, {"InstanceError": 1})
    income = summary.attributes[0]
    assert income.name == "income"
    assert income.n_rows == 4
    assert income.adds == 0.5
    sizes = [abs(term.contribution) for e in many.explained for term in e.terms if term.literal.name == "income"]
    assert income.typical_size == np.median(sizes)
    assert dict(income.literals) == {"income = +1": 2, "income = -1": 2}
    assert sum(summary.verdicts.values()) == 4
    rows = [row for row, _, _ in summary.least_trustworthy]
    assert sorted(rows) == [0, 1, 3, 4]
    order = ["UNRELIABLE", "WEAK", "UNKNOWN", "TRUSTWORTHY"]
    found = [
        (order.index(verdict), -(1 - many[row].certificate.stability.low))
        for row, verdict, _ in summary.least_trustworthy
    ]
    assert found == sorted(found)
    assert "4 rows explained, 1 failed (InstanceError 1)" in str(summary)
    assert summarize(enumerate(many)).attributes == summary.attributes


def test_a_summary_of_a_slice_names_the_rows_of_the_whole(many):
    assert {row for row, _, _ in many[3:].summary().least_trustworthy} == {3, 4}


def test_a_summary_drives_no_terminal():
    explainer = al.Explainer(lambda z: 0.5 * z[:, 0], al.Hypercube(["\x1b[2J", "b"]))
    text = str(explainer.explain_many([[1, 1]]).summary())
    assert "\x1b" not in text


def test_unmeasured_rows_are_neither_good_nor_bad(explainer):
    summary = explainer.explain_many(ROWS[:2], n_certify=0).summary()
    assert dict(summary.verdicts) == {"UNKNOWN": 2}
    assert "Least trustworthy" not in str(summary)


def test_keys_tell_rows_apart_by_content(many):
    keys = [record["key"] for record in many.records]
    assert len(set(keys)) == 5
    assert content_key([1, "a", None]) == content_key((1, "a", None)) != content_key([1.5, "a", None])


def test_plots_take_them(many):
    pytest.importorskip("matplotlib").use("agg")
    from anchorline.render import plot

    axes = plot.summary(many.explained)
    assert len(axes.get_yticklabels()) >= 2
    import matplotlib.pyplot as plt

    plt.close("all")


def test_a_walk_over_all_rows_keeps_none_of_them(many):
    fresh = Explanations.from_records(many.records)
    fresh.summary()
    fresh.to_frame(by="term")
    assert not fresh._read
    assert fresh[0] is fresh[0]


def test_terms_of_one_row_about_one_attribute_count_once():
    rows = np.random.default_rng(0).uniform(0, 4, (200, 2))
    explainer = al.Explainer(lambda z: np.tanh(z[:, 0] - 2) + 0.1 * z[:, 1], al.Table(rows), output="size")
    explained = explainer.explain_many(rows[(rows[:, 0] > 1) & (rows[:, 0] < 3)][:6], k=4, n_certify=0)
    names = [[term.literal.name for term in e.terms] for e in explained]
    assert any(len(set(each)) < len(each) for each in names)  # two facts about one attribute
    first = explained.summary().attributes[0]
    assert first.n_rows == sum(first.name in each for each in names)
    totals = [sum(term.contribution for term in e.terms if term.literal.name == first.name) for e in explained]
    assert first.typical_size == pytest.approx(np.median(np.abs(totals)))
