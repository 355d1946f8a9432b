"""The toolkit's handling of VMs that cannot migrate: shut down, record, and start again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.container_work import env_of
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, KubeError, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, EVENTS, KUBEVIRTS, UPGRADE_PLANS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_PLAN = "HARVESTER_UPGRADEPLAN_NAME"
DETECTOR, RESTORE = "vm-live-migrate-detector", "restore-vm"


class VMLedger:
    """The ConfigMap of a plan with the VMs that were shut down, by node, and the calls that use it."""

    def __init__(self, context: ActorContext, client: Client) -> None:
        self._context = context
        self._client = client
        #: Pods whose detector has run; a script runs it once.
        self._detected: set[str] = set()

    def forget(self, pod: Object) -> None:
        """Forget a deleted Pod."""
        self._detected.discard(objects.uid(pod))

    async def shut_down(self, instances: list[Object], pod: Object, node: str) -> None:
        """Stop the VMs, after recording them if the plan restores VMs."""
        plan = await self._plan(env_of(pod)[_PLAN])
        restores = plan is not None and bool(objects.spec(plan).get("restoreVM"))
        if plan is None or not restores or objects.uid(pod) in self._detected:
            await self.stop(instances)
            return
        if await self._record(instances, plan, node):
            name = f"{HARVESTER_SYSTEM}/{restore_vm_config_map(objects.name(plan))}"
            await self._event(plan, DETECTOR, "RestoreVMConfigMapCreated", f"ConfigMap {name} created")
        await self.stop(instances)
        number = len(instances)
        text = f"Shutdown completed for {number} VM(s) on node {node}, success: {number}, failed: 0"
        await self._event(plan, DETECTOR, "VMShutdownCompleted", text)
        self._detected.add(objects.uid(pod))

    async def stop(self, instances: list[Object]) -> None:
        """Request a stop of each VM; a VM that is stopping is skipped."""
        for one in instances:
            if not objects.is_deleting(one):
                await self._order(f"{objects.namespace(one)}/{objects.name(one)}", "stop")

    async def has_kubevirt(self) -> bool:
        """Report whether KubeVirt is deployed."""
        found = await self._client.find(KUBEVIRTS, "kubevirt", namespace=HARVESTER_SYSTEM)
        return found is not None and objects.status(found).get("phase") == "Deployed"

    async def start(self, node: str, plan_name: str) -> str:
        """Request a start of the node's VMs; return an error for those that could not start, or an empty string."""
        recorded = await self._recorded(plan_name)
        names = [name for name in recorded.get(node, "").split(",") if name]
        failed = [f"{name}: {error}" for name in names if (error := await self._start(name))]
        plan = await self._plan(plan_name)
        if plan is not None:
            good = len(names) - len(failed)
            text = f"node {node} during upgrade {plan_name}, success: {good}, failed: {len(failed)}"
            if failed:
                await self._event(plan, RESTORE, "RestoreVMFailed", f"Failed to restore VMs for {text}", warning=True)
            else:
                await self._event(plan, RESTORE, "RestoreVMCompleted", f"Restored {len(names)} VMs for {text}")
        return f"{len(failed)} of {len(names)} VMs could not be started: {'; '.join(failed)}" if failed else ""

    async def _start(self, machine: str) -> str:
        try:
            await self._put(machine, "start")
        except Conflict:
            return ""
        except KubeError as error:
            return str(error)
        return ""

    async def _order(self, machine: str, action: str) -> None:
        try:
            await self._put(machine, action)
        except (Conflict, NotFound):
            return

    async def _put(self, machine: str, action: str) -> None:
        namespace, _, name = machine.partition("/")
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{name}/{action}"
        await self._client.raw("PUT", path, body={})

    async def _record(self, instances: list[Object], plan: Object, node: str) -> bool:
        """Record the VMs to start again, once per node, and report whether the list is new."""
        running = [one for one in instances if not objects.is_condition_true(one, "Paused")]
        text = ",".join(f"{objects.namespace(one)}/{objects.name(one)}" for one in running)
        name = restore_vm_config_map(objects.name(plan))
        try:
            known = await self._client.get(CONFIG_MAPS, name, namespace=HARVESTER_SYSTEM)
        except NotFound:
            owner = {"apiVersion": plan["apiVersion"], "kind": plan["kind"], "name": objects.name(plan)}
            owner["uid"] = objects.uid(plan)
            metadata = {"name": name, "namespace": HARVESTER_SYSTEM, "ownerReferences": [owner]}
            body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {node: text}}
            await self._client.create(CONFIG_MAPS, body)
            return True
        if node not in (known.get("data") or {}):
            await self._client.patch(CONFIG_MAPS, name, MergePatch({"data": {node: text}}), namespace=HARVESTER_SYSTEM)
        return False

    async def _recorded(self, plan: str) -> dict[str, str]:
        found = await self._client.find(CONFIG_MAPS, restore_vm_config_map(plan), namespace=HARVESTER_SYSTEM)
        return (found or {}).get("data") or {}

    async def _plan(self, name: str) -> Object | None:
        return await self._client.find(UPGRADE_PLANS, name)

    async def _event(self, plan: Object, source: str, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an event about the plan, as core/v1 recorders do."""
        at = self._context.timestamp()
        suffix = f".{self._context.random.getrandbits(64):016x}"
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": objects.name(plan)[: 253 - len(suffix)].rstrip(".-") + suffix, "namespace": "default"},
            "involvedObject": {
                "apiVersion": plan["apiVersion"],
                "kind": plan["kind"],
                "name": objects.name(plan),
                "uid": objects.uid(plan),
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message,
            "source": {"component": source},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        await self._client.create(EVENTS, event)
