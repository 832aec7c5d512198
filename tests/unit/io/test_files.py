"""Explanations are read with limits, and files are written completely or not at all."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest

import anchorline as al
from anchorline import errors
from anchorline.io import files, read_explanation, write_atomically


def test_an_explanation_is_read(tmp_path):
    e = al.Explainer(lambda z: z[:, 0] / 2, al.Hypercube()).explain([1, -1])
    (tmp_path / "e.json").write_text("\ufeff" + e.to_json(), encoding="utf-8")
    assert al.Explanation.from_json(read_explanation(tmp_path / "e.json")).to_json() == e.to_json()


def test_explanations_that_are_none(tmp_path, monkeypatch):
    with pytest.raises(errors.FormatError, match="No such file"):
        read_explanation(tmp_path / "none.json")
    (tmp_path / "e.json").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.FormatError, match="not valid UTF-8"):
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
    with pytest.raises(errors.FormatError, match="the limit is 100"):
        al.Explanation.from_json(" " * 101)


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
        (errno.EACCES, "do not have permission"),
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
