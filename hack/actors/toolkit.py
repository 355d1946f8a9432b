"""The toolkit image's scripts: what each container waits for, changes, and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.actors.caches import BY_NODE, BY_OWNER
from hack.actors.container_work import Work, duration_of, env_of, option_of, unset_variable, work_of
from hack.actors.controller_loop import Timers
from hack.actors.placement import can_move, is_final
from hack.actors.vm_ledger import VMLedger
from upgrade_manager.api.checksums import write_checksums
from upgrade_manager.api.keys import (
    FLEET_LOCAL,
    MANAGED_LABEL,
    PROVISIONING_CLUSTER,
    SETTING_SERVER_VERSION,
    TAINT_KUBEVIRT_DRAIN,
    WITNESS_LABEL,
)
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    LONGHORN_ENGINES,
    LONGHORN_VOLUMES,
    MANAGED_CHARTS,
    MIGRATIONS,
    NODES,
    PODS,
    PROVISIONING_CLUSTERS,
    SETTINGS,
    VIRTUAL_MACHINE_INSTANCES,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from hack.actors.context import ActorContext
    from hack.actors.repository import Repository
    from upgrade_manager.kube.objects import Object

#: Seconds between polls of a condition; never scaled to zero.
_LOOK = 0.5
_SHORTEST_LOOK = 0.05
#: The number of nodes from which volumes must be healthy; with fewer, replicas are counted.
_MANY_NODES = 3
_ENOUGH = 2
#: Seconds that restore-vm waits for KubeVirt.
KUBEVIRT_TIMEOUT = 1800.0
#: Seconds that post-drain waits for the repository.
REPOSITORY_TIMEOUT = 1800.0
_PLAN = "HARVESTER_UPGRADEPLAN_NAME"


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit of a container."""

    code: int = 0
    message: str = ""


if TYPE_CHECKING:
    #: The progress of a running container: its exit, the seconds until the next poll, or None for never.
    Progress: TypeAlias = Ended | float | None


class Toolkit:
    """Simulates all containers that exit."""

    def __init__(self, context: ActorContext, repository: Repository) -> None:
        self._context = context
        #: With the files of the ISO.
        self.repository = repository
        self._client = context.client("harvester-upgrade-toolkit")
        caches = context.caches
        self._nodes = caches.of(NODES)
        self._pods = caches.of(PODS)
        self._instances = caches.of(VIRTUAL_MACHINE_INSTANCES)
        self._migrations = caches.of(MIGRATIONS)
        self._volumes = caches.of(LONGHORN_VOLUMES)
        self._engines = caches.of(LONGHORN_ENGINES)
        self._charts = caches.of(MANAGED_CHARTS)
        self._timers = Timers()
        self._ledger = VMLedger(context, self._client)
        #: The charts' observedGeneration before the change, by uid: their status is stale until it grows.
        self._observed: dict[str, int] = {}
        self._scripts: dict[Work, Callable[[Object], Awaitable[Progress]]] = {
            Work.CHECKSUMS: self._checksums,
            Work.PREPARE: self._prepare,
            Work.PRE_DRAIN: self._pre_drain,
            Work.POST_DRAIN: self._post_drain,
            Work.SINGLE_NODE: self._single_node,
            Work.MANIFESTS: self._manifests,
            Work.RESTORE_VM: self._restore_vm,
        }

    async def look(self, pod: Object) -> Progress:
        """Return the progress of the running container, from any state. Raises KubeError."""
        work, node = work_of(pod), objects.spec(pod).get("nodeName") or ""
        fault = self._context.scenario.fault_of(work, node)
        if fault is not None and (fault.attempts is None or self._failed_before(pod) < fault.attempts):
            if fault.hang:
                return None
            left = self._left(pod, work)
            return left or Ended(fault.exit_code, fault.message)
        missing = unset_variable(pod)
        if missing:
            return Ended(1, missing)
        script = self._scripts.get(work)
        return await script(pod) if script else self._left(pod, work) or Ended()

    def forget(self, pod: Object) -> None:
        """Forget a deleted Pod."""
        self._timers.forget(objects.uid(pod))
        self._ledger.forget(pod)

    def _left(self, pod: Object, work: Work) -> float:
        duration = duration_of(work, self._context.scenario.durations)
        return self._timers.left(objects.uid(pod), "work", self._context.seconds(duration))

    def _poll(self) -> float:
        return max(_SHORTEST_LOOK, _LOOK * self._context.scale)

    def _failed_before(self, pod: Object) -> int:
        siblings = self._pods.by_index(BY_OWNER, objects.owner_uid(pod))
        return sum(1 for one in siblings if objects.status(one).get("phase") == "Failed")

    # The scripts. Each step checks its effect first, so that every poll starts from the top.

    async def _checksums(self, pod: Object) -> Progress:
        left = self._left(pod, Work.CHECKSUMS)
        return left or Ended(message=write_checksums(self.repository.checksums))

    async def _prepare(self, pod: Object) -> Progress:
        if not self._has_repository(pod):
            return self._poll()
        return self._left(pod, Work.PREPARE) or Ended()

    async def _pre_drain(self, pod: Object) -> Progress:
        node = objects.spec(pod)["nodeName"]
        if not self._volumes_are_healthy():
            return self._poll()
        await self._ledger.shut_down(self._immovable(node), pod, node)
        await self._set_taint(node, present=True)
        staying = self._running_on(node)
        if staying:
            await self._ledger.stop([one for one in staying if self._migration_failed(one)])
            return self._poll()
        return self._left(pod, Work.PRE_DRAIN) or Ended()

    async def _post_drain(self, pod: Object) -> Progress:
        node = objects.spec(pod)["nodeName"]
        # The OS image is downloaded before the work begins.
        if not self._timers.runs(objects.uid(pod), "work"):
            if not self._has_repository(pod):
                return self._wait_for_repository(pod)
            if not self._has_kubelet(node):
                return self._poll()
        await self._set_taint(node, present=False)
        left = self._left(pod, Work.POST_DRAIN)
        if left:
            return left
        self._install(pod, node)
        return Ended()

    async def _single_node(self, pod: Object) -> Progress:
        node = objects.spec(pod)["nodeName"]
        if not self._timers.runs(objects.uid(pod), "work") and not self._has_repository(pod):
            return self._wait_for_repository(pod)
        await self._ledger.shut_down(self._running_on(node), pod, node)
        if self._running_on(node):
            return self._poll()
        await self._set_kubernetes_version()
        if not self._has_kubelet(node):
            return self._poll()
        left = self._left(pod, Work.SINGLE_NODE)
        if left:
            return left
        self._install(pod, node)
        return Ended()

    async def _manifests(self, pod: Object) -> Progress:
        left = self._left(pod, Work.MANIFESTS)
        if left:
            return left
        waiting = [chart for chart in self._charts.store.list() if not self._chart_is_done(chart)]
        for chart in waiting:
            await self._upgrade_chart(chart)
        if waiting:
            return self._poll()
        body: Object = {"value": self._context.scenario.release.harvester}
        await self._client.patch(SETTINGS, SETTING_SERVER_VERSION, MergePatch(body))
        return Ended()

    async def _restore_vm(self, pod: Object) -> Progress:
        left = self._left(pod, Work.RESTORE_VM)
        if left:
            return left
        plan, node = option_of(pod, "--upgrade"), option_of(pod, "--node")
        if not plan or not node:
            return Ended(2, "restore-vm needs --node and --upgrade")
        if not await self._ledger.has_kubevirt():
            left = self._timers.left(objects.uid(pod), "kubevirt", KUBEVIRT_TIMEOUT)
            return self._poll() if left else Ended(1, "KubeVirt is not healthy after 30 minutes")
        error = await self._ledger.start(node, plan)
        return Ended(1, error) if error else Ended()

    # Conditions

    def _wait_for_repository(self, pod: Object) -> Progress:
        left = self._timers.left(objects.uid(pod), "repository", self._context.seconds(REPOSITORY_TIMEOUT))
        return self._poll() if left else Ended(1, "the upgrade repository is not reachable after 30 minutes")

    def _has_repository(self, pod: Object) -> bool:
        return self.repository.is_up(repo_service_name(env_of(pod)[_PLAN]))

    def _has_kubelet(self, node: str) -> bool:
        found = self._nodes.store.get(node)
        info = objects.status(found or {}).get("nodeInfo") or {}
        return info.get("kubeletVersion") == self._context.scenario.release.kubernetes

    def _running_on(self, node: str) -> list[Object]:
        there = self._instances.by_index(BY_NODE, node)
        return [one for one in there if not is_final(one)]

    def _immovable(self, node: str) -> list[Object]:
        nodes = self._nodes.store.list()
        return [one for one in self._running_on(node) if not can_move(one, nodes)]

    def _migration_failed(self, instance: Object) -> bool:
        return any(
            objects.spec(one).get("vmiName") == objects.name(instance)
            and objects.namespace(one) == objects.namespace(instance)
            and objects.name(one).startswith("kubevirt-evacuation-")
            and objects.status(one).get("phase") == "Failed"
            for one in self._migrations.store.list()
        )

    def _volumes_are_healthy(self) -> bool:
        nodes = self._nodes.store.list()
        full = [
            one for one in nodes if WITNESS_LABEL not in objects.labels(one) and MANAGED_LABEL in objects.labels(one)
        ]
        running = [one for one in self._engines.store.list() if objects.status(one).get("currentState") == "running"]
        return all(self._is_sound(one, few=len(full) < _MANY_NODES) for one in running)

    def _is_sound(self, engine: Object, *, few: bool) -> bool:
        """Report whether the volume is usable; with few nodes two writable replicas are enough."""
        volume = self._volumes.store.get(objects.spec(engine).get("volumeName") or "", objects.namespace(engine))
        if volume is None:
            return True
        if not few:
            return bool(objects.status(volume).get("robustness") == "healthy")
        modes = (objects.status(engine).get("replicaModeMap") or {}).values()
        return list(modes).count("RW") >= min(_ENOUGH, int(objects.spec(volume).get("numberOfReplicas") or 1))

    def _chart_is_done(self, chart: Object) -> bool:
        version = self._context.scenario.release.harvester.removeprefix("v")
        is_harvester = objects.name(chart) in {"harvester", "harvester-crd"}
        summary = objects.status(chart).get("summary") or {}
        fresh = not is_harvester or objects.spec(chart).get("version") == version
        return (
            fresh and objects.is_condition_true(chart, "Ready") and summary.get("ready") == summary.get("desiredReady")
        )

    # Changes

    async def _set_taint(self, name: str, *, present: bool) -> None:
        node = self._nodes.store.get(name)
        if node is None:
            return
        taints = list(objects.spec(node).get("taints") or ())
        others = [taint for taint in taints if taint.get("key") != TAINT_KUBEVIRT_DRAIN]
        drain = {"key": TAINT_KUBEVIRT_DRAIN, "value": "draining", "effect": "NoSchedule"}
        wanted = [*others, drain] if present else others
        if (len(others) < len(taints)) == present:
            return
        patch = MergePatch({"spec": {"taints": wanted}}).at(objects.resource_version(node))
        await self._nodes.seen(await self._client.patch(NODES, name, patch))

    async def _set_kubernetes_version(self) -> None:
        version = self._context.scenario.release.kubernetes
        cluster = await self._client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
        if objects.spec(cluster).get("kubernetesVersion") != version:
            patch = MergePatch({"spec": {"kubernetesVersion": version, "rkeConfig": {}}})
            await self._client.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)

    async def _upgrade_chart(self, chart: Object) -> None:
        if objects.name(chart) not in {"harvester", "harvester-crd"}:
            return
        version = self._context.scenario.release.harvester.removeprefix("v")
        if objects.spec(chart).get("version") != version:
            self._observed[objects.uid(chart)] = int(objects.status(chart).get("observedGeneration") or 0)
            longer = int(objects.spec(chart).get("timeoutSeconds") or 600) + 1
            patch = MergePatch({"spec": {"version": version, "timeoutSeconds": longer}})
            written = await self._client.patch(
                MANAGED_CHARTS, objects.name(chart), patch, namespace=objects.namespace(chart)
            )
            await self._charts.seen(written)

    def _install(self, pod: Object, node: str) -> None:
        """Install the operating system unless it runs; the reboot waits for the Pod's end."""
        wanted = self._context.scenario.release.os_image
        if self._context.hosts.of(node).os_image != wanted:
            self._context.hosts.install(node, wanted, reboot_after=objects.uid(pod))
