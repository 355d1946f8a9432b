"""Histories of plans for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from hack.virtual_time import virtual_now
from upgrade_manager.api.names import HISTORY_SUFFIX
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.pipeline.history import History

#: The ends of the paths of objects that report what happens.
REPORTS = ("/events", "/configmaps")


def others(found: Iterable[Object]) -> list[Object]:
    """Return the ConfigMaps without histories."""
    return [one for one in found if not objects.name(one).endswith(HISTORY_SUFFIX)]


class UnwrittenHistory(History):
    """A history that no API server stores."""

    def __init__(self) -> None:
        super().__init__(cast("Client", None), now=virtual_now)

    async def write(self, plan: Object) -> None:
        """Write nothing."""
