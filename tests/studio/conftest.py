"""The client that the tests of a running studio share; every module defines its own ``server``."""

import pytest

from helpers.studio import client_of


@pytest.fixture(scope="module")
def client(server):
    with client_of(server, timeout=30) as opened:
        yield opened
