"""Return True if a plan is right when it records that the nodes are upgraded, or that it has succeeded."""

from __future__ import annotations

from collections.abc import Iterator

from hack.apiserver.history import Entry
from hack.apiserver.storage import Storage
from hack.scenario import Scenario
from hack.virtual_time import virtual_now
from upgrade_manager.api.ledger import recorded_entries
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.facts.machine_plan import is_pending
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

_UPGRADED = "NodeUpgraded"


class SuccessTruth:
    """Checks the cluster at the moment in which a plan records either.

    `lateness` is how many seconds the manager's caches may be late; `steady` says that the nodes stay as they are
    after their upgrade, so that they are checked at the end, too.
    """

    def __init__(self, storage: Storage, scenario: Scenario, *, lateness: float, steady: bool) -> None:
        self._scenario = scenario
        self._lateness = lateness
        self._steady = steady
        #: Since when a node, or a hook, is not as a plan that succeeded promises.
        self._since: dict[str, float] = {}
        #: One sentence for each lie.
        self.violations: list[str] = []
        self._handlers = {
            "upgradeplans.management.harvesterhci.io": self._plan,
            "secrets": self._secret,
            "nodes": self._node,
        }
        for name in self._handlers.keys() - {"upgradeplans.management.harvesterhci.io"}:
            for obj in storage.objects(name):
                self._observe(name, obj, 0.0)
        storage.observers.append(self._changed)

    def _changed(self, collection: str, entry: Entry) -> None:
        handler = self._handlers.get(collection)
        if handler is not None:
            handler(entry)

    def _node(self, entry: Entry) -> None:
        if entry.kind == "DELETED":
            self._since[f"Node {objects.name(entry.stored.object)} does not exist"] = entry.time
        else:
            self._since.pop(f"Node {objects.name(entry.stored.object)} does not exist", None)
            self._observe("nodes", entry.stored.object, entry.time)

    def _secret(self, entry: Entry) -> None:
        if entry.kind != "DELETED":
            self._observe("secrets", entry.stored.object, entry.time)

    def _observe(self, collection: str, obj: Object, time: float) -> None:
        for problem, is_there in (self._problems_of_node if collection == "nodes" else _problems_of_secret)(obj):
            if is_there:
                self._since.setdefault(problem, time)
            else:
                self._since.pop(problem, None)

    def _problems_of_node(self, node: Object) -> Iterator[tuple[str, bool]]:
        name, info, release = objects.name(node), objects.status(node).get("nodeInfo") or {}, self._scenario.release
        yield f"Node {name} runs another OS", info.get("osImage") != release.os_image
        yield f"Node {name} runs another Kubernetes", info.get("kubeletVersion") != release.kubernetes
        yield f"Node {name} is not Ready", not objects.is_condition_true(node, "Ready")
        yield f"Node {name} is cordoned", bool(objects.spec(node).get("unschedulable"))

    def _plan(self, entry: Entry) -> None:
        plan, before = entry.stored.object, entry.previous.object if entry.previous else {"status": {}}
        status, phase = objects.status(plan), objects.status(plan).get("currentPhase")
        if phase == objects.status(before).get("currentPhase") or phase not in {_UPGRADED, SUCCEEDED}:
            return
        if phase == _UPGRADED or self._steady:
            late = [problem for problem, since in self._since.items() if entry.time - since > self._lateness]
            self._lies(plan, phase, late)
        recorded = set(status.get("nodeUpgradeStatuses") or {})
        self._lies(plan, phase, sorted(f"Node {name} is not recorded" for name in self._nodes - recorded))
        if phase == SUCCEEDED:
            self._lies(plan, phase, [f"{one['object']} is not settled" for one in recorded_entries(status)])

    @property
    def _nodes(self) -> set[str]:
        return set(self._scenario.nodes.names)

    def _lies(self, plan: Object, phase: str, problems: list[str]) -> None:
        self.violations += [f"{virtual_now():%H:%M:%S} plan {objects.name(plan)} is {phase}: {one}" for one in problems]


def _problems_of_secret(secret: Object) -> Iterator[tuple[str, bool]]:
    if objects.metadata(secret).get("namespace") == "fleet-local":
        yield f"Secret {objects.name(secret)} has a pending hook", is_pending(secret)
