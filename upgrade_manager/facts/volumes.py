"""Longhorn's volumes for which the drain of a node waits.

The gate of the pre-drain Job (toolkit/vms/longhorn_gate.py) waits for these volumes, and the finder of blockers
(blockers/volumes.py) reports them. The rule is that of Harvester's own pre-drain script: it covers the volumes of all
running engines, on any node. With fewer than three nodes, Longhorn always reports a volume with the default of three
replicas as degraded, so that the rule counts the volume's writable replicas instead.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object

#: The number of nodes from which volumes must be healthy; with fewer, writable replicas are counted.
MANY_NODES = 3
_ENOUGH = 2
_METADATA = ("name", "resourceVersion")
_VOLUME_SPEC = ("numberOfReplicas", "diskSelector", "nodeSelector")
#: The step of the pre-drain Job that waits for volumes (toolkit/commands/pre_drain.py), as its progress names it.
VOLUME_GATE = "wait-for-volumes"


def storage_nodes(nodes: Iterable[Object]) -> int:
    """Return the number of managed nodes that may have replicas; a witness node has no replicas."""
    return sum(objects.labels(node).get(WITNESS_LABEL) != "true" for node in nodes)


def volumes_at_risk(volumes: Iterable[Object], engines: Iterable[Object], *, nodes: int) -> list[tuple[Object, str]]:
    """Return the volumes of running engines that lack replicas, each with its problem; `nodes` are the storage nodes.

    An engine without a volume is about to be deleted.
    """
    named = {objects.name(one): one for one in volumes if nodes < MANY_NODES or not _is_healthy(one)}
    found: dict[str, str] = {}
    for engine in engines if named else ():
        volume = named.get(_volume_of(engine))
        problem = volume_problem(volume, engine, nodes=nodes) if volume and _is_running(engine) else ""
        if volume and problem:
            # A volume that migrates has two engines.
            found[objects.name(volume)] = problem
    return [(named[name], problem) for name, problem in found.items()]


def volume_problem(volume: Object, engine: Object, *, nodes: int) -> str:
    """Return the missing redundancy of a running engine's volume; empty if the volume survives the loss of a node.

    A cluster of one node has no place for a second replica.
    """
    if nodes >= MANY_NODES:
        return (
            "" if _is_healthy(volume) else f"{objects.text(volume, 'status', 'robustness') or 'unknown'}, not healthy"
        )
    wanted = min(_ENOUGH, objects.number(volume, "spec", "numberOfReplicas") or _ENOUGH, max(nodes, 1))
    writable = sum(mode == "RW" for mode in objects.strings(engine, "status", "replicaModeMap").values())
    return "" if writable >= wanted else f"{writable} of {wanted} replicas are writable"


def claim_of(volume: Object) -> str:
    """Return namespace and name of the volume's PersistentVolumeClaim; empty without a claim."""
    claim = objects.mapping(volume, "status", "kubernetesStatus")
    name = objects.text(claim, "pvcName")
    return f"{objects.text(claim, 'namespace')}/{name}" if name else ""


def slim_volume(volume: Object) -> Object:
    """Keep the fields of a volume that the rules and messages need; a large cluster has ten thousand volumes."""
    scheduled = objects.condition(volume, "Scheduled")
    spec = objects.mapping(volume, "spec")
    claim = objects.mapping(volume, "status", "kubernetesStatus")
    return {
        "metadata": _slim_metadata(volume),
        "spec": {key: spec[key] for key in _VOLUME_SPEC if spec.get(key)},
        "status": {
            "robustness": intern(objects.text(volume, "status", "robustness")),
            "kubernetesStatus": {key: claim[key] for key in ("namespace", "pvcName") if key in claim},
            **({"conditions": [scheduled]} if objects.text(scheduled, "status") == "False" else {}),
        },
    }


def slim_engine(engine: Object) -> Object:
    """Keep the fields of an engine that the rules need, without the names of its replicas."""
    modes = objects.strings(engine, "status", "replicaModeMap").values()
    return {
        "metadata": _slim_metadata(engine),
        "spec": {"volumeName": _volume_of(engine)},
        "status": {
            "currentState": intern(objects.text(engine, "status", "currentState")),
            "replicaModeMap": _numbered(tuple(sorted(modes))),
        },
    }


@lru_cache(maxsize=64)
def _numbered(modes: tuple[str, ...]) -> dict[str, str]:
    """Return the modes of replicas by number instead of name, so that nearly all engines share one of a few maps."""
    return {str(number): mode for number, mode in enumerate(modes)}


def _slim_metadata(obj: Object) -> Object:
    metadata = objects.metadata(obj)
    return {"namespace": intern(objects.namespace(obj)), **{key: metadata.get(key) for key in _METADATA}}


def _is_healthy(volume: Object) -> bool:
    return objects.text(volume, "status", "robustness") == "healthy"


def _is_running(engine: Object) -> bool:
    return objects.text(engine, "status", "currentState") == "running"


def _volume_of(engine: Object) -> str:
    return objects.text(engine, "spec", "volumeName") or objects.text(engine, "metadata", "labels", "longhornvolume")
