"""Timelines of Rancher's planner and drain controller: those that were recorded, and one of a simulated run.

test_rancher_timelines.py compares them per node: what Rancher and its counterparts do to the machine-plan Secret, and
the cordons. The recorder watched Secrets and Nodes apart, so their order against each other is not compared. Nor is
the annotation plan-probes-passed, which Rancher's planner at times overwrites with a copy that it has read before.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hack.actors import machine_plan as plans
from hack.cluster.seed_nodes import machine_name
from upgrade_manager.api.keys import RKE_MACHINE_NAME
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.history import Entry
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

FOLDER = Path(__file__).parent / "recordings" / "rancher"
_HOOKS = {f"harvesterhci.io/{hook}": f"hv/{hook}" for hook in ("pre-hook", "post-hook")}
_PLAN, _PASSED, _ERROR = "data plan", "plan-probes-passed", "drain-error"
_IGNORED = {"unschedulable", _PASSED}
#: By node: events of the Secret, and the values of spec.unschedulable.
Sequences: TypeAlias = dict[str, tuple[list[str], list[bool]]]


def recording(name: str) -> dict[str, Any]:
    """Load a recording."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def recorded(name: str) -> Sequences:
    """Return what Rancher did."""
    secrets, cordons = defaultdict[str, list[str]](list), defaultdict[str, list[bool]](list)
    for line in recording(name)["timeline"]:
        kind, _, node = line["object"].partition("/")
        if line["by"] == "state" or kind not in {"secret", "node"}:
            continue
        change = line["change"]
        secrets[node] += sorted(filter(None, (_recorded_event(key, *change[key]) for key in change)))
        if "unschedulable" in change:
            cordons[node].append(bool(change["unschedulable"][1]))
    return {node: (secrets[node], cordons[node]) for node in secrets.keys() | cordons.keys() if secrets[node]}


def _recorded_event(key: str, old: Any, new: Any) -> str:
    if key in _IGNORED:
        return ""
    if key == _PLAN:
        before, after = (dict(part.split("=") for part in str(text).split()[2:]) for text in (old, new))
        return _rewrite(restarts=before["R"] != after["R"], drains=before["D"] != after["D"])
    return _event(key, new)


def _rewrite(*, restarts: bool, drains: bool) -> str:
    return f"plan{' restarts' if restarts else ''}{' drains' if drains else ''}"


def _event(key: str, value: Any) -> str:
    return f"{key}={'an error' if value and key == _ERROR else value or '-'}"


class Timeline:
    """The actions of the simulated Rancher; it observes the API server's storage."""

    def __init__(self, scenario: Scenario, texts: dict[str, str]) -> None:
        self._nodes = {machine_name(name): name for name in scenario.nodes.names}
        self._names = {text: name for name, text in texts.items()}
        self.secrets = defaultdict[str, list[str]](list)
        self.cordons = defaultdict[str, list[bool]](list)

    @property
    def sequences(self) -> Sequences:
        """Return what was observed."""
        return {node: (events, self.cordons[node]) for node, events in self.secrets.items() if events}

    def observe(self, _: str, entry: Entry) -> None:
        """Take over a change of a Secret or Node."""
        obj = entry.stored.object
        before = entry.previous.object if entry.previous else obj
        node = self._nodes.get(objects.labels(obj).get(RKE_MACHINE_NAME) or "")
        if obj["kind"] == "Secret" and node:
            self.secrets[node] += sorted(self._events(before, obj))
        elif obj["kind"] == "Node":
            was, is_ = (bool(objects.spec(one).get("unschedulable")) for one in (before, obj))
            self.cordons[objects.name(obj)] += [is_] if was != is_ else []

    def _events(self, before: Object, after: Object) -> Iterator[str]:
        old, new = objects.annotations_of(before), objects.annotations_of(after)
        for key in old.keys() | new.keys():
            if (old.get(key) or None) != (new.get(key) or None):
                short = _HOOKS.get(key) or key.partition("/")[2]
                text = new.get(key) or None
                if short not in _IGNORED:
                    yield _event(short, self._names.get(text or "", text))
        if plans.data(before, "plan") != plans.data(after, "plan"):
            yield _rewrite(
                restarts=_stamp(before, "RESTART_STAMP") != _stamp(after, "RESTART_STAMP"),
                drains=_stamp(before, "DRAIN_HASH") != _stamp(after, "DRAIN_HASH"),
            )


def _stamp(secret: Object, name: str) -> str:
    (install,) = json.loads(plans.data(secret, "plan"))["instructions"]
    return next(str(entry) for entry in install["env"] if entry.startswith(name))
