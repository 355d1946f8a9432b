"""Which of the manager's writes changed nothing: a look at the object before and after each, at no time in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from hack.faults.call import Call
    from hack.simulation import Simulation
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Response

_CHANGES = frozenset({"patch", "update"})
_DONE = 200
#: What every write that is one changes along, and one that is none may.
_BOOKKEEPING = frozenset({"resourceVersion", "managedFields"})


class NoopWrites:
    """A hook of the middleware's that weighs every patch and update that was done."""

    def __init__(self, simulation: Simulation) -> None:
        self._client: Client = simulation.client("thrift")
        self._before: dict[int, Object | None] = {}
        #: How many were weighed: a test that weighs none proves nothing.
        self.weighed = 0
        #: Those that left their object as it was.
        self.wasted: list[str] = []

    async def before(self, number: int, call: Call) -> None:
        """Look at what is about to be changed."""
        if call.verb in _CHANGES:
            self._before[number] = await self._look(call)

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Look at what has become of it."""
        old = self._before.pop(number, None)
        if old is None or response.status != _DONE:
            return
        new = await self._look(call)
        self.weighed += 1
        if new is not None and _substance(old) == _substance(new):
            self.wasted.append(f"{call.verb} {call.path}")

    async def _look(self, call: Call) -> Object | None:
        """The object; None while nobody answers for it."""
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
