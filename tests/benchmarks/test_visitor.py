"""The visitor of the load test behaves as a browser: it renders a page, ticks, and keeps large messages."""

import asyncio

import pytest

from benchmarks.server import ROOT, opened, serve, submitted
from benchmarks.server import measuring as measuring_process
from tests.waiting import DEADLINE_S, LOOK_S

pytestmark = pytest.mark.slow


def test_visitor_watches_a_run_that_grows():
    async def watched(served):
        claim = submitted(served.store)
        visitors = served.visitors(2, "benchmark", query=f"run={claim.run_id}")
        async with measuring_process(served.store, claim), opened(visitors) as seconds:
            async with asyncio.timeout(DEADLINE_S):
                while any(len(visitor.ticks_s) < 2 for visitor in visitors):
                    await asyncio.sleep(LOOK_S)
        assert all(found > 0 for found in seconds)
        return visitors

    with serve(ROOT, "app.py") as served:
        visitors = asyncio.run(watched(served))
    for visitor in visitors:
        assert visitor.received_bytes > 10_000
        assert not visitor.errors
