"""Histories of plans for tests."""

from __future__ import annotations

from typing import cast

from hack.virtual_time import virtual_now
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.pipeline.history import History


class UnwrittenHistory(History):
    """A history that no API server stores."""

    def __init__(self) -> None:
        super().__init__(cast("Client", None), now=virtual_now)

    async def write(self, plan: Object) -> None:
        """Write nothing."""
