"""The order in which nodes are drained, upgraded and rebooted, observed at the storage of the embedded API server.

A node's sequence: its pre-drain Job completes, its pre-drain hook is acknowledged, Rancher drains it and upgrades its
Kubernetes, its post-drain Job reboots it, its post-drain hook is acknowledged. One node at a time, and none without a
plan, except what a plan had begun before its end: an acknowledged drain, and a reboot by a Job that was running.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from hack.actors import machine_plan as plans
from hack.apiserver.history import Entry
from hack.apiserver.storage import Storage
from hack.virtual_time import virtual_now
from upgrade_manager.api.keys import (
    ANNOTATION_ACKNOWLEDGED,
    ANNOTATION_POST_HOOK,
    ANNOTATION_PRE_HOOK,
    LABEL_JOB_TYPE,
    LABEL_REPEATED,
    RKE_MACHINE_NAME,
    JobType,
)
from upgrade_manager.api.phases import TERMINAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.resources.owner import plan_uid

_MACHINES = "machines.cluster.x-k8s.io"
_INSTANCES = "virtualmachineinstances.kubevirt.io"
_REBOOTS = {JobType.POST_DRAIN, JobType.SINGLE_NODE_UPGRADE}
_SEQUENCE = {JobType.PRE_DRAIN, *_REBOOTS}
_ENDS = ("Complete", "Failed")
#: The annotation of a Job that a user suspended, in the write that resumes it.
RESUMED_BY_USER = "example.com/resumed"


@dataclass(slots=True)
class _Node:
    """The course of one node."""

    #: The plans whose pre-drain Job has completed since the last drain.
    prepared: set[str] = field(default_factory=set)
    #: The plan that acknowledged the drain that is in progress.
    acknowledged: str = ""
    #: The plan that has begun with the node and has not finished.
    busy: str = ""
    #: The uids of Jobs that ran while their plan did and may still reboot the node once.
    reboots: set[str] = field(default_factory=set)
    #: True if a Job upgrades a single node's Kubernetes.
    single: bool = False
    #: True once the node is upgraded, so that a plan that ends gives Rancher's strategy back.
    done: bool = False


#: The phases in which nodes are upgraded, or drained again by Rancher.
_UPGRADING = frozenset({"NodeUpgrading", "NodeUpgraded", "CleaningUp", "CleanedUp"})
#: The phases in which Rancher's strategy is given back, or is being so.
_GIVEN_BACK = frozenset({"NodeUpgraded", "CleaningUp", "CleanedUp"})


class NodeOrder:
    """Records everything that happens to a node out of turn.

    `loose` says that others change Rancher's strategy, after which Rancher upgrades nodes by itself; `restarted` are
    nodes that others restart; `by_hand` says that others answer hooks; `set_back` says that others set an older
    Kubernetes.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        release_os: str,
        loose: bool,
        restarted: Collection[str],
        by_hand: bool = False,
        set_back: bool = False,
    ) -> None:
        self._storage = storage
        self._release_os = release_os
        self._loose = loose
        self._restarted = restarted
        self._by_hand = by_hand
        self._set_back = set_back
        self._nodes: defaultdict[str, _Node] = defaultdict(_Node)
        #: The uid of the plan that runs; empty without one.
        self._running = ""
        self._phase = ""
        #: One sentence for each violation.
        self.violations: list[str] = []
        self._handlers = {
            "upgradeplans.management.harvesterhci.io": self._plan,
            "jobs.batch": self._job,
            "secrets": self._secret,
            "nodes": self._node,
        }
        storage.observers.append(self._changed)

    def _changed(self, collection: str, entry: Entry) -> None:
        handler = self._handlers.get(collection)
        if handler is not None:
            handler(entry, entry.previous.object if entry.previous else {}, entry.stored.object)

    def _plan(self, entry: Entry, _: Object, plan: Object) -> None:
        phase, uid = objects.status(plan).get("currentPhase") or "", objects.uid(plan)
        if entry.kind == "DELETED" or phase in TERMINAL:
            self._running = "" if self._running == uid else self._running
        elif phase:
            self._running, self._phase = uid, phase

    def _job(self, entry: Entry, before: Object, job: Object) -> None:
        kind = objects.labels(job).get(LABEL_JOB_TYPE)
        if kind not in _SEQUENCE or entry.kind == "DELETED":
            return
        plan, name = plan_uid(job), objects.spec(job)["template"]["spec"]["nodeName"]
        node = self._nodes[name]
        is_resumed = not objects.spec(job).get("suspend") and (not before or objects.spec(before).get("suspend"))
        # Kubernetes creates no Pods for a finished Job (pkg/controller/job/job_controller.go, syncJob).
        if is_resumed and not any(objects.is_condition_true(job, end) for end in _ENDS):
            self._started(job, name, by_user=_is_marked(job) and not _is_marked(before))
        if objects.status(job).get("active") and kind in _REBOOTS and plan == self._running:
            node.reboots.add(objects.uid(job))
            node.single = node.single or kind == JobType.SINGLE_NODE_UPGRADE
        if kind == JobType.PRE_DRAIN and objects.is_condition_true(job, "Complete"):
            node.prepared.add(plan)

    def _started(self, job: Object, name: str, *, by_user: bool) -> None:
        """Check the start of a node's Job."""
        kind, node = objects.labels(job)[LABEL_JOB_TYPE], self._nodes[name]
        # A user who has suspended a Job that outlives its plan may let the Job go on; the manager must not.
        if by_user and not self._running:
            return
        if plan_uid(job) != self._running or self._phase not in _UPGRADING:
            self._broken(f"Job {objects.name(job)} starts while its plan does not upgrade nodes")
        if kind == JobType.POST_DRAIN and plans.POST_DRAIN not in self._annotations(name):
            self._broken(f"Job {objects.name(job)} starts before Rancher has drained {name}")
        if kind == JobType.POST_DRAIN and not (self._by_hand or self._loose) and (machines := self._machines(name)):
            self._broken(f"Job {objects.name(job)} will reboot {name} with the VMs {machines}")
        if kind == JobType.PRE_DRAIN and LABEL_REPEATED not in objects.labels(job):
            # A repeated drain may precede that of a node to which Rancher comes later.
            busy = [one for one, other in self._nodes.items() if one != name and other.busy == self._running != ""]
            if busy:
                self._broken(f"Job {objects.name(job)} starts while {busy} are upgraded")
        node.busy = self._running

    def _secret(self, _: Entry, before: Object, secret: Object) -> None:
        if objects.metadata(secret).get("namespace") != "fleet-local":
            return
        old, new = (objects.annotations_of(one) if one else {} for one in (before, secret))
        name = self._node_of(secret)
        if _answers(new, plans.PRE_DRAIN, ANNOTATION_PRE_HOOK) and not _answers(
            old, plans.PRE_DRAIN, ANNOTATION_PRE_HOOK
        ):
            # The manager counts the requests that it acknowledges, in the same write.
            is_counted = old.get(ANNOTATION_ACKNOWLEDGED) != new.get(ANNOTATION_ACKNOWLEDGED)
            self._pre_drained(name, by_user=self._by_hand and not is_counted)
        if _answers(new, plans.POST_DRAIN, ANNOTATION_POST_HOOK) and not _answers(
            old, plans.POST_DRAIN, ANNOTATION_POST_HOOK
        ):
            self._post_drained(name)
        if plans.DRAIN_DONE in new and plans.DRAIN_DONE not in old:
            self._drained(name, new)
        if plans.DRAIN_OPTIONS in old and plans.DRAIN_OPTIONS not in new:
            self._nodes[name].prepared.clear()
            self._nodes[name].acknowledged = ""

    def _pre_drained(self, name: str, *, by_user: bool) -> None:
        if not self._running and not by_user:
            self._broken(f"the pre-drain hook of {name} is acknowledged without a plan")
        elif self._running not in self._nodes[name].prepared and not by_user:
            self._broken(f"the pre-drain hook of {name} is acknowledged before its Job is complete")
        self._nodes[name].acknowledged = self._running or "none"

    def _post_drained(self, name: str) -> None:
        if not self._running and not self._by_hand:
            self._broken(f"the post-drain hook of {name} is acknowledged without a plan")
        node = self._storage.get("nodes", ("", name))
        runs = objects.status(node.object)["nodeInfo"]["osImage"] if node else "nothing"
        if node and runs != self._release_os and not self._by_hand:
            self._broken(f"the post-drain hook of {name} is acknowledged while it runs {runs}")
        self._nodes[name].busy = ""
        self._nodes[name].done = True

    def _drained(self, name: str, annotations: dict[str, str]) -> None:
        if ANNOTATION_PRE_HOOK in plans.hooks(annotations[plans.DRAIN_OPTIONS], "preDrainHooks"):
            if not self._nodes[name].acknowledged:
                self._broken(f"{name} is drained before the manager has acknowledged it")
        elif self._running and self._phase == "NodeUpgrading" and not self._loose:
            self._broken(f"{name} is drained without the manager's hooks")

    def _node(self, entry: Entry, before: Object, now: Object) -> None:
        name = objects.name(now)
        if entry.kind != "MODIFIED":
            return
        old, new = (objects.status(one).get("nodeInfo") or {} for one in (before, now))
        node = self._nodes[name]
        # After the node upgrade Rancher has its own strategy again, by which it follows a user's Kubernetes undrained.
        is_users = self._set_back and node.done and self._phase in _GIVEN_BACK
        is_its_turn = node.acknowledged or node.single or self._loose or is_users
        if old.get("kubeletVersion") != new.get("kubeletVersion") and not is_its_turn:
            self._broken(f"{name} is upgraded to {new['kubeletVersion']} without a drain")
        if old.get("bootID") == new.get("bootID") or name in self._restarted:
            return
        if node.reboots:
            node.reboots.clear()
        else:
            self._broken(f"{name} reboots without a Job")

    def _annotations(self, node: str) -> dict[str, str]:
        found = [one for one in self._storage.objects("secrets", "fleet-local") if self._node_of(one) == node]
        return objects.annotations_of(found[0]) if found else {}

    def _machines(self, node: str) -> list[str]:
        """Return the VMs that run on the node."""
        instances = self._storage.objects(_INSTANCES, "default")
        return sorted(objects.name(one) for one in instances if objects.status(one).get("nodeName") == node)

    def _node_of(self, secret: Object) -> str:
        machine = self._storage.get(_MACHINES, ("fleet-local", objects.labels(secret).get(RKE_MACHINE_NAME) or ""))
        reference = objects.status(machine.object).get("nodeRef") if machine else None
        return str((reference or {}).get("name") or "")

    def _broken(self, violation: str) -> None:
        self.violations.append(f"{virtual_now():%H:%M:%S} {violation}")


def _is_marked(job: Object) -> bool:
    return bool(job) and RESUMED_BY_USER in objects.annotations_of(job)


def _answers(annotations: dict[str, str], hook: str, acknowledgement: str) -> bool:
    return hook in annotations and annotations.get(acknowledgement) == annotations[hook]
