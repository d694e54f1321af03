"""The app as it is served, in a process of its own."""

import pytest

from scripts.app_server import served


@pytest.fixture(scope="session")
def server_home(tmp_path_factory):
    """Return the home of the server that `address` names."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def address(server_home):
    """Return the address of a server as it ships, whose supervisor is ready."""
    with served(server_home) as found:
        yield found
