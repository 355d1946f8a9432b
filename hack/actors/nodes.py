"""Node objects: the kubelet's status, reboots, and the node lifecycle controller's taints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.controller import Controller
from hack.actors.freezer import boot_of, kubelet_of
from hack.actors.placement import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, UNSCHEDULABLE
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from hack.actors.hosts import Host
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

#: The least seconds for which the API server is down with its host.
_OUTAGE = 0.05
#: Seconds without a heartbeat until the node lifecycle controller marks a node.
GRACE = 40.0
#: Seconds that a boot loader tries the new operating system before it falls back.
_FALLBACK = 35.0
#: Written by the node lifecycle controller; the API server adds NOT_READY to every new node.
_TAINT_KEYS = {UNREACHABLE, NOT_READY, UNSCHEDULABLE}


class NodeKeeper(Controller[str]):
    """Reboots hosts and keeps the status of each Node in line with its host."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, NODES, user_agent="kubelet", loop="nodes", key_of=objects.name)
        self._lifecycle = context.client("node-lifecycle-controller")
        context.hosts.subscribe(self._loop.add)
        context.freezer.subscribe(self._wake)

    def _wake(self, thawed: str) -> None:
        for name in self._context.hosts.names():
            if thawed == boot_of(name) and not self._context.freezer.hangs(thawed):
                self._context.hosts.boot_again(name)
            self._loop.add(name)

    def _changed(self, change: Change) -> None:
        if change.kind.value != "deleted":
            self._context.hosts.adopt(change.obj)
            super()._changed(change)

    async def _reconcile(self, key: str) -> RequeueAfter:
        host = self._context.hosts.of(key)
        later = self._reboot(key, host)
        node = self._cache.store.get(key)
        left = self._until_unreachable(host)
        if node is not None and self._context.hosts.have_quorum and not left:
            await self._update_status(node, host, posts=left is None)
        return min((one for one in (later, left or None) if one is not None), default=None)

    def _until_unreachable(self, host: Host) -> float | None:
        """Return the seconds until the kubelet counts as dead, 0 once it does; None while it posts its status."""
        if not host.up:
            return 0.0
        if not self._context.freezer.hangs(kubelet_of(host.name)):
            self._timers.stop(host.name, "heartbeat")
            return None
        return self._timers.left(host.name, "heartbeat", GRACE * self._context.scale)

    def _reboot(self, name: str, host: Host) -> RequeueAfter:
        durations = self._context.scenario.durations
        if host.rebooting:
            left = self._left(host, "delay", durations.reboot_delay)
            if left > 0:
                return left
            self._context.hosts.power_off(name)
        if host.up or name in self._context.scenario.node_faults.lost_on_reboot:
            return None
        falls_back = self._context.freezer.hangs(boot_of(name))
        left = self._left(host, "reboot", durations.reboot + (_FALLBACK if falls_back else 0.0))
        if not self._context.hosts.have_quorum:
            left = max(left, self._timers.left(name, ("outage", host.boots), _OUTAGE))
        if left > 0:
            return left
        if self._context.hosts.have_quorum and not self._is_not_ready(name):
            # A scaled reboot still lasts until NotReady is written, so that every client can observe it.
            return 0.01
        self._timers.forget(name)
        self._context.hosts.power_on(name, keep_os=self._context.freezer.hangs(boot_of(name)))
        return None

    def _left(self, host: Host, what: str, duration: float) -> float:
        return self._timers.left(host.name, (what, host.boots), self._context.seconds(duration))

    def _is_not_ready(self, name: str) -> bool:
        node = self._cache.store.get(name)
        return node is None or not objects.is_condition_true(node, "Ready")

    async def _update_status(self, node: Object, host: Host, *, posts: bool) -> None:
        name = objects.name(node)
        difference = merge_diff(objects.status(node), self._status(node, host, posts=posts))
        try:
            if difference:
                client = self._client if posts else self._lifecycle
                patch = MergePatch({"status": difference}).at(objects.resource_version(node))
                node = await client.patch(NODES, name, patch, subresource="status")
                await self._seen(node)
            taints = _taints(node, posts=posts)
            if taints != (objects.spec(node).get("taints") or []):
                patch = MergePatch({"spec": {"taints": taints}}).at(objects.resource_version(node))
                await self._seen(await self._lifecycle.patch(NODES, name, patch))
        except NotFound:
            return

    async def _seen(self, node: Object) -> None:
        """Wait for the cache, unless the API server is down until this host boots."""
        await self._cache.seen(node, unless=lambda: not self._context.hosts.have_quorum)

    def _status(self, node: Object, host: Host, *, posts: bool) -> Object:
        old, at = objects.status(node), self._context.timestamp()
        conditions = old.get("conditions") or []
        if not posts:
            unknown = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
            return {**old, "conditions": _with_ready(conditions, unknown, at)}
        up = ("True", "KubeletReady", "kubelet is posting ready status")
        info = {**(old.get("nodeInfo") or {}), "osImage": host.os_image, "kubeletVersion": host.kubelet}
        info |= {"bootID": host.boot_id, "machineID": host.machine_id, "kubeProxyVersion": host.kubelet}
        return {**old, "nodeInfo": info, "conditions": _with_ready(conditions, up, at)}


def _with_ready(conditions: list[Object], ready: tuple[str, str, str], at: str) -> list[Object]:
    status, reason, message = ready
    return with_condition(conditions, "Ready", status, reason=reason, message=message, at=at, time=TRANSITION)


def _taints(node: Object, *, posts: bool) -> list[Object]:
    taints = list(objects.spec(node).get("taints") or ())
    kept = [taint for taint in taints if taint.get("key") not in _TAINT_KEYS]
    if objects.spec(node).get("unschedulable"):
        kept.append({"key": UNSCHEDULABLE, "effect": NO_SCHEDULE})
    if not posts:
        kept += [{"key": UNREACHABLE, "effect": effect} for effect in (NO_SCHEDULE, NO_EXECUTE)]
    same = sorted(map(str, kept)) == sorted(map(str, taints))
    return taints if same else kept
