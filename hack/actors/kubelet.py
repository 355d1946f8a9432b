"""The kubelets: start the Pods bound to their nodes, run them to completion, and remove deleted ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from hack.actors.caches import BY_NODE
from hack.actors.container_work import claims_of, container_of, missing_from, process_of
from hack.actors.controller_loop import ControllerLoop, Timers
from hack.actors.freezer import REGISTRY, RUNTIME, kubelet_of, registry_of
from hack.actors.placement import UNREACHABLE, is_rejected
from hack.actors.pod_deletion import delete_pod
from hack.actors.pod_failures import PodFailures, failed_probe
from hack.actors.pod_status import ended, is_over, is_ready, ready, rejected, running, unready, waiting
from hack.actors.toolkit import Ended
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from hack.actors.servers import Servers
    from hack.actors.toolkit import Progress
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_USER_AGENT = "kubelet"
_INTOLERANT = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


class Containers(Protocol):
    """Simulates the processes in containers that exit."""

    async def look(self, pod: Object) -> Progress:
        """Return the progress of the running container; called repeatedly."""
        ...

    def forget(self, pod: Object) -> None:
        """Forget a Pod that is deleted or restarts."""
        ...

    async def stop(self) -> None:
        """End all processes."""
        ...


class Kubelet:
    """Simulates the kubelet of every node whose host is up."""

    def __init__(self, context: ActorContext, containers: Containers, servers: Servers) -> None:
        self._context = context
        self._containers = containers
        self._servers = servers
        self._client = context.client(_USER_AGENT)
        self._pods = context.caches.of(PODS)
        self._nodes = context.caches.of(NODES)
        self._claims = context.caches.of(PERSISTENT_VOLUME_CLAIMS)
        self._loop: ControllerLoop[tuple[str, str]] = context.loop("kubelet", self._reconcile, workers=256)
        self._timers = Timers()
        self._failures = PodFailures(context, self._client, component="kubelet")
        #: The boot ID under which a Pod's containers were started, by uid: a reboot ends them.
        self._boots: dict[str, str] = {}
        self._pods.subscribe(self._pod_changed)
        self._nodes.subscribe(self._node_changed)
        self._claims.subscribe(self._claim_changed)
        context.hosts.subscribe(self._wake_node)
        context.freezer.subscribe(self._wake_all)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.caches.synced()
        self._wake_all("")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._failures.run(), name="kubelet events")
                group.create_task(self._loop.run(), name="kubelet")
        finally:
            await self._containers.stop()

    def _wake_all(self, _: str) -> None:
        for pod in self._pods.store.list():
            self._add(pod)

    def _pod_changed(self, change: Change) -> None:
        if change.kind.value == "deleted":
            self._forget(change.obj)
        else:
            self._add(change.obj)

    def _node_changed(self, change: Change) -> None:
        old = objects.spec(change.old or {})
        new = objects.spec(change.obj)
        # Its Pods wait for a Node that is registered again.
        if change.old is None or any(old.get(key) != new.get(key) for key in ("taints", "unschedulable")):
            self._wake_node(objects.name(change.obj))

    def _claim_changed(self, change: Change) -> None:
        for pod in self._pods.store.list():
            if objects.name(change.obj) in claims_of(pod):
                self._add(pod)

    def _wake_node(self, node: str) -> None:
        for pod in self._pods.by_index(BY_NODE, node):
            self._add(pod)

    def _add(self, pod: Object) -> None:
        if objects.spec(pod).get("nodeName"):
            self._loop.add(objects.key(pod))

    def _forget(self, pod: Object) -> None:
        self._timers.forget(objects.uid(pod))
        self._failures.forget(pod)
        self._containers.forget(pod)
        self._servers.forget(pod)
        self._boots.pop(objects.uid(pod), None)

    async def _reconcile(self, key: tuple[str, str]) -> RequeueAfter:
        pod = self._pods.store.get(key[1], key[0])
        if pod is None:
            return None
        name = objects.spec(pod)["nodeName"]
        host = self._context.hosts.of(name)
        if not host.up or self._context.freezer.hangs(kubelet_of(name)):
            return None
        return await self._stage(pod, host.boot_id)(pod)

    def _stage(self, pod: Object, boot: str) -> Callable[[Object], Awaitable[RequeueAfter]]:
        """Choose the next step for a Pod whose node is up."""
        if objects.is_deleting(pod):
            return self._stop
        if is_over(pod):
            return self._after_end
        if objects.status(pod).get("phase") != "Running":
            return self._start
        if self._boots.setdefault(objects.uid(pod), boot) != boot:
            return self._restart
        return self._run

    def _left(self, pod: Object, what: str, duration: float) -> float:
        return self._timers.left(objects.uid(pod), what, self._context.seconds(duration))

    async def _start(self, pod: Object) -> RequeueAfter:
        if self._is_unreachable(pod):
            # The kubelet posts the status of its node first.
            return None
        node = self._nodes.store.get(objects.spec(pod)["nodeName"])
        if node is not None and is_rejected(pod, node):
            self._failures.record(pod, f"TaintToleration: {_INTOLERANT}")
            await self._write(pod, rejected(pod, reason="TaintToleration", message=_INTOLERANT))
            return None
        why = self._obstacle(pod)
        if why:
            self._timers.stop(objects.uid(pod), "start")
            new = waiting(pod, why)
            if new != objects.status(pod):
                await self._write(pod, new)
            return None if node is None else self._failures.record(pod, why)
        self._failures.forget(pod)
        left = self._left(pod, "start", self._context.scenario.durations.pod_start)
        if left > 0:
            return left
        self._boots[objects.uid(pod)] = self._context.hosts.of(objects.spec(pod)["nodeName"]).boot_id
        unprobed = objects.spec(pod).get("restartPolicy") == "Never"
        await self._write(pod, running(pod, at=self._context.timestamp(), ready=unprobed))
        return None

    def _is_unreachable(self, pod: Object) -> bool:
        node = self._nodes.store.get(objects.spec(pod)["nodeName"]) or {}
        return any(taint.get("key") == UNREACHABLE for taint in objects.spec(node).get("taints") or ())

    def _obstacle(self, pod: Object) -> str:
        if self._nodes.store.get(objects.spec(pod)["nodeName"]) is None:
            return "NodeNotFound: the node does not exist"
        return self._missing_volume(pod) or self._broken_host(pod) or missing_from(pod)

    def _missing_volume(self, pod: Object) -> str:
        for claim in claims_of(pod):
            found = self._claims.store.get(claim, objects.namespace(pod))
            if found is None or objects.status(found).get("phase") != "Bound":
                return f"ContainerCreating: persistentvolumeclaim {claim!r} is not there yet"
            if "ReadWriteMany" not in objects.spec(found)["accessModes"] and self._is_used_elsewhere(pod, claim):
                return f"ContainerCreating: Multi-Attach error for volume {claim!r}, which only one node can mount"
        return ""

    def _broken_host(self, pod: Object) -> str:
        sources = (REGISTRY, registry_of(objects.spec(pod)["nodeName"]))
        if any(map(self._context.freezer.hangs, sources)):
            return f"ImagePullBackOff: Back-off pulling image {container_of(pod).get('image', '')}: i/o timeout"
        if self._context.freezer.hangs(RUNTIME):
            return "CreateContainerError: failed to reserve sandbox name: context deadline exceeded"
        return ""

    def _is_used_elsewhere(self, pod: Object, claim: str) -> bool:
        return any(
            claim in claims_of(other)
            and objects.status(other).get("phase") == "Running"
            and objects.namespace(other) == objects.namespace(pod)
            and objects.spec(other).get("nodeName") != objects.spec(pod).get("nodeName")
            for other in self._pods.store.list()
        )

    async def _run(self, pod: Object) -> RequeueAfter:
        if objects.spec(pod).get("restartPolicy") != "Never":
            return await self._serve(pod)
        progress = await self._containers.look(pod)
        if isinstance(progress, Ended):
            at = self._context.timestamp()
            await self._write(pod, ended(pod, code=progress.code, message=progress.message, at=at))
            return None
        return progress

    async def _serve(self, pod: Object) -> RequeueAfter:
        serving, at = await self._servers.look(pod), self._context.timestamp()
        if serving.restarted:
            await self._write(pod, running(pod, at=at, ready=False, restarted=True))
        elif serving.is_ready != is_ready(pod):
            await self._write(pod, (ready if serving.is_ready else unready)(pod, at=at))
        if self._context.freezer.hangs(process_of(pod)) and (why := failed_probe(pod)):
            return self._failures.record(pod, why)
        return serving.again

    async def _restart(self, pod: Object) -> RequeueAfter:
        """Restart a Pod whose host rebooted."""
        self._timers.forget(objects.uid(pod))
        self._containers.forget(pod)
        self._servers.forget(pod)
        boot, at = self._context.hosts.of(objects.spec(pod)["nodeName"]).boot_id, self._context.timestamp()
        if objects.spec(pod).get("restartPolicy") == "Never":
            await self._write(pod, ended(pod, code=255, message="", reason="Unknown", at=at))
        else:
            await self._write(pod, running(pod, at=at, ready=False, restarted=True))
        # Only after the status is written: the API server may still be down.
        self._boots[objects.uid(pod)] = boot
        return None

    async def _stop(self, pod: Object) -> RequeueAfter:
        if not is_over(pod):
            left = await self._servers.stop(pod)
            if left > 0:
                return left
            await self._write(pod, ended(pod, code=137, message="", reason="Error", at=self._context.timestamp()))
        await self._remove(pod)
        return None

    async def _after_end(self, pod: Object) -> RequeueAfter:
        if objects.status(pod).get("phase") == "Succeeded":
            self._context.hosts.pod_ended(objects.spec(pod)["nodeName"], objects.uid(pod))
        return None

    async def _write(self, pod: Object, status: Object) -> None:
        patch = MergePatch({"metadata": {"uid": objects.uid(pod)}, "status": status})
        await self._pods.patch(self._client, pod, patch)

    async def _remove(self, pod: Object) -> None:
        """Delete the Pod from the API with grace period 0, as a kubelet does."""
        if not await delete_pod(self._context.transport, pod, user_agent=_USER_AGENT, grace=0):
            self._loop.add(objects.key(pod), after=1.0)
