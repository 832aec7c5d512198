"""Tables that strangers send, read in a separate process: the same content, or one line about what is wrong."""

import contextlib
import io
import json
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anchorline.errors import TableFileError
from anchorline.io import isolated, read_rows
from anchorline.io.isolated import read_isolated

FRAME = pd.DataFrame(
    {
        "age": [31.0, None],
        "town": ["Lens", None],
        "when": pd.to_datetime(["2024-05-01", "2024-06-01"]),
        "level": pd.Categorical(["a", "b"]),
        "owner": [True, False],
    }
)


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pandas(table), sink, **options)
    return sink.getvalue()


def read(raw, name, columns=("age", "town", "when", "level", "owner"), most=100, **options):
    return read_isolated(raw, name, {"age"}, columns, most, **options)


def test_the_content_is_that_of_the_file(tmp_path):
    text = "town;age;more\n007;1,5;x\n;;y\n=1+1;2;z\n"
    file = tmp_path / "cases.csv"
    file.write_text(text)
    expected = [
        {key: row[key] for key in ("age", "town")} for row in read_rows(file, numbers={"age"})
    ]  # columns that were not asked for are left out
    assert read(text.encode(), "cases.csv") == expected
    pd.testing.assert_frame_equal(read(parquet(FRAME), "cases.parquet"), FRAME)
    indexed = FRAME.set_axis([5, 7])
    pd.testing.assert_frame_equal(read(parquet(indexed), "cases.pq"), FRAME)


GOOD = parquet(pd.DataFrame({"age": np.arange(50.0), "town": ["x"] * 50}))


def repeated(n_characters, n_rows):
    """Return a file that holds one text once, and reads as a column that has it in every row."""
    once = pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int32), ["x" * n_characters])
    return parquet(pa.table({"town": once}), store_schema=False)


LONG, TEXTS, BOMB = repeated(1_000_000, 10), repeated(90_000, 900), repeated(1_000_000, 5000)


@pytest.mark.parametrize(
    ("raw", "name", "message"),
    [
        (b"", "a.csv", "'a.csv' is empty"),
        (b"age,town\n", "a.csv", "has a header but no rows"),
        (b"age,age\n1,2\n", "a.csv", "has two columns called 'age'"),
        (b"age,town\n1\n", "a.csv", "line 2 has 1 fields, but the header has 2"),
        (b"age\n" * 102, "a.csv", "has 101 rows; the maximum is 100"),
        (b"age,town\n1," + b"x" * 100_001, "a.csv", "text of 100,001 characters in 'town'"),
        (bytes(range(256)) * 99, "a.csv", "is not UTF-8"),
        (b"\x1f\x8b" + bytes(99), "a.csv.gz", "neither CSV nor Parquet"),
        (b"MZ", "a.exe", "neither CSV nor Parquet"),
        (b"age\n1\n", "a.parquet", "is not a valid Parquet file"),
        (GOOD[:-9], "a.parquet", "is not a valid Parquet file"),
        (GOOD[:40] + bytes(99) + GOOD[139:], "a.parquet", "is not a valid Parquet file"),
        (parquet(pd.DataFrame({"age": np.zeros(101)})), "a.parquet", "has 101 rows; the maximum is 100"),
        (parquet(pa.table({"age": pa.array([], pa.float64())})), "a.parquet", "has no rows"),
        (parquet(pa.table([pa.array([1.0])] * 2, names=["age", "age"])), "a.parquet", "two columns called 'age'"),
    ],
)
def test_anything_else_is_one_named_line(raw, name, message):
    with pytest.raises(TableFileError, match=message) as refused:
        read(raw, name)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def asked(raw, kind, most_rows=100):
    """Ask as the process is asked, but in this one."""
    about = {"kind": kind, "name": "a", "numbers": ["age"], "columns": ["town", "age"], "most_rows": most_rows}
    first, _, content = isolated.answer_question(json.dumps(about).encode() + b"\n" + raw).partition(b"\n")
    return json.loads(first), content


def test_the_process_answers_a_question_or_says_what_is_wrong():
    said, content = asked(b"age,town,more\n007,007,x\n", "csv")
    assert (said, json.loads(content)) == ({}, [{"town": "007", "age": 7}])
    said, content = asked(parquet(FRAME), "parquet")
    table = pa.ipc.open_stream(content).read_all()
    assert (said, table.column_names, table["age"].to_pylist()) == ({}, ["town", "age"], [31.0, None])
    wrong = {
        "has 2 rows; the maximum is 1": (b"age\n1\n2\n", "csv", 1),
        "has 50 rows; the maximum is 9": (GOOD, "parquet", 9),
        "not a valid Parquet file": (GOOD[:-9], "parquet"),
        "100,001 characters in 'town'": (b"town,age\n" + b"x" * 100_001 + b",1", "csv"),
        "1,000,000 characters in 'town'": (LONG, "parquet"),
        "more than 64 MB of content": (TEXTS, "parquet", 900),
    }
    for message, question in wrong.items():
        said, content = asked(*question)
        assert message in said["error"]
        assert content == b""


def test_a_small_file_with_much_content_is_refused():
    assert max(len(BOMB), len(TEXTS)) < 200_000
    with pytest.raises(TableFileError, match="more than 64 MB of content"):
        read(TEXTS, "a.parquet", most=5000)
    with pytest.raises(TableFileError, match="cannot be read with 2 GB of memory in 20 seconds, or is damaged"):
        read(BOMB, "a.parquet", most=5000)
    with pytest.raises(TableFileError, match="text of 1,000,000 characters in 'town'"):
        read(LONG, "a.parquet")


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_ends_no_process_but_that_which_reads_it(seed):
    rng = np.random.default_rng(seed)
    raw = bytearray(GOOD)
    for place in rng.integers(4, len(raw) - 8, 20):
        raw[place] = rng.integers(256)
    with contextlib.suppress(TableFileError):
        assert len(read(bytes(raw), "a.parquet")) <= 100


def test_the_process_knows_no_token_and_ends_with_its_request(monkeypatch):
    monkeypatch.setenv("ANCHORLINE_STUDIO_TOKEN", "x" * 20)
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, command, **options):
            started.append((self, options["env"]))
            super().__init__([sys.executable, "-c", "import time; time.sleep(60)"], **options)

    monkeypatch.setattr(isolated.subprocess, "Popen", Popen)

    def leave():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(GOOD, "a.parquet", check=leave)
    process, environment = started[0]
    assert process.returncode == -signal.SIGKILL
    assert "ANCHORLINE_STUDIO_TOKEN" not in environment


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    read(GOOD, "a.parquet")
    assert not list(pathlib.Path(tmp_path).iterdir())
