"""A Harvester cluster without controllers, for tests of single reconciles."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from hack.crds.foreign import foreign_crds, our_crd
from hack.virtual_time import virtual_now
from tests.support.cluster.preflight import Kubelets, Probe, VirtualClock, api_servers
from tests.support.managers.histories import UnwrittenHistory
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.server.apiserver import make_server
from upgrade_manager.api.keys import MANAGED_LABEL, suc_node_label
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ENDPOINT_SLICES,
    MACHINES,
    NAMESPACES,
    NODES,
    SUC_PLANS,
    UPGRADE_PLANS,
    Resource,
)
from upgrade_manager.kube.store import Store
from upgrade_manager.kube.transport import Response
from upgrade_manager.pipeline.context import ParsedPlan, ReconcileContext
from upgrade_manager.pipeline.dependencies import Settings
from upgrade_manager.pipeline.events import PlanEvents
from upgrade_manager.pipeline.informers import InformerSpec, PlanInformers
from upgrade_manager.pipeline.metrics import UpgradeMetrics
from upgrade_manager.pipeline.status import StatusPatch
from upgrade_manager.preflight.check import Preflight
from upgrade_manager.preflight.kubelets import DirectKubelets
from upgrade_manager.runtime.metrics import Metrics

_NAMESPACES = ("harvester-system", "cattle-system", "fleet-local", "longhorn-system")
#: status.toolkitImage.
RECORDED = {"repository": "rancher/harvester-upgrade-toolkit", "tag": "v1.7.0", "kind": "harvester"}
RELEASE = {
    "harvester": "v1.7.0",
    "os": "Harvester v1.7.0",
    "kubernetes": "v1.33.5+rke2r1",
    "rancher": "v2.12.2",
}


class Observed(PlanInformers):
    """Informers that list at every read."""

    def __init__(self, group: asyncio.TaskGroup, client: Client) -> None:
        super().__init__(group, _no_informer, uid="the plan")
        self._client = client
        self._stale: dict[InformerSpec, Store] = {}

    async def freeze(self, spec: InformerSpec) -> None:
        """Show the current state until `thaw`, like a watch that hangs."""
        self._stale[spec] = await self.watch(spec)

    def thaw(self) -> None:
        """Show the latest state of everything."""
        self._stale.clear()

    async def watch(self, spec: InformerSpec) -> Store:
        """List it."""
        if spec in self._stale:
            return self._stale[spec]
        listing = await self._client.list(
            spec.resource,
            namespace=spec.namespace,
            label_selector=spec.label_selector,
            field_selector=spec.field_selector,
            metadata_only=spec.metadata_only,
        )
        store = Store()
        store.replace(listing.items, listing.resource_version)
        return store

    async def watch_all(self, *specs: InformerSpec) -> list[Store]:
        """List each."""
        return [await self.watch(spec) for spec in specs]


class FakeEventRecorder(EventRecorder):
    """Records reason and message of each event."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, component="test", now=virtual_now, random=Random(1))
        self.recorded: list[tuple[str, str]] = []
        #: Their unique names, or empty strings.
        self.names: list[str] = []
        #: Those that an earlier process should have recorded.
        self.known: list[tuple[str, str]] = []

    def record(
        self, about: Object, *, type_: str, reason: str, message: str, name: str = "", is_known: bool = False
    ) -> None:
        _ = (about, type_)
        if is_known:
            self.known.append((reason, message))
            return
        self.recorded.append((reason, message))
        self.names.append(name)


@dataclass
class Files:
    """An upgrade repository: responses by the URL's path, 404 for others."""

    answers: dict[str, bytes | int | Exception] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # the protocol's
        """Return the response at once."""
        assert limit > 0
        assert timeout > 0
        self.requests.append(url)
        answer = self.answers.get(url.partition("//")[2].partition("/")[2], 404)
        if isinstance(answer, Exception):
            raise answer
        return Response(status=answer) if isinstance(answer, int) else Response(status=200, body=answer)


class Harvester:
    """The cluster and what a reconcile needs."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.server = make_server()
        self.client = Client(self.server, user_agent="test", random=Random(1), field_validation="Strict")
        self.files = Files()
        self.recorder = FakeEventRecorder(self.client)
        self.observed = Observed(group, self.client)
        self.kubelets = Kubelets()
        self.probe = Probe()
        self.preflight = Preflight(probe=self.probe, kubelets=DirectKubelets(self.kubelets), clock=VirtualClock())
        #: The flags of the next reconcile.
        self.toolkit = TOOLKIT

    async def install(self) -> None:
        """Define the kinds and create the namespaces."""
        self.server.define([*foreign_crds(), our_crd()])
        for name in _NAMESPACES:
            await self.put(NAMESPACES, {"metadata": {"name": name}})
        await self.put(ENDPOINT_SLICES, api_servers("10.0.0.1"))

    async def put(self, resource: Resource, manifest: Object, *, status: Object | None = None) -> Object:
        """Create an object, with a status."""
        named = {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}
        stored = await self.client.create(resource, named)
        if not status:
            return stored
        return await self.client.update(resource, {**stored, "status": status}, subresource="status")

    async def finish(self, resource: Resource, name: str, namespace: str, status: Object) -> None:
        """Give an object a status, as its controller would."""
        stored = await self.client.get(resource, name, namespace=namespace)
        await self.client.update(resource, {**stored, "status": status}, subresource="status")

    async def nodes(self, *names: str, **labels: str) -> None:
        """Create managed nodes that are Ready and run the old release."""
        for name in names:
            given = {MANAGED_LABEL: "true", "kubernetes.io/hostname": name, **labels}
            ready = {"type": "Ready", "status": "True"}
            status = {"conditions": [ready], "nodeInfo": {"osImage": "Harvester v1.6.1"}, **self.kubelets.status(name)}
            await self.put(NODES, {"metadata": {"name": name, "labels": given}}, status=status)

    async def machine(self, node: str, *, name: str = "") -> None:
        """Create Rancher's Machine of a node; its name is m-NODE by default."""
        spec = {"clusterName": "local", "bootstrap": {}, "infrastructureRef": {"name": "x", "kind": "x"}}
        status = {"phase": "Running", "nodeRef": {"kind": "Node", "apiVersion": "v1", "name": node}}
        metadata = {"name": name or f"m-{node}", "namespace": "fleet-local"}
        await self.put(MACHINES, {"metadata": metadata, "spec": spec}, status=status)

    async def complete_plan(self, name: str, *nodes: str) -> None:
        """Let the system-upgrade-controller report the Plan as complete on these nodes."""
        for node in nodes:
            await self.client.patch(NODES, node, MergePatch({"metadata": {"labels": {suc_node_label(name): "hash"}}}))
        await self.finish(SUC_PLANS, name, "cattle-system", {"conditions": [{"type": "Complete", "status": "True"}]})

    async def plan(
        self,
        name: str = "up",
        *,
        spec: Object | None = None,
        status: Object | None = None,
        toolkit: Object | None = RECORDED,
    ) -> Object:
        """Create an UpgradePlan for which Initialize has recorded that toolkit image, or none."""
        manifest = {"metadata": {"name": name}, "spec": spec or {"version": "v1.7.0"}}
        recorded = {"toolkitImage": toolkit} if toolkit else {}
        return await self.put(UPGRADE_PLANS, manifest, status={**recorded, **(status or {})})

    def context(self, plan: Object) -> ReconcileContext:
        """Return the context of one reconcile."""
        return ReconcileContext(
            raw=plan,
            plan=ParsedPlan.of(plan),
            status=StatusPatch(plan, now=virtual_now),
            client=self.client,
            repository=self.files,
            informers=self.observed,
            events=PlanEvents(self.recorder, now=virtual_now, history=UnwrittenHistory()),
            metrics=UpgradeMetrics(Metrics(CollectorRegistry())),
            preflight=self.preflight,
            now=virtual_now,
            settings=Settings(
                toolkit=self.toolkit,
                repo_url="http://{service}.harvester-system",
                job_service_account="harvester",
                plan_service_account="system-upgrade-controller",
            ),
        )

    async def names(self, resource: Resource, namespace: str = "") -> list[str]:
        """List the names of a kind's objects."""
        return [objects.name(item) for item in (await self.client.list(resource, namespace=namespace)).items]

    async def find(self, resource: Resource, name: str, namespace: str = "") -> Any:
        """Return an object, or None if it is not found."""
        try:
            return await self.client.get(resource, name, namespace=namespace)
        except NotFound:
            return None


def _no_informer(spec: InformerSpec) -> Any:
    raise AssertionError(f"nothing watches {spec.resource.name}")
