"""`explain_partition` returns a frame of the library of the frame it gets."""

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anchorline.batch import Work, explain_partition
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from helpers.batch_models import (
    FAILS,
    Trouble,
)
from helpers.many_rows import CHEAP, ROWS, explainer_of, with_ages


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frame_in_frame_out(convert, alone):
    rows = with_ages((1, FAILS))[:3]
    rows["id"] = ["a", "b", "c"]
    result = explain_partition(convert(rows), Work.from_keywords(explainer_of(Trouble()), **CHEAP), id="id")
    assert type(result) is type(convert(rows))
    table = result if isinstance(result, pd.DataFrame) else result.to_pandas()
    assert table["id"].tolist() == ["a", "b", "c"]
    assert table["error_type"].tolist()[1] == "PredictorError"
    assert [table["explanation"][0], table["explanation"][2]] == [alone[0], alone[2]]


def test_ids_that_are_none():
    work = Work.from_keywords(explainer_of(), **CHEAP)
    with pytest.raises(
        ParameterError, match="id is 'name', but it must be the name of a column of the frame: 'age'"
    ):
        explain_partition(ROWS[:1], work, id="name")
    with pytest.raises(ParameterError, match="Rename your column"):
        explain_partition(ROWS[:1].assign(error=1), work, id="error")


def test_keys_know_rows_that_cannot_be_read():
    work = Work.from_keywords(explainer_of(), **CHEAP)
    rows = ROWS[:2].astype(object)
    rows.iloc[0, 0] = "old"
    first, second = explain_partition(rows, work)["key"]
    assert explain_partition(rows[::-1], work)["key"].tolist() == [second, first]
    assert first != second


def sign_work():
    return Work.from_keywords(Explainer(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1], Hypercube()), k=2, queries=50)


@pytest.mark.parametrize("id", [[-1, 17], ["p", "q"]])
def test_an_id_is_no_coordinate(id):
    frame = pd.DataFrame({"id": id, "a": [1, -1], "b": [1, 1]})
    assert explain_partition(frame, sign_work(), "id")["prediction"].tolist() == [0.75, -0.25]
    assert explain_partition(frame[["a", "id", "b"]], sign_work(), "id")["id"].tolist() == id


def test_names_of_the_answer_are_no_ids():
    frame = pd.DataFrame({"row": [5], "a": [1], "b": [1]})
    with pytest.raises(ParameterError, match="id is 'row', the name of a column of the result"):
        explain_partition(frame, sign_work(), "row")


@pytest.mark.parametrize("name", ["row", "key", "error"])
def test_an_index_called_like_an_answer_loses_its_name_only(name):
    frame = pd.DataFrame({"a": [1, 1], "b": [1, -1]}, index=pd.Index([30, 10], name=name))
    result = explain_partition(frame, sign_work())
    assert result.index.tolist() == [30, 10]
    assert result.reset_index().columns[0] == "index"
    assert explain_partition(frame.rename_axis("client"), sign_work()).index.name == "client"


def test_pieces_of_arrow_tables_are_partitions():
    batch = pa.RecordBatch.from_pydict({"a": [1, 1], "b": [1, -1]})
    assert explain_partition(batch, sign_work())["prediction"].to_pylist() == [0.75, 0.25]
    with pytest.raises(ParameterError, match="Got a list, not a frame"):
        explain_partition([[1, 1]], sign_work())


def test_rows_that_cannot_be_read_have_one_key_however_they_come():
    frames = [
        pd.DataFrame({"a": [20], "b": pd.array([None], dtype=object)}),
        pd.DataFrame({"a": [20.0], "b": pd.array([None], dtype="boolean")}),
        pl.DataFrame({"a": [20], "b": [None]}),
        pa.table({"a": [20], "b": [None]}),
    ]
    keys = [nw.from_native(explain_partition(frame, sign_work()))["key"].to_list() for frame in frames]
    assert all(key == keys[0] for key in keys)
