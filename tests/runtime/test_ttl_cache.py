from __future__ import annotations

import asyncio

from upgrade_manager.runtime.ttl_cache import TTLCache

TTL = 60.0


async def test_cache_loads_a_value_once_per_interval() -> None:
    cache, loads = TTLCache(ttl=TTL), 0

    async def load() -> str:
        nonlocal loads
        loads += 1
        return f"value {loads}"

    for _ in range(5):
        assert await cache.get("a", load) == "value 1"
        await asyncio.sleep(TTL / 10)
    assert await cache.get("b", load) == "value 2"
    await asyncio.sleep(TTL)
    assert await cache.get("a", load) == "value 3"
    assert loads == 3


async def test_cache_drops_expired_values() -> None:
    cache = TTLCache(ttl=TTL)

    async def load() -> str:
        return ""

    for number in range(10):
        await cache.get(str(number), load)
        await asyncio.sleep(TTL)
    assert len(cache._entries) == 1
