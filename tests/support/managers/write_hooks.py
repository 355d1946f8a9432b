"""Hooks of the fault middleware that compare and record the manager's writes."""

from __future__ import annotations

import json

from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from hack.simulation import Simulation
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import Resource
from upgrade_manager.kube.transport import Response

_CHANGES = frozenset({"patch", "update"})
_DONE = 200
#: Fields that a write without effect may change.
_BOOKKEEPING = frozenset({"resourceVersion", "managedFields"})


class NoopWrites:
    """A hook of the middleware that compares objects around every patch and update."""

    def __init__(self, simulation: Simulation) -> None:
        self._client: Client = simulation.client("noop-writes")
        self._before: dict[int, Object | None] = {}
        #: Number of comparisons: a test that compares none proves nothing.
        self.compared = 0
        #: Those that left their object as it was.
        self.unchanged: list[str] = []

    async def before(self, number: int, call: Call) -> None:
        """Read the object before the write."""
        if call.verb in _CHANGES:
            self._before[number] = await self._read(call)

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Read the object after the write."""
        old = self._before.pop(number, None)
        if old is None or response.status != _DONE:
            return
        new = await self._read(call)
        self.compared += 1
        if new is not None and _substance(old) == _substance(new):
            self.unchanged.append(f"{call.verb} {call.path}")

    async def _read(self, call: Call) -> Object | None:
        """Return the object, or None while the API server is unavailable."""
        plural, _, group = call.resource.partition(".")
        version = call.path.split("/")[3 if group else 2]
        resource = Resource(group=group, version=version, plural=plural, kind="", namespaced=bool(call.namespace))
        try:
            return await self._client.get(resource, call.name, namespace=call.namespace)
        except KubeError:
            return None


def _substance(obj: Object) -> Object:
    metadata = {key: value for key, value in objects.metadata(obj).items() if key not in _BOOKKEEPING}
    return {**obj, "metadata": metadata}


class StateRecorder(NoHook):
    """A hook of the middleware that reads writes of the plan's status."""

    def __init__(self) -> None:
        self.states: dict[str, list[str]] = {}

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number
        if not call.resource.startswith("upgradeplans") or call.subresource != "status" or response.status != _DONE:
            return
        statuses = (json.loads(response.body).get("status") or {}).get("nodeUpgradeStatuses") or {}
        for node, entry in statuses.items():
            known = self.states.setdefault(node, [])
            if known[-1:] != [entry["state"]]:
                known.append(entry["state"])
