"""A reconcile that takes too long is retried; a time-out of the reconcile's own keeps its meaning."""

from __future__ import annotations

import asyncio

import pytest

from upgrade_manager.runtime.result import ReconcileTimeout
from upgrade_manager.runtime.time_limit import time_limit


async def test_block_that_takes_too_long_times_out() -> None:
    with pytest.raises(ReconcileTimeout, match=r"reconcile timed out after 35 s \(API server is slow\); retrying"):
        async with time_limit(35):
            await asyncio.sleep(36)


async def test_block_that_ends_in_time_passes() -> None:
    async with time_limit(35):
        await asyncio.sleep(34)


async def test_time_out_of_the_block_passes_as_it_is() -> None:
    with pytest.raises(TimeoutError, match="of a request"):
        async with time_limit(35):
            raise TimeoutError("of a request")
