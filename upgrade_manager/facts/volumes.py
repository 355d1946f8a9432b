"""Longhorn's volumes for which the drain of a node waits.

The gate of the pre-drain Job (toolkit/vms/longhorn_gate.py) waits for these volumes, and the finder of blockers
(blockers/volumes.py) reports them; the webhook (webhook/checks/longhorn.py) has Harvester's narrower rule and the same
remedies. The rule is that of Harvester's own pre-drain script: it covers the volumes of all
running engines, on any node. With fewer than three nodes, Longhorn always reports a volume with the default of three
replicas as degraded, so that the rule counts the volume's writable replicas instead.
"""

from __future__ import annotations

import json
import shlex
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HOST_WORK, LONGHORN_SYSTEM, WITNESS_LABEL
from upgrade_manager.api.remedy import Change, Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import LONGHORN_VOLUMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object

#: The number of nodes from which volumes must be healthy; with fewer, writable replicas are counted.
MANY_NODES = 3
_ENOUGH = 2
_METADATA = ("name", "resourceVersion")
_VOLUME_SPEC = ("numberOfReplicas", "diskSelector", "nodeSelector")
#: The volume's fields of required tags, each with the field of Longhorn's nodes that has the tags.
_SELECTORS = {"diskSelector": "spec.disks.*.tags", "nodeSelector": "spec.tags"}
#: The label that Longhorn sets on replicas.
_VOLUME_LABEL = "longhornvolume"
#: Begins the names of files in the host's work folder with which users skip volumes.
SKIP_PREFIX = "skip-"
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
        return "" if _is_healthy(volume) else unhealthy(volume)
    wanted = min(_ENOUGH, objects.number(volume, "spec", "numberOfReplicas") or _ENOUGH, max(nodes, 1))
    writable = sum(mode == "RW" for mode in objects.strings(engine, "status", "replicaModeMap").values())
    return "" if writable >= wanted else f"{writable} of {wanted} replicas are writable"


def unhealthy(volume: Object) -> str:
    """Return the robustness of a volume that is not healthy."""
    return f"its robustness is {objects.text(volume, 'status', 'robustness') or 'unknown'} instead of healthy"


def ways_out(volume: Object, *, nodes: int) -> tuple[Remedy, ...]:
    """Return the remedies that give Longhorn a place for the missing replica, which Longhorn then rebuilds by itself.

    `nodes` are the storage nodes: by default Longhorn places one replica of a volume on a node.
    """
    place, name = f"-n {LONGHORN_SYSTEM}", objects.name(volume)
    wanted, tags = objects.number(volume, "spec", "numberOfReplicas") or 0, required_tags(volume)
    if 0 < nodes < wanted:
        fewer, as_now = (patch_command(volume, {"numberOfReplicas": number}) for number in (nodes, wanted))
        text = f"Reduce its {wanted} replicas to {nodes}, for which the cluster has nodes"
        return (Remedy(text, command=fewer, undo=as_now, changes=(_change(volume, "numberOfReplicas"),)),)
    if not tags:
        replicas = f"kubectl get replicas.longhorn.io {place} -l {_VOLUME_LABEL}={name}"
        schedulable = f"kubectl get nodes.longhorn.io {place} -o wide"
        return (
            Remedy("Make nodes schedulable, with space on their disks", command=schedulable),
            Remedy("Show its replicas", command=replicas),
        )
    added = " and ".join(f"{wanted} to {_SELECTORS[key]}" for key, wanted in tags.items())
    return (
        Remedy(
            f"Add {added} on each node that is to have a replica", command=f"kubectl edit nodes.longhorn.io {place}"
        ),
        Remedy(
            "Or remove the tags from the volume until the upgrade has ended",
            command=patch_command(volume, dict.fromkeys(tags)),
            undo=patch_command(volume, {key: objects.items(volume, "spec", key) for key in tags}),
            changes=tuple(_change(volume, key) for key in tags),
        ),
    )


def _change(volume: Object, key: str) -> Change:
    original = objects.value(volume, "spec", key)
    place = {"namespace": LONGHORN_SYSTEM, "name": objects.name(volume)}
    return Change(kind=LONGHORN_VOLUMES.kind, **place, field=f"spec.{key}", original=original)


def way_to_skip(volume: Object, node: str) -> Remedy:
    """Return the last way out: the drain does not wait for the volume."""
    text = f"Or let the Job skip it, whose VM may fail, in a shell on node {node}"
    return Remedy(text, command=f"touch {skip_file(volume)}")


def patch_command(volume: Object, spec: Object) -> str:
    """Return the command that changes these fields of the volume's spec."""
    patch = json.dumps({"spec": spec}, separators=(",", ":"))
    named = f"-n {LONGHORN_SYSTEM} {objects.name(volume)}"
    return f"kubectl patch {LONGHORN_VOLUMES.name} {named} --type=merge -p {shlex.quote(patch)}"


def required_tags(volume: Object) -> dict[str, str]:
    """Return the tags that disks or nodes with a replica must have, by the field that requires them."""
    found = {key: [one for one in objects.items(volume, "spec", key) if isinstance(one, str)] for key in _SELECTORS}
    return {key: name_list(tags) for key, tags in found.items() if tags}


def skip_file(volume: Object) -> str:
    """Return the path of the file on the node's host with which users let the gate skip the volume."""
    return f"{HOST_WORK}/{SKIP_PREFIX}{objects.name(volume)}"


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
    return objects.text(engine, "spec", "volumeName") or objects.text(engine, "metadata", "labels", _VOLUME_LABEL)
