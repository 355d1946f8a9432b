"""kube-scheduler: binds Pods to nodes that their tolerations and affinity allow, once their claims exist.

Order and messages of the rules are those of kube-scheduler v1.35.4 (pkg/scheduler/framework/plugins), observed on the
real API server. A node that is not Ready is refused for its taints only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from hack.actors.caches import BY_NODE
from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.container_work import claims_of
from hack.actors.controller_loop import ControllerLoop, Timers
from hack.actors.kinds import BINDINGS
from hack.actors.placement import fits_node, refusal
from hack.actors.pod_failures import PodFailures
from hack.actors.pod_status import is_over
from hack.apiserver.selectors import selects
from upgrade_manager.api.keys import LABEL_HOSTNAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Scheduler:
    """Binds Pods; an unschedulable Pod gets its condition and waits."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client("kube-scheduler")
        self._pods = context.caches.of(PODS)
        self._nodes = context.caches.of(NODES)
        self._claims = context.caches.of(PERSISTENT_VOLUME_CLAIMS)
        self._loop: ControllerLoop[tuple[str, str]] = context.loop("scheduler", self._bind, workers=1)
        self._timers = Timers()
        self._failures = PodFailures(context, self._client, component="default-scheduler")
        self._pods.subscribe(self._pod_changed)
        self._nodes.subscribe(self._wake_on)
        self._claims.subscribe(self._wake_on)
        #: Unschedulable Pods, which are requeued when a node or a claim changes, or a Pod is deleted.
        self._waiting: dict[tuple[str, str], None] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._failures.run(), name="scheduler events")
            group.create_task(self._context.run_loop(self._loop, self._pods, objects.key), name="scheduler")

    def _pod_changed(self, change: Change) -> None:
        if change.kind.value == "deleted":
            self._failures.forget(change.obj)
        if not objects.spec(change.obj).get("nodeName"):
            self._loop.add(objects.key(change.obj))
        elif change.kind.value == "deleted" or is_over(change.obj):
            self._wake()

    def _wake_on(self, _: Change) -> None:
        self._wake()

    def _wake(self) -> None:
        for key in self._waiting:
            self._loop.add(key)

    async def _bind(self, key: tuple[str, str]) -> RequeueAfter:
        namespace, name = key
        pod = self._pods.store.get(name, namespace)
        if pod is None or objects.spec(pod).get("nodeName") or objects.is_deleting(pod) or is_over(pod):
            self._waiting.pop(key, None)
            return None
        left = self._timers.left(objects.uid(pod), "bind", self._context.seconds(self._delay()))
        if left > 0:
            return left
        node, why = self._choose(pod)
        if not node:
            self._waiting[key] = None
            self._failures.record(pod, f"FailedScheduling: {why}")
            await self._mark_unschedulable(pod, why)
            return None
        self._timers.forget(objects.uid(pod))
        self._failures.forget(pod)
        await self._assign(pod, node)
        return None

    async def _assign(self, pod: Object, node: str) -> None:
        """Create the Binding; the API server sets the node and the condition."""
        name, namespace = objects.name(pod), objects.namespace(pod)
        binding: Object = {
            "apiVersion": BINDINGS.api_version,
            "kind": BINDINGS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": NODES.api_version, "kind": NODES.kind, "name": node},
        }
        try:
            await self._client.create(BINDINGS, binding)
            await self._pods.seen(await self._client.get(PODS, name, namespace=namespace))
        except (NotFound, Conflict):
            # The Pod does not exist, or another Pod has its name or its node.
            return

    def _delay(self) -> float:
        return self._context.scenario.durations.pod_schedule

    async def _mark_unschedulable(self, pod: Object, why: str) -> None:
        at = self._context.timestamp()
        conditions = _unscheduled(pod, why, at=at)
        if conditions != objects.status(pod).get("conditions"):
            body: Object = {"status": {"conditions": conditions, "phase": "Pending"}}
            await self._write(pod, body)

    async def _write(self, pod: Object, body: Object) -> None:
        await self._pods.patch(self._client, pod, MergePatch(body))

    def _choose(self, pod: Object) -> tuple[str, str]:
        """Return the node for the Pod, or an empty string and the reason."""
        missing = self._missing_claim(pod)
        if missing:
            return "", f'{self._available()}: persistentvolumeclaim "{missing}" not found. not found'
        best: tuple[int, int, str] | None = None
        for node in self._candidates(pod):
            if self._refusal(pod, node):
                continue
            name = objects.name(node)
            others = [one for one in self._pods.by_index(BY_NODE, name) if not is_over(one)]
            peers = sum(1 for one in others if objects.owner_uid(one) == objects.owner_uid(pod))
            rank = (peers, len(others), name)
            best = rank if best is None or rank < best else best
        return (best[2], "") if best is not None else ("", self._refusals(pod))

    def _missing_claim(self, pod: Object) -> str:
        """Return the first claim that does not exist."""
        namespace = objects.namespace(pod)
        return next((name for name in claims_of(pod) if self._claims.store.get(name, namespace) is None), "")

    def _available(self) -> str:
        return f"0/{len(self._nodes.store.list())} nodes are available"

    def _refusals(self, pod: Object) -> str:
        """Count the nodes by the reason against each."""
        nodes = self._nodes.store.list()
        reasons = Counter(self._refusal(pod, node) for node in nodes)
        listed = ", ".join(sorted(f"{count} {why}" for why, count in reasons.items()))
        preemption = f"{self._available()}: {len(nodes)} Preemption is not helpful for scheduling."
        return f"{self._available()}: {listed}. no new claims to deallocate, preemption: {preemption}"

    def _candidates(self, pod: Object) -> list[Object]:
        """Return the one node that affinity names, or all nodes: evaluating the others costs time."""
        host = _wanted_host(pod)
        if host:
            node = self._nodes.store.get(host)
            if node is not None and objects.labels(node).get(LABEL_HOSTNAME) == host:
                return [node]
        return self._nodes.store.list()

    def _refusal(self, pod: Object, node: Object) -> str:
        why = refusal(pod, node)
        if why:
            return why
        if not fits_node(pod, node):
            return "node(s) didn't match Pod's node affinity/selector"
        if self._is_kept_apart(pod, objects.name(node)):
            return "node(s) didn't match pod anti-affinity rules"
        if not self._has_companions(pod, objects.name(node)):
            return "node(s) didn't match pod affinity rules"
        return ""

    def _is_kept_apart(self, pod: Object, node: str) -> bool:
        affinity = (objects.spec(pod).get("affinity") or {}).get("podAntiAffinity") or {}
        there = self._pods.by_index(BY_NODE, node)
        return any(
            selects(term.get("labelSelector"), objects.labels(other))
            for term in affinity.get(_REQUIRED) or ()
            for other in there
            if not is_over(other) and objects.namespace(other) == objects.namespace(pod)
        )

    def _has_companions(self, pod: Object, node: str) -> bool:
        """Report whether the node has the Pods of each affinity term; other topologies are not simulated."""
        affinity = (objects.spec(pod).get("affinity") or {}).get("podAffinity") or {}
        there = [one for one in self._pods.by_index(BY_NODE, node) if not is_over(one)]
        return all(
            any(
                selects(term.get("labelSelector"), objects.labels(other))
                for other in there
                if objects.namespace(other) == objects.namespace(pod)
            )
            for term in affinity.get(_REQUIRED) or ()
        )


def _wanted_host(pod: Object) -> str:
    affinity = (objects.spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for one in term.get("matchExpressions") or ():
            values = one.get("values") or [""]
            if one.get("key") == LABEL_HOSTNAME and one.get("operator") == "In" and len(values) == 1:
                return str(values[0])
    return ""


def _unscheduled(pod: Object, why: str, *, at: str) -> list[Object]:
    conditions = objects.status(pod).get("conditions") or []
    return with_condition(
        conditions, "PodScheduled", "False", reason="Unschedulable", message=why, at=at, time=TRANSITION
    )
