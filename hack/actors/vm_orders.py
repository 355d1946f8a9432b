"""KubeVirt's subresource API: start and stop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hack.actors.answers import accepted, document, refused
from hack.actors.placement import is_final
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.actors.context import ActorContext
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.transport import Request, Response

HEALTH_PATH = "/apis/subresources.kubevirt.io/v1/healthz"
PATH = "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{name}/"


class VirtualMachineOrders:
    """Serves PUT …/start and …/stop; both leave a request in the status for the VM controller."""

    def __init__(self, context: ActorContext) -> None:
        self._client = context.client("virt-api")
        #: The number of start requests still to be refused, by namespace and name.
        self._refusals = {(one.namespace, one.name): one.failing_starts for one in context.scenario.vms.machines}

    async def health(self, request: Request, values: Mapping[str, str]) -> Response:
        """Report that the API serves."""
        _ = request, values
        return document({"apiserver": {"connectivity": "ok"}})

    async def start(self, request: Request, values: Mapping[str, str]) -> Response:
        """Start the VM: 202, or 409 when it cannot start or runs already."""
        machine, instance = await self._read(values)
        if machine is None:
            return _no_machine(values)
        if self._refuses(values):
            return refused(500, f"Internal error occurred: unable to start VM {values['name']}")
        phase = objects.status(instance or {}).get("phase") or ""
        if instance is not None and phase not in {"", "Unknown"} and not is_final(instance):
            return refused(409, f"VM {values['name']} is already running")
        strategy = objects.spec(machine).get("runStrategy")
        if strategy in {"Always", "Once"}:
            return refused(409, f"{strategy} does not support manual start requests")
        if strategy == "RerunOnFailure" and phase == "Failed":
            return refused(409, "RerunOnFailure does not support starting VM from failed state")
        if strategy == "Halted" and not _body(request).get("paused"):
            await self._set(machine, {"spec": {"runStrategy": "Always"}})
        else:
            await self._request(machine, {"action": "Start"})
        return accepted()

    async def stop(self, request: Request, values: Mapping[str, str]) -> Response:
        """Stop the VM: 202, or 409 when it does not run."""
        machine, instance = await self._read(values)
        if machine is None:
            return _no_machine(values)
        strategy = objects.spec(machine).get("runStrategy")
        if strategy in {"Always", "Once"}:
            await self._set(machine, {"spec": {"runStrategy": "Halted"}})
            return accepted()
        if instance is None or is_final(instance):
            return refused(409, "VM is not running")
        if strategy == "Halted" and "gracePeriod" not in _body(request):
            return refused(409, "Halted only supports manual stop requests with a shorter graceperiod")
        await self._request(machine, {"action": "Stop", "uid": objects.uid(instance)})
        return accepted()

    def _refuses(self, values: Mapping[str, str]) -> bool:
        key = values["namespace"], values["name"]
        left = self._refusals.get(key, 0)
        self._refusals[key] = max(0, left - 1)
        return left > 0

    async def _read(self, values: Mapping[str, str]) -> tuple[Object | None, Object | None]:
        return await self._get(VIRTUAL_MACHINES, values), await self._get(VIRTUAL_MACHINE_INSTANCES, values)

    async def _get(self, resource: Resource, values: Mapping[str, str]) -> Object | None:
        return await self._client.find(resource, values["name"], namespace=values["namespace"])

    async def _set(self, machine: Object, body: Object) -> None:
        name, namespace = objects.name(machine), objects.namespace(machine)
        await self._client.patch(VIRTUAL_MACHINES, name, MergePatch(body), namespace=namespace)

    async def _request(self, machine: Object, change: Object) -> None:
        name, namespace = objects.name(machine), objects.namespace(machine)
        patch = MergePatch({"status": {"stateChangeRequests": [change]}})
        await self._client.patch(VIRTUAL_MACHINES, name, patch, namespace=namespace, subresource="status")


def _body(request: Request) -> Object:
    try:
        parsed = json.loads(request.body or b"{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _no_machine(values: Mapping[str, str]) -> Response:
    return refused(404, f'virtualmachine.kubevirt.io "{values["name"]}" not found')
