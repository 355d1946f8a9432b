"""Longhorn's instance managers, the Pods in which engines and replicas of volumes run.

The command cluster_upgrade waits for those of the release: a node that is drained earlier moves its engines to old ones
elsewhere, and Longhorn has to move them again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.toolkit.charts.cluster_resources import DAEMON_SETS, INSTANCE_MANAGERS
from upgrade_manager.toolkit.charts.longhorn_nodes import DISABLES_V2, names_of_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_MANAGER = "longhorn-manager"
#: The argument of Longhorn's manager, with the image in the next one.
_OPTION = "--instance-manager-image"
#: The type of a Pod with engines and replicas.
_TYPE = "aio"
_RUNNING = "running"
#: On a single node Longhorn replaces it only once no volume is attached, as at the reboot.
_LEAST_NODES = 2
_V2_SETTING = "longhorn-v2-data-engine-enabled"
_SHOW = f"Show them: kubectl get {INSTANCE_MANAGERS.name} -n {LONGHORN_SYSTEM} -o wide"


async def instance_managers_missing(context: ToolkitContext) -> str:
    """Return the first node on which not exactly one instance manager of the release runs."""
    nodes = await names_of_nodes(context.client)
    if len(nodes) < _LEAST_NODES:
        return ""
    image = await _image(context)
    if not image:
        return f"DaemonSet {LONGHORN_SYSTEM}/{_MANAGER} names no image by {_OPTION}"
    listed = (await context.client.list(INSTANCE_MANAGERS, namespace=LONGHORN_SYSTEM)).items
    for engine, engine_nodes in (await _data_engines(context, nodes)).items():
        fitting = [one for one in listed if _is_of(one, engine, image)]
        for node in engine_nodes:
            missing = _problem([one for one in fitting if objects.text(one, "spec", "nodeID") == node])
            if missing:
                return f"node {node} {missing} of data engine {engine} with image {image}. {_SHOW}"
    return ""


async def _data_engines(context: ToolkitContext, nodes: list[str]) -> dict[str, list[str]]:
    """Return the nodes of each data engine."""
    setting = await context.client.find(SETTINGS, _V2_SETTING)
    value = objects.text(setting, "value") or objects.text(setting, "default")
    second = await names_of_nodes(context.client, without=DISABLES_V2) if value == "true" else []
    return {"v1": nodes, "v2": second}


async def _image(context: ToolkitContext) -> str:
    """Return the image with which Longhorn's manager creates instance managers."""
    manager = await context.client.get(DAEMON_SETS, _MANAGER, namespace=LONGHORN_SYSTEM)
    for container in objects.items(manager, "spec", "template", "spec", "containers"):
        words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
        for word, following in pairwise([*words, ""]):
            if word == _OPTION:
                return following
            if word.startswith(f"{_OPTION}="):
                return word.partition("=")[2]
    return ""


def _is_of(manager: Object, engine: str, image: str) -> bool:
    fields = {"type": _TYPE, "dataEngine": engine, "image": image}
    return all(objects.text(manager, "spec", key) == value for key, value in fields.items())


def _problem(found: Sequence[Object]) -> str:
    if len(found) != 1:
        return f"has {len(found) or 'no'} instance manager{'s' if found else ''} instead of one"
    state = objects.text(found[0], "status", "currentState") or "unknown"
    return "" if state == _RUNNING else f"has an instance manager in state {state} instead of {_RUNNING}"
