"""Tables from Parquet, Arrow and Feather files, with the same content in every backend."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from anchorline import errors
from anchorline.io import read_table
from helpers.tables import columns, columns_of


def test_parquet_and_arrow(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": pd.Categorical(["u", "v"])}, index=[7, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pyarrow.feather.write_feather(table, str(tmp_path / "a.feather"))
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), table.schema) as stream:
        stream.write_table(table)
    for name in ("a.parquet", "a.feather", "a.arrow"):
        assert columns(tmp_path / name) == {"a": [1, 2], "b": ["x", None], "c": ["u", "v"]}
        assert list(columns(tmp_path / name, columns=["b"])) == ["b"]
        assert read_table(tmp_path / name)["c"].dtype == "category"
    frame.rename_axis("id").to_parquet(tmp_path / "named.parquet")
    assert columns(tmp_path / "named.parquet")["id"] == [7, 9]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([0, 1], ["0", "1"]),
        ([0.5, 1.5], ["0.5", "1.5"]),
        (pd.date_range("2018-03-04", periods=2), ["2018-03-04 00:00:00", "2018-03-05 00:00:00"]),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), ["('a', '1')", "('b', '2')"]),
        (pd.CategoricalIndex(["x", "y"]), ["x", "y"]),
    ],
    ids=["whole", "floats", "dates", "levels", "categories"],
)
def test_labels_of_pandas_are_read_as_texts(tmp_path, labels, names):
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=labels)
    frame.to_parquet(tmp_path / "a.parquet")
    assert columns(tmp_path / "a.parquet") == {names[0]: [1, 3], names[1]: [2, 4]}
    assert list(columns(tmp_path / "a.parquet", columns=names[1:])) == names[1:]
    frame.set_axis(pd.Index([7, 9], name="id")).to_parquet(tmp_path / "named.parquet")
    assert columns(tmp_path / "named.parquet") == {names[0]: [1, 3], names[1]: [2, 4], "id": [7, 9]}
    frame.set_axis([7, 9]).to_parquet(tmp_path / "unnamed.parquet")
    assert columns(tmp_path / "unnamed.parquet") == {names[0]: [1, 3], names[1]: [2, 4]}
    assert columns(tmp_path / "unnamed.parquet", columns=["__index_level_0__"]) == {"__index_level_0__": [7, 9]}


def test_types_of_pandas_are_kept(tmp_path):
    frame = pd.DataFrame({"i": pd.array([2**53 + 1, None], "Int64"), "b": pd.array([True, None], "boolean")})
    frame["day"] = pd.date_range("2018-03-04", periods=2, tz="Europe/Paris").as_unit("us")
    frame.to_parquet(tmp_path / "a.parquet")
    frame_read = read_table(tmp_path / "a.parquet", backend="pandas")
    pd.testing.assert_frame_equal(frame_read, frame)
    assert columns(tmp_path / "a.parquet", columns=["i"]) == {"i": [2**53 + 1, None]}


def encoded(values):
    return pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(values))


def not_utf8():
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xffx")])


MIXED = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])


@pytest.mark.parametrize(
    ("backend", "array", "match"),
    [
        ("pandas", encoded(["x", None]), r"column 'bad' \(dictionary<.*cannot be read into pandas: .*null"),
        ("pandas", encoded(["x", "x"]), r"column 'bad' \(dictionary<.*cannot be read into pandas: .*unique"),
        ("pandas", MIXED, r"column 'bad' \(sparse_union<"),
        ("polars", MIXED, r"column 'bad' \(sparse_union<"),
        ("pandas", pa.array([0, 1], pa.timestamp("us", "Mars/Olympus")), r"column 'bad' \(.*tz=Mars/Olympus"),
        ("polars", pa.array([0, 1], pa.timestamp("us", "Mars/Olympus")), r"column 'bad' \(.*tz=Mars/Olympus"),
        (
            "polars",
            pa.array([1, 2], pa.decimal256(60)),
            r"column 'bad' \(decimal256",
        ),  # Polars raises a PanicException, which is not an Exception
        ("pandas", not_utf8(), "Invalid UTF8"),
        ("polars", not_utf8(), "Invalid UTF8"),
        ("pyarrow", not_utf8(), "Invalid UTF8"),
    ],
)
def test_columns_that_a_backend_does_not_know(tmp_path, backend, array, match):
    table = pa.table({"good": [1, 2], "bad": array})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as written:
        written.write_table(table)
    with pytest.raises(errors.TableFileError, match=match) as caught:
        read_table(tmp_path / "a.arrow", backend=backend)
    assert str(caught.value).startswith(f"'{tmp_path}/a.arrow'")
    if "UTF8" not in match:
        assert str(caught.value).endswith("Rewrite the file with numbers, texts, booleans and dates only.")
        assert columns_of(read_table(tmp_path / "a.arrow", backend=backend, columns=["good"])) == {"good": [1, 2]}


@pytest.mark.parametrize(
    ("notes", "match"),
    [
        (b"{", "has pandas metadata that cannot be read: .* Rewrite the file"),
        (b"\xff", "has pandas metadata that cannot be read"),
        (b'{"columns": 1}', "has pandas metadata that cannot be read"),
        (b'{"columns": [{"name": "b"}]}', "column 'b'"),
        (b'{"columns": [{"name": "b", "pandas_type": "x", "numpy_type": "pint[m]"}]}', r"column 'b' .*pint\[m\]"),
    ],
)
def test_damaged_notes_of_pandas(tmp_path, notes, match):
    table = pa.table({"a": [1], "b": [2]}).replace_schema_metadata({"pandas": notes})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(errors.TableFileError, match=match):
        read_table(tmp_path / "a.parquet", backend="pandas")


def test_notes_of_an_index_that_is_gone_do_no_harm(tmp_path):
    for notes in (b"{}", b'{"index_columns": ["gone"], "columns": [], "column_indexes": []}'):
        table = pa.table({"a": [1]}).replace_schema_metadata({"pandas": notes})
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
        assert columns(tmp_path / "a.parquet") == {"a": [1]}


def test_interrupts_and_a_full_memory_are_not_the_files_fault(tmp_path, monkeypatch):
    pl.DataFrame({"a": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    for error in (KeyboardInterrupt, MemoryError):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr("anchorline.io.tables._to_backend", fail)
        with pytest.raises(error):
            read_table(tmp_path / "a.parquet")


def test_parquet_by_polars_alone(tmp_path, monkeypatch):
    pl.DataFrame({"a": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert columns_of(read_table(tmp_path / "a.parquet", backend="polars")) == {"a": [1, 2]}
    with pytest.raises(errors.MissingDependencyError, match="pyarrow"):
        read_table(tmp_path / "a.parquet", backend="pandas")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 or something else")
    with pytest.raises(errors.TableFileError, match="is not a valid parquet file"):
        read_table(tmp_path / "a.parquet", backend="polars")


def test_columnar_files_that_are_none(tmp_path):
    for name in ("a.parquet", "a.arrow", "a.feather"):
        (tmp_path / name).write_bytes(b"PAR1 or something else")
        with pytest.raises(errors.TableFileError, match=r"is not a valid (parquet|arrow) file"):
            read_table(tmp_path / name)
    twice = pa.table([[1], [2]], names=["a", "a"])
    pyarrow.feather.write_feather(twice, str(tmp_path / "a.feather"))
    with pytest.raises(errors.TableFileError, match="two columns called 'a'"):
        read_table(tmp_path / "a.feather")
    pyarrow.parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    with pytest.raises(errors.TableFileError, match="has no rows"):
        read_table(tmp_path / "a.parquet")
