from __future__ import annotations

from random import Random

import pytest

from hack.actors.controller_loop import ControllerLoop, RequeueAfter


async def test_bug_ends_the_loop() -> None:
    async def reconcile(key: str) -> RequeueAfter:
        raise ValueError(key)

    loop: ControllerLoop[str] = ControllerLoop("test", reconcile, random=Random(1))
    loop.add("bad")
    with pytest.raises(BaseExceptionGroup):
        await loop.run()
