"""A cluster with the objects and actors that a test adds."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from hack import scenario as scenarios
from hack.actors.caches import Caches
from hack.actors.context import Actor, ActorContext
from hack.actors.hosts import Hosts
from hack.actors.jobs import JobController
from hack.actors.kubelet import Kubelet
from hack.actors.scheduler import Scheduler
from hack.actors.servers import SimulatedServers
from hack.actors.toolkit import Ended
from hack.bench.recorder import Recorder
from hack.cluster.seed_harvester import service_accounts
from hack.crds.foreign import foreign_crds
from hack.faults.forwarding import SlowTransport
from hack.scenario import Scenario
from hack.virtual_time import virtual_now
from tests.support.server.apiserver import make_server
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import NAMESPACES, NODES, SERVICE_ACCOUNTS

ISO_URL = "http://releases.simulator.internal/iso/harvester.iso"
#: Durations equal those of the scenario.
EXACT: dict[str, Any] = {"jitter": 0.0}
TOLERATIONS = [
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "kubevirt.io/drain", "operator": "Exists", "effect": "NoSchedule"},
]


def job(name: str, *, command: list[str], node: str = "", **spec: Any) -> Object:
    """Return a Job of the toolkit, bound to a node if one is given."""
    container: Object = {
        "name": "apply",
        "image": "rancher/harvester-upgrade-toolkit:v1.8.0",
        "command": command[:1],
        "args": command[1:],
        "env": [
            {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "demo"},
            {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": node},
            {"name": "HARVESTER_UPGRADE_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
    }
    pod: Object = {"restartPolicy": "Never", "containers": [container], "tolerations": TOLERATIONS}
    if node:
        container["securityContext"] = {"privileged": True}
        container["volumeMounts"] = [{"name": "host", "mountPath": "/host"}]
        pod |= {"nodeName": node, "hostPID": True, "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "harvester-system"},
        "spec": {"backoffLimit": 2, "template": {"spec": pod}} | spec,
    }


class ScriptedPods:
    """A kubelet's containers, which end after one second, or as many as their node has here."""

    def __init__(self, seconds: Mapping[str, float] | None = None) -> None:
        self.seconds = seconds or {}
        #: Nodes on which containers fail.
        self.failing: set[str] = set()
        #: The number of containers that fail on any node, the first ones.
        self.failures = 0
        self._ends: dict[str, float] = {}

    async def look(self, pod: Object) -> Ended | float | None:
        """Return the exit code, or the seconds left; None for a container that never ends."""
        now, node = asyncio.get_running_loop().time(), objects.spec(pod)["nodeName"]
        end = self._ends.setdefault(objects.uid(pod), now + self.seconds.get(node, 1.0))
        if end > now:
            return None if end == math.inf else end - now
        self.failures -= 1
        return Ended(1, "out of luck") if node in self.failing or self.failures >= 0 else Ended(0)

    def forget(self, pod: Object) -> None:
        """Forget the Pod."""
        self._ends.pop(objects.uid(pod), None)

    async def stop(self) -> None:
        """See Containers: no process runs."""


class ActorCluster:
    """An API server, a client without latency, and the context of actors."""

    def __init__(
        self,
        *,
        scenario: Scenario | None = None,
        seed: int = 1,
    ) -> None:
        self.scenario = scenario or scenarios.load("three-nodes").changed(**EXACT)
        self.server = make_server(seed)
        self.client = Client(self.server, user_agent="test", random=Random(seed), field_validation="Strict")
        slow = SlowTransport(self.server, random=Random(f"{seed}/latency"), least=0.002, most=0.012)
        #: The requests of actors.
        self.recorder = Recorder(slow)
        self.context = ActorContext(
            transport=self.recorder,
            scenario=self.scenario,
            seed=str(seed),
            random=Random(seed),
            now=virtual_now,
            scale=1.0,
            caches=Caches(Client(slow, user_agent="caches", random=Random(seed)), random=Random(seed)),
            hosts=Hosts(self.scenario),
            iso_url=ISO_URL,
        )

    async def prepare(self, *namespaces: str, groups: tuple[str, ...] = ()) -> None:
        """Install the foreign kinds, or those of some groups, and create namespaces."""
        self.server.define(crd for crd in foreign_crds() if not groups or crd["spec"]["group"] in groups)
        for name in namespaces:
            body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.client.create(NAMESPACES, body)
        for account in service_accounts():
            if objects.namespace(account) in namespaces:
                await self.client.create(SERVICE_ACCOUNTS, account)

    async def add_node(self, name: str, **spec: Any) -> Object:
        """Create a managed node that is Ready."""
        labels = {"kubernetes.io/hostname": name, "harvesterhci.io/managed": "true"}
        body: Object = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        return await self.client.create(NODES, body)

    def job_actors(self, pods: ScriptedPods) -> list[Actor]:
        """Return the actors that run Jobs in these Pods."""
        contexts = [self.context.for_actor(name) for name in ("jobs", "scheduler", "kubelet")]
        return [
            JobController(contexts[0]),
            Scheduler(contexts[1]),
            Kubelet(contexts[2], pods, SimulatedServers(contexts[2])),
        ]

    @asynccontextmanager
    async def play(self, *actors: Actor) -> AsyncIterator[None]:
        """Run the server's controllers, the caches and these actors."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self.server.run(), name="server"),
                group.create_task(self.context.caches.run(), name="caches"),
                *(group.create_task(actor.run(), name=type(actor).__name__) for actor in actors),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
