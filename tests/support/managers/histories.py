"""Histories of plans for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from hack.virtual_time import virtual_now
from upgrade_manager.api.history import rows_of
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import HISTORY_SUFFIX, history_config_map
from upgrade_manager.display.history import is_complete
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.pipeline.history import History

if TYPE_CHECKING:
    from tests.support.managers.upgrade import UpgradeRun

#: The ends of the paths of objects that report what happens.
REPORTS = ("/events", "/configmaps")


def others(found: Iterable[Object]) -> list[Object]:
    """Return the ConfigMaps without histories."""
    return [one for one in found if not objects.name(one).endswith(HISTORY_SUFFIX)]


async def history_of(stage: UpgradeRun) -> dict[str, Any]:
    """Return the data of the plan's history."""
    found = await stage.client.get(CONFIG_MAPS, history_config_map(stage.name), namespace=HARVESTER_SYSTEM)
    return dict(objects.mapping(found, "data"))


async def history_events(stage: UpgradeRun) -> list[Object]:
    """Return the rows of a plan that has ended as events, without errors: a crash loses or repeats one."""
    data = await history_of(stage)
    assert is_complete(await stage.plan(), data)
    rows = [row for row in rows_of(data) if row.reason != "ReconcileError"]
    return [{"reason": row.reason, "message": row.message, "count": row.count} for row in rows]


class UnwrittenHistory(History):
    """A history that no API server stores."""

    def __init__(self) -> None:
        super().__init__(cast("Client", None), now=virtual_now)

    async def write(self, plan: Object) -> None:
        """Write nothing."""
