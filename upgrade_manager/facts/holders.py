"""Holders of the cluster: work of others during which no upgrade may begin, and no node may be drained.

The manager asks for them (pipeline/holders.py has the table), and the webhook denies plans while it sees one
(webhook/checks). Each function returns the holder that an object is, or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.in_progress import UPGRADE_PLANS, blocks_next_plan, is_in_progress, wait_command
from upgrade_manager.api.keys import FLEET_LOCAL, HARVESTER_SYSTEM, KIND
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts import addons, removal
from upgrade_manager.facts.drain_hooks import has_hooks
from upgrade_manager.facts.job_state import JobState, may_write_node
from upgrade_manager.facts.machine_plan import is_running
from upgrade_manager.facts.rancher_cluster import reported
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import ADDONS, JOBS, MACHINES, PROVISIONING_CLUSTERS, UPGRADES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_STATE, _CLEANUP = "harvesterhci.io/upgradeState", "harvesterhci.io/upgradeCleanup"
#: Final values of an Upgrade's state label, which are not phases of Pods.
_ENDED = ("Succeeded", "Failed")
#: The states of an Addon that Harvester is changing.
_OPERATING = frozenset({"AddonEnabling", "AddonDisabling", "AddonUpdating"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An object that holds the cluster."""

    kind: str
    #: Empty for cluster-scoped objects.
    namespace: str = ""
    name: str
    #: A predicate whose subject is the object.
    why: str
    ways_out: tuple[Remedy, ...]

    @property
    def named(self) -> str:
        """The object in messages."""
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"

    def __str__(self) -> str:
        """Return a sentence about it, without its full stop."""
        return f"{self.named} {self.why}"


def upgrade(obj: Object) -> Holder | None:
    """Return an Upgrade of Harvester's own that runs, or cleans up, by the rule of Harvester's webhook."""
    labels = objects.strings(obj, "metadata", "labels")
    state, name = labels.get(_STATE, ""), objects.name(obj)
    if state not in _ENDED:
        why = f"is in progress ({f'state {state}' if state else 'no state yet'})"
    elif labels.get(_CLEANUP) == "Pending":
        why = "is still cleaning up"
    else:
        return None
    show = f"kubectl describe {UPGRADES.name} -n {HARVESTER_SYSTEM} {name}"
    wait = Remedy("Wait until it has ended", command=show)
    return Holder(kind=UPGRADES.kind, namespace=HARVESTER_SYSTEM, name=name, why=why, ways_out=(wait,))


def plan(obj: Object) -> Holder | None:
    """Return an UpgradePlan that runs or cleans up, or has ended and must give settings back."""
    status, name = objects.mapping(obj, "status"), objects.name(obj)
    if is_in_progress(status):
        wait = Remedy("Wait until it has ended", command=wait_command(name))
        return Holder(kind=KIND, name=name, why="is in progress", ways_out=(wait,))
    if not blocks_next_plan(status):
        return None
    show = Remedy("Its conditions show what is refused", command=f"kubectl describe {UPGRADE_PLANS} {name}")
    why = "has ended, and gives the settings back that it changed"
    return Holder(kind=KIND, name=name, why=why, ways_out=(show,))


def job(obj: Object) -> Holder | None:
    """Return a Job of an upgrade that has not finished, except one that starts VMs; its plan has ended."""
    if not may_write_node(obj):
        return None
    name = objects.name(obj)
    delete = f"kubectl delete job -n {HARVESTER_SYSTEM} {name}"
    end = Remedy("Wait until it has ended. If it hangs, delete it", command=delete)
    why = f"of an UpgradePlan that has ended still runs ({JobState.of(obj).describe()})"
    return Holder(kind=JOBS.kind, namespace=HARVESTER_SYSTEM, name=name, why=why, ways_out=(end,))


def machine(obj: Object) -> Holder | None:
    """Return a Machine of Cluster API that is not Running: its node joins or leaves."""
    if is_running(obj):
        return None
    name, phase = objects.name(obj), objects.text(obj, "status", "phase")
    deleted = removal.deletion(obj)
    if deleted:
        why, ways_out = f"is not Running: {deleted}", removal.ways_out(MACHINES, obj)
    else:
        why = f"is in phase {phase}, not Running" if phase else "is not Running: it has no phase yet"
        show = f"kubectl describe {MACHINES.name} -n {FLEET_LOCAL} {name}"
        ways_out = (Remedy("Wait until it is Running, or repair it", command=show),)
    return Holder(kind=MACHINES.kind, namespace=FLEET_LOCAL, name=name, why=why, ways_out=ways_out)


def addon(obj: Object) -> Holder | None:
    """Return an Addon that Harvester enables, disables or updates; an operation that has failed holds nothing."""
    state = objects.text(obj, "status", "status")
    if state not in _OPERATING or objects.is_condition_true(obj, "OperationFailed"):
        return None
    namespace, name = objects.text(obj, "metadata", "namespace"), objects.name(obj)
    show = f"kubectl describe {ADDONS.name} -n {namespace} {name}"
    return Holder(
        kind=ADDONS.kind,
        namespace=namespace,
        name=name,
        why=f"is in state {addons.state(obj)}",
        ways_out=(Remedy("Wait until it has settled, or repair it", command=show),),
    )


def rancher(obj: Object) -> Holder | None:
    """Return Rancher's cluster while Rancher changes its nodes, unless it waits at the drain hooks of an upgrade.

    A frozen upgrade of an earlier plan is not a holder, because the next plan is what ends it. A Cluster without the
    condition has never been changed.
    """
    updated, strategy = objects.condition(obj, "Updated"), objects.mapping(obj, "spec", "rkeConfig", "upgradeStrategy")
    if updated.get("status", "True") == "True" or has_hooks(strategy):
        return None
    name = objects.name(obj)
    show = f"kubectl describe {PROVISIONING_CLUSTERS.name} -n {FLEET_LOCAL} {name}"
    return Holder(
        kind=PROVISIONING_CLUSTERS.kind,
        namespace=FLEET_LOCAL,
        name=name,
        why=f"is being updated by Rancher: {reported(obj) or 'condition Updated is not True'}",
        ways_out=(Remedy("Wait until it is updated, or repair it", command=show),),
    )
