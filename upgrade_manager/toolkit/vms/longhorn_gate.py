"""Waits until the volumes of running VMs survive the loss of the node that is about to be drained."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import LONGHORN_SYSTEM, MANAGED_SELECTOR, WITNESS_LABEL
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection, list_all_pages
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES, NODES
from upgrade_manager.toolkit.host.host_paths import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The number of nodes from which volumes must be healthy; with fewer, writable replicas are counted.
_MANY_NODES = 3
_ENOUGH = 2
#: Users create the file with this prefix and the volume's name in the host's work folder, to skip the volume.
_SKIP = "skip-"


async def volumes_at_risk(context: ToolkitContext) -> str:
    """Return the volumes of running engines that lack replicas, without those that users skip."""
    nodes = (await context.client.list(NODES, label_selector=MANAGED_SELECTOR, metadata_only=True)).items
    count = sum(objects.labels(node).get(WITNESS_LABEL) != "true" for node in nodes)
    engines = [one for one in await _read(context, LONGHORN_ENGINES, _slim_engine) if _is_running(one)]
    volumes = {objects.name(one): one for one in await _read(context, LONGHORN_VOLUMES, _slim_volume)}
    found: dict[str, str] = {}
    for engine in engines:
        name = _volume_of(engine)
        # An engine without a volume is about to be deleted.
        problem = _problem(volumes[name], engine, nodes=count) if name in volumes else ""
        if problem and not context.tree.exists(f"{WORK}/{_SKIP}{name}"):
            found[name] = f"{_claim(volumes[name])} (volume {name}: {problem})"
    return f"{len(found)} volumes: {name_list(sorted(found.values()))}" if found else ""


async def forget_skipped_volumes(context: ToolkitContext) -> None:
    """Remove the files that skip volumes, so that they do not count in the next drain."""
    for name in context.tree.names(WORK):
        if name.startswith(_SKIP):
            context.tree.remove(f"{WORK}/{name}")


def _problem(volume: Object, engine: Object, *, nodes: int) -> str:
    """Return what the volume lacks; with one node there is no place for a second replica."""
    if nodes >= _MANY_NODES:
        robustness = objects.text(volume, "status", "robustness")
        return "" if robustness == "healthy" else f"{robustness or 'unknown'}, not healthy"
    wanted = min(_ENOUGH, objects.number(volume, "spec", "numberOfReplicas") or _ENOUGH, max(nodes, 1))
    writable = sum(mode == "RW" for mode in objects.strings(engine, "status", "replicaModeMap").values())
    return "" if writable >= wanted else f"{writable} of {wanted} replicas are writable"


def _is_running(engine: Object) -> bool:
    return objects.text(engine, "status", "currentState") == "running"


def _volume_of(engine: Object) -> str:
    return objects.text(engine, "spec", "volumeName") or objects.text(engine, "metadata", "labels", "longhornvolume")


def _claim(volume: Object) -> str:
    claim = objects.mapping(volume, "status", "kubernetesStatus")
    namespace, name = objects.text(claim, "namespace"), objects.text(claim, "pvcName")
    return f"{namespace}/{name}" if name else "without a claim"


async def _read(context: ToolkitContext, resource: Resource, slim: Callable[[Object], Object]) -> Sequence[Object]:
    """Return all objects with few fields: a large cluster has ten thousand."""
    selection = Selection(resource=resource, namespace=LONGHORN_SYSTEM)
    return (
        await list_all_pages(partial(context.client.list_page, selection, transform=slim), resource_version="")
    ).items


def _slim_engine(engine: Object) -> Object:
    return {
        "metadata": {key: objects.metadata(engine).get(key) for key in ("name", "labels")},
        "spec": {"volumeName": objects.value(engine, "spec", "volumeName")},
        "status": {key: objects.value(engine, "status", key) for key in ("currentState", "replicaModeMap")},
    }


def _slim_volume(volume: Object) -> Object:
    return {
        "metadata": {"name": objects.name(volume)},
        "spec": {"numberOfReplicas": objects.value(volume, "spec", "numberOfReplicas")},
        "status": {key: objects.value(volume, "status", key) for key in ("robustness", "kubernetesStatus")},
    }
