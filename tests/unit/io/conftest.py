"""Fixtures of the tests of files."""

import pytest


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file of a given name and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
