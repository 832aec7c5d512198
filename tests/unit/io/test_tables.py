"""Files of any kind: unknown names, damaged or oversized content, and missing backends."""

import gzip
import sys

import pytest

from anchorline import errors
from anchorline.io import read_rows, read_table
from helpers.tables import columns_of


def test_files_that_tell_types_are_read_as_they_are(file):
    rows = read_rows(file("a.jsonl", '{"code": "007", "n": 1}\n'), numbers=())
    assert columns_of(rows) == {"code": ["007"], "n": [1]}
    with pytest.raises(errors.TableFileError, match="an unknown suffix"):
        read_rows(file("a.xlsx", "a"), numbers=())


def test_files_that_cannot_be_read(tmp_path, file):
    with pytest.raises(errors.TableFileError, match="No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(errors.TableFileError, match="cannot be read"):
        read_table("a\0.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(errors.TableFileError, match="directory"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(errors.TableFileError, match=r"an unknown suffix. The name must end in .csv"):
        read_table(file("a.xlsx", "a"))
    with pytest.raises(errors.TableFileError, match="an unknown suffix"):
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
