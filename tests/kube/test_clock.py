"""The clock by which durations are measured."""

from __future__ import annotations

import asyncio

from upgrade_manager.kube.clock import loop_time


async def test_it_is_the_loops() -> None:
    began = loop_time()
    await asyncio.sleep(3600)
    assert loop_time() - began == 3600
