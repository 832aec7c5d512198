"""Tables as people write them, explanations with limits, and files written whole or not at all."""

import errno
import gzip
import json
import math
import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import anchorline as al
from anchorline import errors
from anchorline.io import files, read_explanation, read_rows, read_table, write_atomically

BACKENDS = ["pandas", "polars", "pyarrow"]


@pytest.fixture
def file(tmp_path):
    """Write a file of that name."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def columns_of(frame):
    """Plain lists of any frame, None where missing."""
    if isinstance(frame, pd.DataFrame):
        return {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame}
    return frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()


def columns(path, **keywords):
    """What is read, alike on every backend."""
    found = [columns_of(read_table(path, backend=backend, **keywords)) for backend in BACKENDS]
    assert found[0] == found[1] == found[2]
    return found[0]


# --- CSV ---------------------------------------------------------------------------------------------


def test_a_csv_with_mark_semicolons_quotes_and_commas(file):
    text = '\ufeff"age";"town, or ""place""";"rate"\r\n31;"Lens;62";1,5\r\n;"a\nb";2,25\r\n40;NA;\r\n'
    assert columns(file("a.csv", text)) == {
        "age": [31.0, None, 40.0],
        'town, or "place"': ["Lens;62", "a\nb", "NA"],
        "rate": [1.5, 2.25, None],
    }


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_found(file, separator):
    lines = [["name", "x", "y"], ["a b", "1", "2.5"], ["c", "2", "3"]]
    path = file("a.csv", "\n".join(separator.join(line) for line in lines) + "\n")
    assert columns(path) == {"name": ["a b", "c"], "x": [1, 2], "y": [2.5, 3.0]}


def test_types_of_columns(file):
    text = "i,f,t,b,empty,huge,odd,n\n1,1,x,True,,99999999999999999999,1_000,nan\n-2,.5e3,,False,,1,2,1\n"
    assert columns(file("a.csv", text)) == {
        "i": [1, -2],
        "f": [1.0, 500.0],
        "t": ["x", None],
        "b": [True, False],
        "empty": [None, None],
        "huge": [1e20, 1.0],
        "odd": ["1_000", "2"],
        "n": ["nan", "1"],
    }
    frame = read_table(file("a.csv", text), backend="pandas")
    assert [str(frame[name].dtype) for name in ("i", "f", "b", "empty")] == ["int64", "float64", "bool", "float64"]


@pytest.mark.parametrize("text", ["\u0661\u0662", "1e", "1.2.3", "+-1", "--", ".", "1 2", "0x10", "Infinity"])
def test_what_only_looks_like_a_number_is_text(file, text):
    assert columns(file("a.csv", f"a,b\n{text},1\n1,2\n"))["a"] == [text, "1"]


def test_long_texts_and_many_digits_are_read_in_no_time(file):
    digits = "1" * 10**6
    start = time.perf_counter()
    assert columns(file("a.csv", f"a,b\n{digits}x,1\n{digits},2\n"))["b"] == [1, 2]
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("number", ["1e400", "-1e400", "7" * 400, "7" * 5000])
def test_a_number_that_no_float_holds_is_text_and_not_infinity(file, number):
    text = f"a,b\n{number},1\n2.5,2\n"
    assert columns(file("a.csv", text)) == {"a": [number, "2.5"], "b": [1, 2]}
    assert columns(file("a.csv", f"a,b\n{number},1\n,2\n"))["a"] == [number, None]
    assert read_rows(file("a.csv", text), numbers={"a"})[0]["a"] == number
    with_comma = number.replace("1e", "1,5e")
    assert columns(file("a.csv", f"a;b\n{with_comma};1\n2,5;2\n"))["a"] == [with_comma, "2,5"]


def test_zeros_before_a_number_do_not_make_it_long(file):
    assert columns(file("a.csv", f"a,b\n{'0' * 5000}1,1\n2,2\n"))["a"] == [1, 2]


def test_missing_booleans_stay_texts(file):
    assert columns(file("a.csv", "b,c\ntrue,1\n,2\n"))["b"] == ["true", None]


@pytest.mark.parametrize(
    ("text", "decimal", "expected"),
    [
        ("a;b\n1,5;x\n2,25;y\n", None, [1.5, 2.25]),
        ("a;b\n1,500;x\n2,250;y\n", None, ["1,500", "2,250"]),  # thousands or decimals: nobody can tell
        ("a;b\n1,500;x\n2,250;y\n", ",", [1.5, 2.25]),
        ("a;b\n1,5;1.5\n2,25;2.5\n", None, ["1,5", "2,25"]),  # the file has decimal points
        ("a;b\n1,5;x\n2,25;y\n", ".", ["1,5", "2,25"]),
        ("a;b\n1,5 kg;x\n2;y\n", None, ["1,5 kg", "2"]),
    ],
)
def test_decimal_commas_where_nothing_else_makes_sense(file, text, decimal, expected):
    assert columns(file("a.csv", text), decimal=decimal)["a"] == expected


def test_advice_on_commas_can_be_followed_everywhere(file, caplog):
    """The command line has no ``decimal``."""
    read_table(file("a.csv", "a;b\n1,500;x\n"))
    assert "Write 1.234 or 1234 for 1,234; in Python, read_table(..., decimal=',') tells, too." in caplog.text


def test_one_column_and_blank_lines(file):
    assert columns(file("a.csv", "x\n\n1\n2\n\n")) == {"x": [1, 2]}


def test_packed_and_tab_separated(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert columns(tmp_path / "a.csv.gz") == {"a": [1], "b": [2]}
    (tmp_path / "a.tsv").write_text("a\tb,c\n1\tx\n")
    assert columns(tmp_path / "a.tsv") == {"a": [1], "b,c": ["x"]}


def test_columns_are_picked_in_order(file):
    path = file("a.csv", "a,b,c\n1,2,3\n")
    assert list(columns(path, columns=["c", "a"])) == ["c", "a"]
    with pytest.raises(errors.TableFileError, match=r"has no column 'z'; it has 'a', 'b', 'c'"):
        read_table(path, columns=["z"])
    with pytest.raises(errors.ParameterError, match="names 'a' twice"):
        read_table(path, columns=["a", "a"])


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"a,b\n", "a header and no rows"),
        (b"5.1,3.5\n4.9,3.0\n", "has no header"),
        (b"1,1\n2,2\n", "has no header"),
        (b"a,b,a\n1,2,3\n", "two columns called 'a'"),
        (b",a\n0,1\n", "no name for column 1"),
        (b"a,b\n1,2\n3\n", r"line 3: 1 fields; the header has 2 \(separator ','\)"),
        (b"a,b\n1,2,3\n", "line 2: 3 fields"),
        (b'a,b\n1,"2\n', "cannot be read as CSV"),
        (b"a,b\n1,\xe9t\xe9\n", r"not UTF-8 \(line 2, byte 6\).*iconv -f latin1"),
        ("a,b\n1,2\n".encode("utf-16"), "iconv -f utf-16 -t utf-8"),
        (b"a,b\n1,\x00\n", "null characters"),
        (b"PAR1\x00\x01", "null characters|not UTF-8"),
    ],
)
def test_what_is_no_csv(file, content, match):
    with pytest.raises(errors.TableFileError, match=match):
        read_table(file("a.csv", content))


def test_numbers_as_names_are_names(file):
    assert list(columns(file("a.csv", "0,1,2\n5,6,7\n"))) == ["0", "1", "2"]


def test_a_separator_of_two_characters(file):
    with pytest.raises(errors.TableFileError, match="cannot be read as CSV"):
        read_table(file("a.csv", "a,b\n1,2\n"), separator=";;")


# --- rows beside a table -----------------------------------------------------------------------------


def test_rows_are_read_cell_by_cell(file):
    text = "n,code,flag\n1,007,true\n,22,\n1.50,,False\nx, a,TRUE\n" + "9" * 16 + ",1,0\n"
    rows = read_rows(file("a.csv", text), numbers={"n", "flag", "absent"})
    assert rows == [
        {"n": 1, "code": "007", "flag": True},
        {"n": None, "code": "22", "flag": None},
        {"n": 1.5, "code": None, "flag": False},
        {"n": "x", "code": " a", "flag": True},
        {"n": 10**16 - 1, "code": "1", "flag": 0},
    ]
    header, *lines = text.splitlines(keepends=True)
    assert rows == [read_rows(file("one.csv", header + line), numbers={"n", "flag"})[0] for line in lines]


def test_decimal_commas_of_texts_say_nothing_of_numbers(file):
    path = file("a.csv", "code;x\n1,5;1,500\n2,5;2,250\n")
    assert read_rows(path, numbers={"x"}) == [{"code": "1,5", "x": "1,500"}, {"code": "2,5", "x": "2,250"}]
    path = file("b.csv", "code;x\n1,5;1,5\n2,5;2\n")
    assert read_rows(path, numbers={"x"}) == [{"code": "1,5", "x": 1.5}, {"code": "2,5", "x": 2}]


def test_decimal_commas_are_the_whole_files(file):
    """As `read_rows` says: the one thing that a cell does not tell alone."""
    assert read_rows(file("one.csv", "x;y\n1,234;0\n"), numbers={"x"})[0]["x"] == "1,234"
    assert read_rows(file("two.csv", "x;y\n1,234;0\n2,5;0\n"), numbers={"x"})[0]["x"] == 1.234
    assert "``1,234`` is 1.234 if another number" in read_rows.__doc__


def test_files_that_tell_types_are_read_as_they_are(file):
    found = read_rows(file("a.jsonl", '{"code": "007", "n": 1}\n'), numbers=())
    assert columns_of(found) == {"code": ["007"], "n": [1]}
    with pytest.raises(errors.TableFileError, match="no kind known"):
        read_rows(file("a.xlsx", "a"), numbers=())


# --- JSON lines, Parquet, Arrow ----------------------------------------------------------------------


def test_json_lines(file):
    text = '{"a": 1, "b": "x"}\n\n{"b": null, "c": true, "a": 2.5}\n{"a": NaN, "c": false}\n'
    assert columns(file("a.jsonl", text)) == {
        "a": [1.0, 2.5, None],
        "b": ["x", None, None],
        "c": [None, True, False],
    }
    assert columns(file("a.ndjson", '{"i": 1}\n{"i": 2}\n')) == {"i": [1, 2]}
    assert columns(file("a.jsonl", '{"i": Infinity, "t": "\\ud83d\\ude00"}\n')) == {
        "i": [math.inf],
        "t": ["\U0001f600"],
    }
    assert columns(file("a.jsonl.gz", gzip.compress(b'{"i": 1}\n'))) == {"i": [1]}


def test_many_json_lines_are_read_in_no_time(file):
    path = file("a.jsonl", '{"a": 1, "b": 2, "c": 3}\n' * 50_000)
    start = time.perf_counter()
    assert len(read_table(path)) == 50_000
    assert time.perf_counter() - start < 3


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"a": 1}\n[1]\n', "line 2: a list; needed an object"),
        ('{"a": 1}\n{"a": {"b": 1}}\n', "line 2: 'a' is no plain value"),
        ('{"a": 1}\n{"a": "x"}\n', "column 'a' holds int and str"),
        ('{"a": 1, "a": 2}\n', "stands twice"),
        ('{"a": \n', "line 1: no JSON"),
        ("{}\n", "has no columns"),
        ('{"a":' + "[" * 100_000, "line 1: no JSON"),
        (
            '{"a": 1}\n{"a": 1' + "0" * 400 + "}\n",
            r"line 2: 10{19}\.\.\. \(401 characters\) is too large a number",
        ),
        ('{"a": 1' + "0" * 5000 + "}\n", "line 1: 1.* is too large a number"),
        ('{"a": 0.5}\n{"a": -1e400}\n', "line 2: -1e400 is too large a number"),
        ('{"b": "x"}\n{"a": "x\\ud800"}\n', r"line 2: '\\ud800' is half a character"),
        ('{"\\udc00": 1}\n', r"line 1: '\\udc00' is half a character"),
    ],
)
def test_what_is_no_json_lines(file, text, match):
    with pytest.raises(errors.TableFileError, match=match):
        read_table(file("a.jsonl", text))


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
    found = read_table(tmp_path / "a.parquet", backend="pandas")
    pd.testing.assert_frame_equal(found, frame)
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
        ("polars", pa.array([1, 2], pa.decimal256(60)), r"column 'bad' \(decimal256"),  # a panic: no Exception
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
        assert str(caught.value).endswith("Write the file anew with numbers, texts, booleans and dates only.")
        assert columns_of(read_table(tmp_path / "a.arrow", backend=backend, columns=["good"])) == {"good": [1, 2]}


@pytest.mark.parametrize(
    ("notes", "match"),
    [
        (b"{", "holds notes by pandas that cannot be read: .* Write the file anew"),
        (b"\xff", "holds notes by pandas that cannot be read"),
        (b'{"columns": 1}', "holds notes by pandas that cannot be read"),
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

        monkeypatch.setattr("anchorline.io.columnar._in_backend", fail)
        with pytest.raises(error):
            read_table(tmp_path / "a.parquet")


def test_parquet_by_polars_alone(tmp_path, monkeypatch):
    pl.DataFrame({"a": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert columns_of(read_table(tmp_path / "a.parquet", backend="polars")) == {"a": [1, 2]}
    with pytest.raises(errors.MissingDependencyError, match="pyarrow"):
        read_table(tmp_path / "a.parquet", backend="pandas")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 or something else")
    with pytest.raises(errors.TableFileError, match="is no parquet file"):
        read_table(tmp_path / "a.parquet", backend="polars")


def test_columnar_files_that_are_none(tmp_path):
    for name in ("a.parquet", "a.arrow", "a.feather"):
        (tmp_path / name).write_bytes(b"PAR1 or something else")
        with pytest.raises(errors.TableFileError, match=r"is no (parquet|arrow) file"):
            read_table(tmp_path / name)
    twice = pa.table([[1], [2]], names=["a", "a"])
    pyarrow.feather.write_feather(twice, str(tmp_path / "a.feather"))
    with pytest.raises(errors.TableFileError, match="two columns called 'a'"):
        read_table(tmp_path / "a.feather")
    pyarrow.parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    with pytest.raises(errors.TableFileError, match="has no rows"):
        read_table(tmp_path / "a.parquet")


def test_files_that_cannot_be_read(tmp_path, file):
    with pytest.raises(errors.TableFileError, match="No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(errors.TableFileError, match="cannot be read"):
        read_table("a\0.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(errors.TableFileError, match="directory"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(errors.TableFileError, match=r"no kind known by its name; needed .csv"):
        read_table(file("a.xlsx", "a"))
    with pytest.raises(errors.TableFileError, match=r"no kind known"):
        read_table(file("a.parquet.gz", "a"))
    with pytest.raises(errors.TableFileError, match=r"is damaged"):
        read_table(file("a.csv.gz", "a,b\n"))
    with pytest.raises(errors.TableFileError, match=r"is damaged"):
        read_table(file("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 100)[:-12]))
    with pytest.raises(errors.ParameterError, match="backend is 'duckdb'"):
        read_table(tmp_path / "a.csv", backend="duckdb")
    with pytest.raises(errors.ParameterError, match="decimal is ';'"):
        read_table(tmp_path / "a.csv", decimal=";")


def test_too_much_is_not_read(file, monkeypatch):
    monkeypatch.setattr("anchorline.io.tables.MAX_BYTES", 1000)
    with pytest.raises(errors.TableFileError, match="more than 1,000 bytes"):
        read_table(file("a.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 10**5)))


def test_a_missing_backend_is_named(file, monkeypatch):
    path = file("a.csv", "a,b\n1,2\n")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(errors.MissingDependencyError, match=r"pip install 'anchorline\[cli\]'"):
        read_table(path, backend="polars")


# --- explanations ------------------------------------------------------------------------------------


def test_an_explanation_is_read(tmp_path):
    e = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2)
    (tmp_path / "e.json").write_text("\ufeff" + e.to_json(), encoding="utf-8")
    assert al.Explanation.from_json(read_explanation(tmp_path / "e.json")).to_json() == e.to_json()


def test_explanations_that_are_none(tmp_path, monkeypatch):
    with pytest.raises(errors.FormatError, match="No such file"):
        read_explanation(tmp_path / "none.json")
    (tmp_path / "e.json").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.FormatError, match="no text in UTF-8"):
        read_explanation(tmp_path / "e.json")
    monkeypatch.setattr(files, "MAX_EXPLANATION_BYTES", 10)
    (tmp_path / "e.json").write_bytes(b"x" * 11)
    with pytest.raises(errors.FormatError, match="more than 10 bytes"):
        read_explanation(tmp_path / "e.json")


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"schema_version":1,"a":['])
def test_from_json_has_caps_on_size_and_depth(opening, monkeypatch):
    with pytest.raises(errors.FormatError):
        al.Explanation.from_json(opening * 200_000)
    closing = {"[": "]", '{"a":': "}"}.get(opening)
    if closing:
        with pytest.raises(errors.FormatError):
            al.Explanation.from_json(opening * 5000 + "1" + closing * 5000)
    monkeypatch.setattr("anchorline.result.json_format.MAX_CHARACTERS", 100)
    with pytest.raises(errors.FormatError, match="at most 100"):
        al.Explanation.from_json(" " * 101)


# --- writing -----------------------------------------------------------------------------------------


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "report.html"
    write_atomically(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    path.chmod(0o640)
    write_atomically(str(path), b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["report.html"]


def test_new_files_have_the_usual_rights(tmp_path):
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "a", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("old")
    (tmp_path / "a").symlink_to(tmp_path / "real" / "a")
    write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "new"


def test_devices_are_written_to_not_replaced():
    write_atomically("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(errors.OutputFileError, match="'/dev/full' cannot be written: the disk is full"):
        write_atomically("/dev/full", "x" * 10)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize(
    ("code", "match"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "no right"),
        (errno.EIO, "error"),
    ],
)
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, code, match):
    path = tmp_path / "a"
    path.write_text("old")

    def fail(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(errors.OutputFileError, match=match):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", "new")
    assert not os.listdir(tmp_path)


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for path, match in [
        (tmp_path / "none" / "a", "the folder does not exist"),
        (tmp_path / "file" / "a", "not a folder"),
        (tmp_path, "it is a folder"),
        (Path("/proc/a"), "cannot be written"),
        (tmp_path / ("x" * 300), "the name is too long"),
        ("a\0b", "cannot be written"),
    ]:
        with pytest.raises(errors.OutputFileError, match=match):
            write_atomically(path, "new")
    assert os.listdir(tmp_path) == ["file"]


def test_the_long_json_of_an_explanation_survives(tmp_path):
    text = json.dumps({"a": "x" * 10**6})
    write_atomically(tmp_path / "a.json", text)
    assert read_explanation(tmp_path / "a.json") == text
