"""With the usual 1,024 descriptors a server answers a crowd of cold browsers, and is not stopped by connections."""

import asyncio
import os
import time
from urllib.request import urlopen

import pytest

from benchmarks.strangers import ColdBrowser, drawn, half_open
from scripts.app_server import streamlit_served

FILES = 1024
CROWD, CONNECTIONS = 100, 1000
HEALTH_S = 5.0  # the browsers take the same two cores


@pytest.fixture
def address(home):
    environment = os.environ | {"GPUEXPLORE_SUPERVISOR": "external"}
    with streamlit_served(home, "app.py", environment, FILES) as (_, found):
        yield found


def answered_s(address):
    """Return the seconds of an answer about the server's health."""
    began_s = time.monotonic()
    with urlopen(f"{address}/_stcore/health", timeout=60) as answer:
        assert answer.status == 200
    return time.monotonic() - began_s


def test_a_hundred_cold_browsers_are_all_drawn(address, home):
    async def crowd():
        browsers = [ColdBrowser(address) for _ in range(CROWD)]
        found = await drawn(browsers)
        for browser in browsers:
            await browser.close()
        return found, [error for browser in browsers for error in browser.errors]

    (seconds, failed), errors = asyncio.run(crowd())

    assert not failed
    assert len(seconds) == CROWD
    assert not errors
    assert "Traceback" not in (home / "server.log").read_text()


def test_a_thousand_connections_that_ask_nothing_stop_no_answer(address, home):
    async def held():
        connections = await half_open(address, CONNECTIONS)
        slowest_s = max([await asyncio.to_thread(answered_s, address) for _ in range(20)])
        for each in connections:
            each.close()
        return len(connections), slowest_s

    for _ in range(3):
        count, slowest_s = asyncio.run(held())
        assert count == CONNECTIONS
        assert slowest_s < HEALTH_S
    assert (home / "server.log").stat().st_size < 10_000
