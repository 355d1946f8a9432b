"""A real API server without the real controllers: what they do is played, at once, as on the embedded one."""

from __future__ import annotations

from random import Random

from hack.actors.kinds import SERVICE_ACCOUNTS
from hack.control_plane.backend import RealBackend
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import NAMESPACES


class SimulatedBackend(RealBackend):
    """For figures about us: kube-controller-manager waits by its own clock (a second for each batch of Job events)."""

    has_controllers = False

    async def on_crds_established(self) -> None:
        """Nobody is started; the accounts without which the server admits no Pod are made here."""
        client = Client(self.transport, user_agent="bench", random=Random(0))
        for namespace in (HARVESTER_SYSTEM, CATTLE_SYSTEM):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            metadata = {"name": "default", "namespace": namespace}
            await client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
