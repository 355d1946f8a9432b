"""The obstacles of a node whose upgrade has not ended, and their remedies.

nodes/ shows them in the plan's progress, pipeline/ adds them to its waits, and blockers/ repeats them as blockers.
vm_obstacles.py has the obstacles of VMs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, RKE_DRAIN_OPTIONS
from upgrade_manager.api.remedy import Change, Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.api.timestamps import clock_of
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence


#: The folder of RKE2's logs on a node, and the command that restarts its kubelet and containerd: one of both runs.
RKE2_AGENT = "/var/lib/rancher/rke2/agent"
RESTART_RKE2 = "systemctl try-restart rke2-server rke2-agent"
#: The plan's list of nodes that wait for the user.
PAUSE_LIST = "spec.nodeUpgradeOption.pauseNodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObstacle:
    """The reason for which a node holds the upgrade up."""

    #: A clause whose subject is the node, as "it".
    why: str
    #: The remedies in their order, each with its command; the first one alone goes into short messages.
    ways_out: tuple[Remedy, ...]


class Reboot(Enum):
    """The reboot of a node into the release."""

    #: None is awaited, and none is known.
    NONE = "none"
    #: The node reports the boot before it, or none that could be compared.
    AWAITED = "awaited"
    #: The node reports another boot.
    DONE = "done"

    @classmethod
    def of(cls, *, is_awaited: bool, is_done: bool) -> Reboot:
        """Return the state; a reboot that is done is no longer awaited."""
        if is_done:
            return cls.DONE
        return cls.AWAITED if is_awaited else cls.NONE


def not_back(
    node: str,
    *,
    os_image: str,
    release_os: str,
    is_ready: bool,
    kubelet: str = "",
    release_kubernetes: str = "",
    since: str = "",
    reboot: Reboot = Reboot.NONE,
) -> NodeObstacle | None:
    """Return why a node is not Ready, or does not run the release; None if neither holds.

    `release_os` is empty for a node that need not run the release yet, and `release_kubernetes` unless the kubelet is
    older. `since` is the time at which the node became Ready or NotReady; empty if unknown.
    """
    runs_os = not release_os or os_image == release_os
    if not is_ready:
        ways_out = not_ready_ways_out(node) if runs_os or not os_image else _boot(node)
        reported = f"; it last reported {os_image}" if os_image else ""
        return NodeObstacle(why=f"{not_ready(since)}{reported}", ways_out=ways_out)
    if not runs_os:
        wanted = f"it runs {os_image or 'an unknown OS'} instead of {release_os}"
        if os_image and reboot is Reboot.DONE:
            wanted = f"it rebooted at {clock_of(since)} into the old system, {os_image} (boot fallback)"
        return NodeObstacle(why=wanted, ways_out=_find_boot(node) if reboot is Reboot.AWAITED else _boot_release(node))
    if release_kubernetes:
        return NodeObstacle(why=outdated(kubelet, release_kubernetes), ways_out=(agent_log(node),))
    return None


def outdated(kubelet: str, release: str) -> str:
    """Return the clause about a node whose Kubernetes is not the release's."""
    return f"it runs Kubernetes {kubelet or 'of an unknown version'} instead of {release}"


def agent_log(node: str) -> Remedy:
    """Return the first remedy for a node to which Rancher's agent does not apply Rancher's plan."""
    log = "journalctl -u rancher-system-agent --no-pager -n 100"
    return Remedy(f"Show the agent's log on node {node}", command=log)


def check_kubelet(node: str) -> Remedy:
    """Return the first remedy for a kubelet that does not start or end the containers of a Pod."""
    return Remedy(f"Check the kubelet on node {node}", command=f"tail -n 50 {RKE2_AGENT}/logs/kubelet.log")


def not_ready(since: str) -> str:
    """Return the clause about a node that is not Ready since that time, which is empty if unknown."""
    return f"it has not been Ready since {clock_of(since)}" if since else "it is not Ready"


def not_ready_ways_out(node: str) -> tuple[Remedy, ...]:
    """Return the remedies for a node that is not Ready, or whose kubelet does not respond."""
    return (
        Remedy(f"Check the console of node {node}, and start it"),
        Remedy("Show its conditions", command=f"kubectl describe node {node}"),
    )


def _boot(node: str) -> tuple[Remedy, ...]:
    """Return the remedies for a node that has not come back from the reboot into the release.

    A new OS without its init ends in the initramfs's shell: only the boot after a reset starts the fallback.
    """
    start, *others = not_ready_ways_out(node)
    return (Remedy(f"{start}; if it does not boot, reset it once, so that its fallback starts"), *others)


def _find_boot(node: str) -> tuple[Remedy, ...]:
    """Return the remedies for a Ready node whose reboot into the release nothing shows."""
    return (
        Remedy(f"Find out on node {node} whether it has rebooted", command="journalctl --list-boots --no-pager"),
        Remedy("The node is drained: if it has not rebooted, reboot it"),
    )


def _boot_release(node: str) -> tuple[Remedy, ...]:
    """Return the remedy for a node that runs another OS: after a failed boot, the boot loader starts the fallback."""
    return (
        Remedy(f"Find out on node {node} why it booted the fallback", command="journalctl -b -1 --no-pager -n 100"),
        Remedy(
            "The node is drained: reboot it, and select the entry that is not the fallback in the menu on its console"
        ),
    )


def paused(*, nodes: int = 1) -> NodeObstacle:
    """Return the obstacle of nodes that are next in the sequence, and that the plan pauses."""
    subject, them = ("it is", "it") if nodes == 1 else ("they are", "them")
    return NodeObstacle(
        why=f"{subject} in {PAUSE_LIST}", ways_out=(Remedy(f"remove {them} from {PAUSE_LIST} to continue"),)
    )


def cordoned(node: str) -> NodeObstacle:
    """Return the obstacle of an upgraded node that nothing but a user uncordons."""
    return NodeObstacle(
        why="it is cordoned after its upgrade", ways_out=(Remedy("Uncordon it", command=f"kubectl uncordon {node}"),)
    )


def foreign_hooks(secret: str, hooks: Sequence[str]) -> str:
    """Return why Rancher waits at a node: other controllers' hooks; drain_hooks.foreign_ways_out has the remedy.

    `secret` is empty for a message that opens with it.
    """
    where = f" (Secret {FLEET_LOCAL}/{secret})" if secret else ""
    return f"other controllers have not acknowledged their hooks: {name_list(hooks)}{where}"


def draining(secret: str) -> str:
    """Return why an upgraded node is not done: Rancher drains it again, and has no hook for the manager on it."""
    return f"Rancher drains it ({RKE_DRAIN_OPTIONS} of Secret {FLEET_LOCAL}/{secret})"


#: The reason for which the upgrade of a node does not go on: a user acknowledged its hooks, or Rancher was restored.
#: The function drain_hooks.drain_again has the remedy.
FORGOTTEN = "Rancher has removed its drain hooks before its upgrade ended"


def cordon_refused(error: str, cordoned: Sequence[str] = ()) -> NodeObstacle:
    """Return why Rancher sets no hook on a node: the API server refuses to cordon the node.

    Harvester's webhook refuses to cordon the last schedulable node (pkg/webhook/resources/node/validator.go).
    `cordoned` are the nodes that are cordoned already.
    """
    return NodeObstacle(why=f"Rancher cannot cordon it ({error})", ways_out=(_uncordon_another(cordoned),))


def last_schedulable(cordoned: Sequence[str]) -> NodeObstacle:
    """Return why a node cannot be drained while users have cordoned all others; `cordon_refused` has the rule."""
    why = f"no other node is schedulable ({name_list(cordoned)}: cordoned), so that Harvester refuses its cordon"
    return NodeObstacle(why=why, ways_out=(_uncordon_another(cordoned),))


def _uncordon_another(cordoned: Sequence[str]) -> Remedy:
    if not cordoned:
        return Remedy("Uncordon another node")
    return uncordon("Uncordon another node", cordoned[:1])


def uncordon(text: str, nodes: Sequence[str]) -> Remedy:
    """Return the remedy that uncordons nodes that a user has cordoned, until the upgrade has ended."""
    names = " ".join(nodes)
    changes = tuple(Change(kind=NODES.kind, name=node, field="spec.unschedulable", original=True) for node in nodes)
    return Remedy(text, command=f"kubectl uncordon {names}", undo=f"kubectl cordon {names}", changes=changes)


#: The state of a node whose pre-drain hook is acknowledged.
AWAITS_DRAIN = "waiting for Rancher to drain {} and upgrade its Kubernetes"


def upgraded_undrained(kubernetes: str) -> str:
    """Return the clause about a node whose Kubernetes Rancher has upgraded while its pre-drain hook is pending."""
    return (
        f"Rancher has upgraded its Kubernetes to {kubernetes} before its drain, because the drain hooks were missing "
        "from spec.rkeConfig.upgradeStrategy meanwhile. Its drain continues"
    )


def undrained(kubernetes: str, *, nodes: int = 1) -> str:
    """Return why nodes that run the release's Kubernetes wait; drain_hooks.drain_again has the remedy."""
    subject, them = ("it runs", "it") if nodes == 1 else ("they run", "them")
    return f"{subject} Kubernetes {kubernetes} already, but Rancher has not drained {them}"
