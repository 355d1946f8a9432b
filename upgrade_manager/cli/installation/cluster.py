"""The cluster as the checks of an installation read it; cli/check.py makes it from the session of the command."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGER
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: The Deployment and the Service of the admission webhook.
WEBHOOK = f"{MANAGER}-webhook"
#: Installs what is missing again; Helm's users run helm upgrade instead.
INSTALL = "kubectl apply -k deploy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster of one run of the checks."""

    client: Client
    #: The API server's time of day.
    now: Callable[[], datetime]
    #: Of this program.
    version: str
    #: The requests for Deployments, by name: several checks of a run judge one state.
    reads: dict[str, asyncio.Task[Object | None]] = field(default_factory=dict)

    async def deployment(self, name: str) -> Object | None:
        """Return a Deployment of the manager's namespace, which is read once; None if it does not exist."""
        if name not in self.reads:
            self.reads[name] = asyncio.create_task(self.client.find(DEPLOYMENTS, name, namespace=HARVESTER_SYSTEM))
        # The time-out of one check does not end the request of the others.
        return await asyncio.shield(self.reads[name])


def container(deployment: Object | None) -> Object:
    """Return the first container of a Deployment; empty without one."""
    found = objects.items(deployment or {}, "spec", "template", "spec", "containers")
    return found[0] if found and isinstance(found[0], dict) else {}


def arguments(deployment: Object | None) -> Sequence[str]:
    """Return the arguments of its command line."""
    return [str(one) for one in objects.items(container(deployment), "args")]


def variable(deployment: Object | None, name: str) -> str:
    """Return the value of an environment variable; empty if it is not set in the Deployment itself."""
    found = (one for one in objects.items(container(deployment), "env") if objects.text(one, "name") == name)
    return next((objects.text(one, "value") for one in found), "")
