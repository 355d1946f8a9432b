"""A manager in a Pod: when it ends, it is started again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.manager import NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.upgrade import Stage
    from upgrade_manager.cli.options import RunOptions

#: Seconds before the first restart, doubled by each further one up to the last: quicker than a kubelet, that is worse.
_FIRST, _LAST = 1.0, 10.0


class Pod:
    """One life after the other."""

    def __init__(self, stage: Stage, options: RunOptions) -> None:
        self._stage = stage
        self._options = options
        #: How each life but the last has ended.
        self.ends: list[Exception] = []

    async def run(self) -> None:
        """Until cancelled. Raises what no manager may end with."""
        pause = _FIRST
        while True:
            life = replace(self._stage.life(seed=f"life {len(self.ends)}"), options=self._options)
            try:
                await life.manager.run()
            except (LeaseLost, NotReady) as error:
                self.ends.append(error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST)


@asynccontextmanager
async def kept_running(stage: Stage, options: RunOptions) -> AsyncIterator[Pod]:
    """A manager with these options, for as long as the context is open."""
    pod = Pod(stage, options)
    task = asyncio.create_task(pod.run(), name="pod")
    try:
        yield pod
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
