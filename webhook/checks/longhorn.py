"""Longhorn's volumes survive the reboot of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_SKIP_DETACHED_VOLUMES, LONGHORN_SYSTEM
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.volumes import MANY_NODES, claim_of, patch_command, storage_nodes, unhealthy, ways_out
from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.listings import NODES, VOLUMES, has_single_replica, is_degraded, read_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject

_IN_USE = frozenset({"attached", "attaching", "creating"})


async def _find(subject: Subject) -> list[Finding]:
    nodes, volumes = await read_all(subject.cluster, NODES, VOLUMES)
    if len(nodes) <= 1:
        return []  # volumes cannot have another replica, and all workloads stop
    skips_detached = subject.annotations.skip_detached_volumes
    found = (_finding(volume, nodes=nodes, skips_detached=skips_detached) for volume in volumes)
    return [one for one in found if one]


def _finding(volume: Object, *, nodes: Sequence[Object], skips_detached: bool) -> Finding | None:
    # Witness nodes count, although they hold no replicas, because Harvester's own check counts them.
    if is_degraded(volume) and len(nodes) >= MANY_NODES:
        why = f"is not healthy: {unhealthy(volume)}. Longhorn rebuilds its replicas once they have a place"
        return Finding(problem=f"{_about(volume)} {why}", remedies=ways_out(volume, nodes=storage_nodes(nodes)))
    state = objects.text(volume, "status", "state")
    if not has_single_replica(volume) or state == "deleting":
        return None
    if state in _IN_USE:
        why = f"is {state} and has a single replica, which is unavailable while its node reboots"
        two, one = (patch_command(volume, {"numberOfReplicas": number}) for number in (2, 1))
        return Finding(problem=f"{_about(volume)} {why}", remedies=(Remedy("Add a replica", command=two, undo=one),))
    if skips_detached:
        return None
    return Finding(
        problem=f"{_about(volume)} is {state or 'detached'} and has a single replica. Delete it if it is not needed, "
        "or accept that it is unavailable while its node reboots: annotate the plan with "
        f'{ANNOTATION_SKIP_DETACHED_VOLUMES}: "true"'
    )


def _about(volume: Object) -> str:
    about = f"Volume {LONGHORN_SYSTEM}/{objects.name(volume)}"
    claim = claim_of(volume)
    return f"{about} of PersistentVolumeClaim {claim}" if claim else about


CHECK = Check(name="Longhorn", field="spec", find=_find)
