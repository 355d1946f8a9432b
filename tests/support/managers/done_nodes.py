"""A check that nothing reaches a node that is done while an attempt upgrades others: no write, and no work for it.

Managers' requests are checked on both API servers, and what others do, such as Rancher's drain, on the embedded one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from hack.apiserver.call import call_of
from hack.apiserver.history import Entry
from hack.apiserver.selectors import selects
from hack.cluster.embedded_backend import EmbeddedBackend
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.api.keys import FLEET_LOCAL, LABEL_HOSTNAME, SUC_NODE_LABEL_PREFIX, Component
from upgrade_manager.api.node_states import upgraded_names
from upgrade_manager.facts import machine_plan
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES, NODES, SECRETS
from upgrade_manager.kube.transport import Request

#: The Plans that select every node in each attempt.
PERMITTED: Mapping[str, str] = {
    Component.SKIP_ON: "a failure releases the chart rke2-multus on all nodes, so that each attempt holds it again: "
    "RKE2 on any of them would change the chart before the last node runs the release",
    Component.SKIP_OFF: "it ends that hold",
    Component.IMAGE_CLEANUP: "the end removes the old release's images from all nodes",
}
#: The changes of a node and its machine plan that come at any time: heartbeats, probes, and reports of the agent.
_AT_ANY_TIME = (
    "status.",
    "data.",
    "metadata.annotations.rke.cattle.io/plan-probes-passed",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)
#: Of these: what only a reboot and an upgrade change.
_NEVER = {"status.nodeInfo.bootID", "status.nodeInfo.kubeletVersion", "status.nodeInfo.osImage"}


@asynccontextmanager
async def spared(stage: UpgradeRun) -> AsyncIterator[None]:
    """Check that nothing reaches the nodes of the failed plan that are done, until the context ends."""
    done = upgraded_names(objects.status(await stage.plan()))
    nodes = {name: await stage.client.get(NODES, name) for name in sorted(done)}
    reached = _Reached(nodes, await _secrets(stage, done))
    first = len(stage.ledger.writes)
    with reached.observing(stage):
        yield
    for request in stage.ledger.writes[first:]:
        reached.requested(request)
    assert not reached.lines, "\n".join(reached.lines)


async def _secrets(stage: UpgradeRun, nodes: set[str]) -> dict[str, str]:
    """Return the nodes of the machine-plan Secrets, by the names of these."""
    machines = {objects.name(one): one for one in (await stage.client.list(MACHINES, namespace=FLEET_LOCAL)).items}
    secrets = (await stage.client.list(SECRETS, namespace=FLEET_LOCAL)).items
    owners = {objects.name(one): machine_plan.node_of(one, machines) for one in secrets}
    return {name: node for name, node in owners.items() if node in nodes}


class _Reached:
    """One line for each request and change that reaches a node."""

    def __init__(self, nodes: Mapping[str, Object], secrets: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._nodes = nodes
        self._secrets = secrets

    @contextmanager
    def observing(self, stage: UpgradeRun) -> Iterator[None]:
        """Record everybody's changes, where the API server is embedded."""
        backend = stage.simulation.backend
        observers = backend.server.storage.observers if isinstance(backend, EmbeddedBackend) else []
        observers.append(self._changed)
        yield
        observers.remove(self._changed)

    def requested(self, request: Request) -> None:
        """Record a manager's write, also one that changes nothing."""
        call = call_of(request)
        body = json.loads(request.body) if request.body else {}
        text = f"{request.method} {request.path} {request.body.decode()}"
        if call.name in {"nodes": self._nodes, "secrets": self._secrets}.get(call.resource, {}):
            self.lines += [text] * (not _removes_labels(body))
        elif call.verb == "create" and call.resource == "jobs.batch":
            self.lines += [text] * bool(self._nodes_of(body))
        elif call.verb == "create" and call.resource == "plans.upgrade.cattle.io":
            self.lines += [text] * (self._is_selected(body) and not _is_permitted(objects.name(body)))

    def _is_selected(self, plan: Object) -> bool:
        selector = dict(objects.mapping(plan, "spec", "nodeSelector"))
        return any(selects(selector, objects.labels(node)) for node in self._nodes.values())

    def _nodes_of(self, job: Object) -> set[str]:
        spec = objects.mapping(job, "spec", "template", "spec")
        named = {spec.get("nodeName"), objects.mapping(spec, "nodeSelector").get(LABEL_HOSTNAME)}
        return {node for node in self._nodes if node in named}

    def _changed(self, collection: str, entry: Entry) -> None:
        """Record the change of an object."""
        now, before = entry.stored.object, entry.previous.object if entry.previous else {}
        name = objects.name(now)
        if (collection == "nodes" and name in self._nodes) or (collection == "secrets" and name in self._secrets):
            node = self._secrets.get(name, name)
            self.lines += [f"{node}: {now['kind']} {name}: {path} changed" for path in _changes(before, now)]
        if collection == "jobs.batch" and objects.spec(before) != objects.spec(now) and not _is_permitted(name):
            self.lines += [f"{node}: Job {name} {entry.kind}" for node in self._nodes_of(now)]


def _removes_labels(patch: Object) -> bool:
    """Return True for a patch that removes labels of Plans, as the end does it."""
    labels = objects.mapping(patch, "metadata", "labels")
    removed = {key for key, value in labels.items() if value is None and key.startswith(SUC_NODE_LABEL_PREFIX)}
    return removed == labels.keys() and _paths(patch) <= {f"metadata.labels.{key}" for key in labels} | _PINS


#: Of the object that a patch may change.
_PINS = {"metadata.uid", "metadata.resourceVersion"}


def _is_permitted(name: str) -> bool:
    """Return True for a Plan that may select a node that is done, its Job, and its label."""
    return any(component in name for component in PERMITTED)


def _changes(before: Object, now: Object) -> list[str]:
    old, new = _flat(before), _flat(now)
    changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    return sorted(path for path in changed if path in _NEVER or not _is_usual(path))


def _is_usual(path: str) -> bool:
    is_label = path.startswith(f"metadata.labels.{SUC_NODE_LABEL_PREFIX}")
    return path.startswith(_AT_ANY_TIME) or (is_label and _is_permitted(path))


def _paths(value: Object) -> set[str]:
    return set(_flat(value))


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Map the paths of an object to its values that are no objects."""
    if not isinstance(value, dict) or not value:
        return {path: value}
    inner = [_flat(one, f"{path}.{key}" if path else key) for key, one in value.items()]
    return {deep: one for found in inner for deep, one in found.items()}
