"""KubeVirt's workload update methods, as Harvester's chart has them, and the object that Fleet deploys from it.

pipeline/settings/update_methods.py empties the list for the upgrade, and gives it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.facts.field_managers import last_manager
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: Harvester's ManagedChart.
CHART = "harvester"
#: In the spec of KubeVirt.
PATH = ("workloadUpdateStrategy", "workloadUpdateMethods")
#: The list of an installation that Harvester's installer has made.
INSTALLED = ("LiveMigrate",)
#: In the spec of the chart.
VALUE_PATH = ("values", "kubevirt", "spec", *PATH)
#: In `spec.diff.comparePatches` of the chart: Fleet leaves a changed list in KubeVirt alone.
POINTER = "/spec/" + "/".join(PATH)
_COMPARED = ("kubevirt.io/v1", "KubeVirt", "kubevirt")
#: Prefixes of the field managers with which Fleet deploys charts.
_FLEET = ("fleet", "helm")


def of_chart(chart: Object) -> Any:
    """Return the list in the chart's values; None without a list."""
    return objects.value(chart, "spec", *VALUE_PATH)


def of_kubevirt(kubevirt: Object) -> Any:
    """Return the list of KubeVirt; None without a list."""
    return objects.value(kubevirt, "spec", *PATH)


def with_methods(values: Object, methods: Any) -> Object:
    """Return the chart's values with this list; None removes the list, and mappings that become empty."""
    return _with(values, VALUE_PATH[1:], methods)


def _with(values: Object, path: tuple[str, ...], methods: Any) -> Object:
    key, rest = path[0], path[1:]
    inner = values.get(key)
    new = _with(inner if isinstance(inner, dict) else {}, rest, methods) if rest else methods
    others = {name: value for name, value in values.items() if name != key}
    return others if new is None or new == {} else {**others, key: new}


def compared(chart: Object) -> list[Any]:
    """Return the entries with which Fleet compares what it has deployed."""
    return objects.items(chart, "spec", "diff", "comparePatches")


def with_pointer(entries: list[Any]) -> list[Any]:
    """Return the entries with the exception for the list, as Harvester's own upgrade adds it."""
    if any(POINTER in objects.items(one, "jsonPointers") for one in entries if _is_of_kubevirt(one)):
        return entries
    api_version, kind, name = _COMPARED
    return [*entries, {"apiVersion": api_version, "kind": kind, "name": name, "jsonPointers": [POINTER]}]


def without_pointer(entries: list[Any]) -> list[Any]:
    """Return the entries without the exception for the list; an entry that has nothing else goes."""
    found: list[Any] = []
    for one in entries:
        pointers = objects.items(one, "jsonPointers") if _is_of_kubevirt(one) else []
        if POINTER not in pointers:
            found.append(one)
        elif len(pointers) > 1:
            found.append({**one, "jsonPointers": [pointer for pointer in pointers if pointer != POINTER]})
    return found


def other_writer(kubevirt: Object) -> str:
    """Return the client, besides Fleet, that last wrote KubeVirt's list; empty if Fleet did, or no record shows it.

    Fleet refuses to deploy a list that another client has written.
    """
    manager = last_manager(kubevirt, "spec", *PATH)
    return "" if manager.startswith(_FLEET) else manager


def _is_of_kubevirt(entry: Any) -> bool:
    return tuple(objects.text(entry, key) for key in ("apiVersion", "kind", "name")) == _COMPARED
