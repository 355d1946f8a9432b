"""What the pipeline watches, and only while it looks at it.

A phase asks for what it needs in every run. Whatever no phase has asked for in a whole reconcile is no longer watched:
so a kind that one phase needs is watched during that phase, with nothing to remember and nothing to switch off.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import LABEL_COMPONENT, Component
from upgrade_manager.kube.errors import Transient
from upgrade_manager.pipeline.diagnostics import TTLCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Store

#: Seconds for the first list of a kind; longer is an error that names it, and the informer keeps trying meanwhile.
SYNC_TIMEOUT = 10.0
#: Seconds that a reconcile waits at its end until the caches have what it wrote.
SETTLE_TIMEOUT = 5.0
#: What a Job's status tells of its Pods.
_OF_PODS = ("active", "ready", "startTime", "succeeded")


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerSpec:
    """A selection of objects; equal selections share one informer."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    #: Kept until the plan ends, although not every phase looks at it.
    lasting: bool = False

    def covers(self, resource: Resource, namespace: str) -> bool:
        """Whether a write to such an object may come back through this watch."""
        return self.resource == resource and self.namespace in {"", namespace}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A write of ours that the caches should have seen before the next decision."""

    resource: Resource
    namespace: str
    resource_version: str


@dataclass(slots=True)
class _Running:
    informer: Informer
    task: asyncio.Task[None]


class PlanInformers:
    """The informers of one plan; used by one worker, started and stopped inside its TaskGroup."""

    def __init__(self, group: asyncio.TaskGroup, start: Callable[[InformerSpec], Informer]) -> None:
        self._group = group
        self._start = start
        self._running: dict[InformerSpec, _Running] = {}
        self._used: set[InformerSpec] = set()
        #: By keep_failed_jobs: the steps of a clean-up that succeeded while others failed.
        self.cleaned_up: dict[bool, set[str]] = {True: set(), False: set()}
        self.diagnostics = TTLCache()

    @property
    def specs(self) -> frozenset[InformerSpec]:
        """What is watched now."""
        return frozenset(self._running)

    async def watch(self, spec: InformerSpec) -> Store:
        """The objects of that selection, current; starts to watch where nobody does yet. Raises Transient."""
        running = self._begun(spec)
        try:
            async with asyncio.timeout(SYNC_TIMEOUT):
                await running.informer.wait_for_sync()
        except TimeoutError as error:
            where = f" in namespace {spec.namespace}" if spec.namespace else ""
            why = running.informer.last_error or f"no answer within {SYNC_TIMEOUT:.0f} s"
            raise Transient(f"cannot list {spec.resource.name}{where}: {why}") from error
        return running.informer.store

    async def watch_all(self, *specs: InformerSpec) -> list[Store]:
        """The same for several, which are listed at the same time where that is due. Raises Transient."""
        for spec in specs:
            self._begun(spec)
        return [await self.watch(spec) for spec in specs]

    def _begun(self, spec: InformerSpec) -> _Running:
        self._used.add(spec)
        running = self._running.get(spec)
        if running is None:
            informer = self._start(spec)
            task = self._group.create_task(informer.run(), name=f"informer {spec.resource.name}")
            running = self._running[spec] = _Running(informer, task)
        return running

    async def settle(self, written: Iterable[Written]) -> bool:
        """Wait, within bounds, until the caches have seen our own writes; whether all of them have."""
        newest: dict[InformerSpec, str] = {}
        for write in written:
            for spec in self._running:
                if spec.covers(write.resource, write.namespace):
                    newest[spec] = write.resource_version
        waits = [
            self._running[spec].informer.wait_for_version(version, timeout=SETTLE_TIMEOUT)
            for spec, version in newest.items()
        ]
        return all(await asyncio.gather(*waits))

    async def prune(self) -> None:
        """Stop what nobody has asked for since the last call."""
        unused = {spec for spec in self._running if not spec.lasting} - self._used
        self._used = set()
        await self._stop(unused)

    async def stop(self) -> None:
        """Stop everything."""
        self._used = set()
        await self._stop(set(self._running))

    async def _stop(self, specs: Iterable[InformerSpec]) -> None:
        tasks = [self._running.pop(spec).task for spec in list(specs)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Informers:
    """The informers of every plan that looks at something: each plan has its own, so none can close another's."""

    def __init__(self, group: asyncio.TaskGroup, start: Callable[[str, InformerSpec], Informer]) -> None:
        self._group = group
        self._start = start
        self._plans: dict[str, PlanInformers] = {}

    def of(self, plan: str) -> PlanInformers:
        """The plan's informers; its informers are started with its name, to say whom to wake."""
        if plan not in self._plans:
            self._plans[plan] = PlanInformers(self._group, partial(self._start, plan))
        return self._plans[plan]

    async def drop(self, plan: str) -> None:
        """The plan has ended or is gone."""
        informers = self._plans.pop(plan, None)
        if informers is not None:
            await informers.stop()

    async def stop(self) -> None:
        """Stop everything."""
        for plan in list(self._plans):
            await self.drop(plan)


def slim_node(node: dict[str, Any]) -> dict[str, Any]:
    """Keep of a Node what decisions read; its images and addresses would be most of the cache."""
    metadata, status = node["metadata"], node.get("status") or {}
    return {
        "metadata": {
            key: metadata[key]
            for key in ("name", "uid", "resourceVersion", "labels", "annotations", "deletionTimestamp")
            if key in metadata
        },
        "status": {
            "conditions": [_lasting(c) for c in status.get("conditions") or [] if c.get("type") == "Ready"],
            "nodeInfo": {key: (status.get("nodeInfo") or {}).get(key, "") for key in ("osImage", "kubeletVersion")},
        },
    }


def _lasting(condition: dict[str, Any]) -> dict[str, Any]:
    """Without the time of the kubelet's last report, which changes every five minutes and says nothing else."""
    return {key: value for key, value in condition.items() if key != "lastHeartbeatTime"}


def slim_job(job: dict[str, Any]) -> dict[str, Any]:
    """Keep of a Job what decisions read; its Pod template would be most of the cache.

    Of the nodes' many Jobs nobody reads whether their Pods have started, and each change is a look at everything.
    """
    metadata, status = job["metadata"], job.get("status") or {}
    spec = job.get("spec") or {}
    alone = (metadata.get("labels") or {}).get(LABEL_COMPONENT) == Component.CLUSTER_UPGRADE
    kept = ("conditions", "failed", *(_OF_PODS if alone else ()))
    limit = {"backoffLimit": spec["backoffLimit"]} if "backoffLimit" in spec else {}
    return {
        "kind": "Job",
        "metadata": {key: value for key, value in metadata.items() if key not in {"managedFields", "annotations"}},
        "spec": {"parallelism": spec.get("parallelism", 1), "suspend": bool(spec.get("suspend")), **limit},
        "status": {key: status[key] for key in kept if key in status},
    }
