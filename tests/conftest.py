"""What holds for every test: a module that one of them wrote is unknown to the next."""

import sys

import pytest


@pytest.fixture(autouse=True)
def forget_written_modules(tmp_path_factory):
    """Forget modules from pytest's own folder: two tests may write `scorer.py`, and one process runs both."""
    before = len(sys.modules)
    yield
    if len(sys.modules) == before:
        return
    folder = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.copy().items()):
        if str(vars(module).get("__file__")).startswith(folder):
            del sys.modules[name]
