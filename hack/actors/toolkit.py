"""Containers that fail by the scenario, and those whose work hack/host/job_commands.py leaves to a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.actors.caches import BY_OWNER
from hack.actors.container_work import Work, duration_of, env_of, work_of
from hack.actors.controller_loop import Timers
from hack.actors.repository import release_of
from upgrade_manager.api.checksums import write_checksums
from upgrade_manager.api.keys import HARVESTER_SYSTEM, SETTING_SERVER_VERSION, ToolkitKind
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import KUBEVIRTS, MANAGED_CHARTS, PODS, SETTINGS, UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from hack.actors.context import ActorContext
    from hack.actors.repository import Repository
    from hack.scenario import Fault
    from upgrade_manager.kube.objects import Object

#: Seconds between polls of a condition; never scaled to zero.
_LOOK = 0.5
_SHORTEST_LOOK = 0.05
_PLAN = "HARVESTER_UPGRADEPLAN_NAME"
_METHODS = ("workloadUpdateStrategy", "workloadUpdateMethods")


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit of a container."""

    code: int = 0
    message: str = ""


if TYPE_CHECKING:
    #: The progress of a running container: its exit, the seconds until the next poll, or None for never.
    Progress: TypeAlias = Ended | float | None


class Toolkit:
    """Simulates containers that exit; raises KeyError for work that only commands do."""

    def __init__(self, context: ActorContext, repository: Repository) -> None:
        self._context = context
        #: With the files of the ISO.
        self.repository = repository
        self._client = context.client("harvester-upgrade-toolkit")
        caches = context.caches
        self._pods = caches.of(PODS)
        self._charts = caches.of(MANAGED_CHARTS)
        self._kubevirts = caches.of(KUBEVIRTS)
        self._timers = Timers()
        #: The uids of Pods that run Harvester's toolkit, also once their plan is deleted, and of those that do not.
        self._harvesters: dict[str, bool] = {}
        self._scripts: dict[Work, Callable[[Object], Awaitable[Progress]]] = {
            Work.CHECKSUMS: self._checksums,
            Work.PREPARE: self._prepare,
            Work.MANIFESTS: self._manifests,
            Work.IMAGE_CLEANUP: self._wait,
            **{work: self._wait for work in Work if work.is_host_script},
            Work.OTHER: self._wait,
        }

    async def look(self, pod: Object) -> Progress:
        """Return the progress of the running container, from any state. Raises KubeError."""
        work = work_of(pod)
        fault = self.fault_of(pod)
        if fault is not None:
            if fault.hang:
                return None
            left = self._left(pod, work)
            return left or Ended(fault.exit_code, fault.message)
        return await self._scripts[work](pod)

    def fault_of(self, pod: Object) -> Fault | None:
        """Return the scenario's fault of this attempt, or None."""
        fault = self._context.scenario.fault_of(work_of(pod), objects.spec(pod).get("nodeName") or "")
        applies = fault is not None and (fault.attempts is None or self._failed_before(pod) < fault.attempts)
        return fault if applies else None

    async def stop(self) -> None:
        """See Containers: no process runs."""

    def forget(self, pod: Object) -> None:
        """Forget a deleted Pod."""
        self._timers.forget(objects.uid(pod))
        self._harvesters.pop(objects.uid(pod), None)

    def _left(self, pod: Object, work: Work) -> float:
        duration = duration_of(work, self._context.scenario.durations)
        return self._timers.left(objects.uid(pod), "work", self._context.seconds(duration))

    def _poll(self) -> float:
        return max(_SHORTEST_LOOK, _LOOK * self._context.scale)

    def _failed_before(self, pod: Object) -> int:
        siblings = self._pods.by_index(BY_OWNER, objects.owner_uid(pod))
        return sum(1 for one in siblings if objects.status(one).get("phase") == "Failed")

    # The scripts. Each step checks its effect first, so that every poll starts from the top.

    async def _wait(self, pod: Object) -> Progress:
        return self._left(pod, work_of(pod)) or Ended()

    async def _checksums(self, pod: Object) -> Progress:
        left = self._left(pod, Work.CHECKSUMS)
        return left or Ended(message=write_checksums(self.repository.checksums))

    async def _prepare(self, pod: Object) -> Progress:
        if not self._has_repository(pod):
            return self._poll()
        return self._left(pod, Work.PREPARE) or Ended()

    async def _manifests(self, pod: Object) -> Progress:
        is_harvesters = self._context.scenario.toolkit_writes_methods and await self._is_harvesters(pod)
        left = self._left(pod, Work.MANIFESTS)
        if left:
            return left
        if is_harvesters:
            await self._suspend_updates()
        waiting = [chart for chart in self._charts.store.list() if not self._chart_is_done(chart)]
        for chart in waiting:
            await self._upgrade_chart(chart, excepts_methods=is_harvesters)
        if waiting or not self._is_kubevirt_done():
            return self._poll()
        body: Object = {"value": self._context.scenario.release.harvester}
        await self._client.patch(SETTINGS, SETTING_SERVER_VERSION, MergePatch(body))
        return Ended()

    # Conditions

    def _has_repository(self, pod: Object) -> bool:
        return self.repository.is_up(repo_service_name(env_of(pod)[_PLAN]))

    def _chart_is_done(self, chart: Object) -> bool:
        version = self._context.scenario.release.harvester.removeprefix("v")
        is_harvester = objects.name(chart) in {"harvester", "harvester-crd"}
        summary = objects.status(chart).get("summary") or {}
        fresh = not is_harvester or objects.spec(chart).get("version") == version
        return (
            fresh and objects.is_condition_true(chart, "Ready") and summary.get("ready") == summary.get("desiredReady")
        )

    def _is_kubevirt_done(self) -> bool:
        kubevirt = self._kubevirts.store.get("kubevirt", HARVESTER_SYSTEM)
        version = release_of(self._context.scenario)["kubevirt"]
        return kubevirt is None or objects.status(kubevirt).get("observedKubeVirtVersion") == version

    async def _is_harvesters(self, pod: Object) -> bool:
        """Return True for Harvester's toolkit, whose changes differ from those of this project's toolkit."""
        uid = objects.uid(pod)
        if uid not in self._harvesters:
            plan = await self._client.find(UPGRADE_PLANS, env_of(pod)[_PLAN])
            kind = objects.text(plan or {}, "status", "toolkitImage", "kind")
            self._harvesters[uid] = kind == ToolkitKind.HARVESTER
        return self._harvesters[uid]

    # Changes

    async def _suspend_updates(self) -> None:
        """Empty KubeVirt's update methods: harvester/harvester v1.8.0 package/upgrade/upgrade_manifests.sh:1022.

        A merge patch that changes nothing does not move the ownership of the field.
        """
        kubevirt = self._kubevirts.store.get("kubevirt", HARVESTER_SYSTEM)
        if kubevirt is not None and objects.value(kubevirt, "spec", *_METHODS) != []:
            body: Object = {"spec": {_METHODS[0]: {_METHODS[1]: []}}}
            await self._kubevirts.patch(self._client, kubevirt, MergePatch(body), subresource="")

    async def _upgrade_chart(self, chart: Object, *, excepts_methods: bool) -> None:
        if objects.name(chart) not in {"harvester", "harvester-crd"}:
            return
        version = self._context.scenario.release.harvester.removeprefix("v")
        if objects.spec(chart).get("version") != version:
            longer = int(objects.spec(chart).get("timeoutSeconds") or 600) + 1
            spec: Object = {"version": version, "timeoutSeconds": longer}
            if excepts_methods and objects.name(chart) == "harvester":
                # harvester/harvester v1.8.0 package/upgrade/upgrade_manifests.sh:992
                spec["diff"] = _excepted(chart)
            patch = MergePatch({"spec": spec})
            written = await self._client.patch(
                MANAGED_CHARTS, objects.name(chart), patch, namespace=objects.namespace(chart)
            )
            await self._charts.seen(written)


def _excepted(chart: Object) -> Object:
    """Return spec.diff with an exception for KubeVirt's update methods."""
    diff = objects.mapping(chart, "spec", "diff")
    entries = objects.items(diff, "comparePatches")
    pointer = "/".join(("", "spec", *_METHODS))
    entry = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "jsonPointers": [pointer]}
    return {**diff, "comparePatches": [*entries, *([] if entry in entries else [entry])]}
