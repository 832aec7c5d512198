"""The journal returns its complete lines, wherever it was cut, and refuses to continue another batch."""

import os
import time

import pytest

from anchorline.batch.journal import Journal, read_records
from anchorline.errors import JournalError


def record_of(row, text="x"):
    return {"row": row, "error_type": None, "explanation": text}


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "why.parquet.journal"
    opened = Journal.begin(path, {"model": "m", "settings": {"k": 3}})
    for row in range(3):
        opened.append(record_of(row, "é" * row))
    opened.close()
    return path


def test_a_journal_torn_anywhere_gives_back_its_whole_lines(journal):
    content = journal.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == 10]
    for cut in range(len(content) + 1):
        journal.write_bytes(content[:cut])
        opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
        whole = max(0, sum(end <= cut for end in ends) - 1)
        assert opened.n_rows == whole
        opened.append(record_of(whole, "again"))
        opened.close()
        assert [entry["row"] for entry in read_records(journal)] == list(range(whole + 1))


def test_a_changed_line_and_all_after_it_are_dropped(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"row", b"raw")
    journal.write_bytes(b"".join(lines))
    opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    assert opened.n_rows == 1
    assert opened.dropped == len(lines[2]) + len(lines[3])
    opened.close()


def test_rows_come_in_order(journal):
    opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    with pytest.raises(JournalError, match="Got row 4 instead of row 3"):
        opened.append(record_of(4))
    opened.close()


def test_other_batches_are_refused(journal):
    with pytest.raises(JournalError, match="settings k was 3, is 4"):
        Journal.resume(journal, {"model": "m", "settings": {"k": 4}})
    with pytest.raises(JournalError, match="model was 'm', is 'n'"):
        Journal.resume(journal, {"model": "n", "settings": {"k": 3}})


def test_a_journal_in_use_is_refused(journal):
    held = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    with pytest.raises(JournalError, match="Another process"):
        Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    held.close()


def test_files_that_are_no_journal_are_not_touched(tmp_path):
    path = tmp_path / "letter"
    for content in (
        b"Dear all,\nthis is not a journal.\n",
        b"0123456789" * 10,
        b'00000000 {"format":"something"}\n',
    ):
        path.write_bytes(content)
        with pytest.raises(JournalError, match="is not a batch journal"):
            Journal.resume(path, {})
        assert path.read_bytes() == content


def test_what_was_written_reaches_the_disk_in_time(journal, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    opened.append(record_of(3))
    opened.tick()
    assert synced == []
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + 1.1)
    opened.tick()
    assert len(synced) == 1
    opened.tick()
    assert len(synced) == 1  # nothing new to sync
    opened.close()
