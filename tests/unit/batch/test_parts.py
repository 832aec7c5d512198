"""The parts of a batch: whole ones are taken over, damaged ones are made again, and other batches are refused."""

import time

import pytest

from anchorline.batch.parquet import ROWS_PER_GROUP, read_parquet
from anchorline.batch.run import _Parts
from anchorline.errors import JournalError, OutputFileError
from anchorline.result.explanations import COLUMNS

IDENTITY = {"model": "m", "settings": {"k": 3}}
N_ROWS = 2 * ROWS_PER_GROUP + 3  # two full parts, and one that has three rows


def record_of(row, text="x"):
    return {**dict.fromkeys(COLUMNS), "row": row, "explanation": text}


def opened(folder, identity=IDENTITY, anew=False):
    return _Parts(folder, identity, COLUMNS, anew)


def rows_in(folder):
    return [record["row"] for record in read_parquet(folder)]


@pytest.fixture
def folder(tmp_path):
    """The parts of a batch that stopped."""
    path = tmp_path / "why.parquet.parts"
    with opened(path) as parts:
        for row in range(N_ROWS):
            parts.append(record_of(row, "é" * (row % 5)))
    assert len(list(path.iterdir())) == 3
    return path


@pytest.mark.parametrize("n_written", [0, 1, ROWS_PER_GROUP - 1, ROWS_PER_GROUP, ROWS_PER_GROUP + 1, N_ROWS])
def test_a_batch_continues_after_the_rows_that_were_written(tmp_path, n_written):
    folder = tmp_path / "why.parquet.parts"
    with opened(folder) as parts:
        for row in range(n_written):
            parts.append(record_of(row))
    assert folder.exists() == (n_written > 0)
    with opened(folder) as parts:
        assert parts.n_rows == n_written
        for row in range(n_written, N_ROWS):
            parts.append(record_of(row, "again"))
        found = list(parts.records())
        assert [record["row"] for record in found] == list(range(N_ROWS))
        assert [record["explanation"] for record in found].count("again") == N_ROWS - n_written
        parts.remove()
    assert not folder.exists()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_damaged_part_and_all_after_it_are_made_again(folder, number):
    """A byte may change that says nothing about the rows; a wrong row is never taken over."""
    right = list(read_parquet(folder))
    part = folder / f"{number:07d}.parquet"
    content = part.read_bytes()
    step = max(1, len(content) // 40)
    damaged = [content[:cut] for cut in range(0, len(content), step)]
    damaged += [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(0, len(content), step)]
    whole = {path: path.read_bytes() for path in folder.iterdir()}
    n_noticed = 0
    for changed in damaged:
        for path, kept in whole.items():
            path.write_bytes(kept)
        part.write_bytes(changed)
        with opened(folder) as parts:
            n_rows = parts.n_rows
            assert n_rows in (number * ROWS_PER_GROUP, N_ROWS)
            parts.append(record_of(n_rows, "again"))
        assert list(read_parquet(folder)) == [*right[:n_rows], record_of(n_rows, "again")]
        n_noticed += n_rows < N_ROWS
    assert n_noticed > len(damaged) / 2


def test_a_part_that_is_missing_or_was_not_written_to_its_end(folder):
    (folder / "0000001.parquet").unlink()
    (folder / ".anchorline-1.part").write_bytes(b"torn")
    with opened(folder) as parts:
        assert parts.n_rows == ROWS_PER_GROUP
    assert [path.name for path in folder.iterdir()] == ["0000000.parquet"]


def test_other_batches_are_refused(folder):
    for identity, message in (
        ({"model": "m", "settings": {"k": 4}}, "settings k was 3, is 4"),
        ({"model": "n", "settings": {"k": 3}}, "model was 'm', is 'n'"),
    ):
        with pytest.raises(JournalError, match=message):
            opened(folder, identity)
    assert len(rows_in(folder)) == N_ROWS
    with opened(folder, {"model": "n"}, anew=True) as parts:
        assert parts.n_rows == 0
    assert not folder.exists()


def test_parts_in_use_are_refused(folder):
    with opened(folder):
        for anew in (False, True):
            with pytest.raises(JournalError, match="Another process"):
                opened(folder, anew=anew)
    assert len(rows_in(folder)) == N_ROWS


def test_files_that_are_no_parts_are_not_touched(tmp_path):
    folder = tmp_path / "why.parquet.parts"
    folder.mkdir()
    (folder / "letter").write_text("Dear all,")
    with opened(folder, anew=True) as parts:
        parts.append(record_of(0))
        parts.remove()
    assert [path.name for path in folder.iterdir()] == ["letter"]
    with pytest.raises(OutputFileError, match="File exists"):
        opened(folder / "letter")


def test_what_was_finished_reaches_the_disk_in_time(tmp_path, monkeypatch):
    folder = tmp_path / "why.parquet.parts"
    with opened(folder) as parts:
        parts.append(record_of(0))
        assert rows_in(folder) == [0]
        parts.append(record_of(1))
        parts.tick()
        assert rows_in(folder) == [0]
        monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + 1.1)
        parts.tick()
        assert rows_in(folder) == [0, 1]
