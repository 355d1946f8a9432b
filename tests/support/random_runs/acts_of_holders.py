"""Other work on the cluster that holds an upgrade up for a while, during a random upgrade."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tests.support.cluster.holdings import HOLDINGS, RANCHER, Holding
from tests.support.random_runs.undoing import undone
from upgrade_manager.kube.errors import AlreadyExists

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.interference import Interference


async def _hold(holding: Holding, stage: UpgradeRun, act: Interference) -> None:
    async with undone(partial(holding.finish, stage.simulation)):
        with suppress(AlreadyExists):
            await holding.begin(stage.simulation)
        await asyncio.sleep(act.lasts)


HOLDERS: dict[str, Callable[[UpgradeRun, Interference], Awaitable[None]]] = {
    # Removed at its end, so that it may begin again.
    "a built-in upgrade runs": partial(_hold, replace(HOLDINGS["a built-in upgrade"], end=None)),
    "a Machine joins": partial(_hold, HOLDINGS["a node that joins"]),
    "Rancher provisions": partial(_hold, RANCHER),
}
