"""The nodes on which an earlier plan has preloaded the images of the same release.

check.py calls it for disks that are too full; pipeline/phases/image_preload.py records the nodes' states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.node_states import NodeState, state_of
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_BEFORE = frozenset({NodeState.IMAGE_PRELOADING, NodeState.IMAGE_PRELOAD_FAILED})


async def preloaded_nodes(client: Client, *, plan: Object) -> frozenset[str]:
    """Return the nodes with the images of that plan's release. Raises KubeError.

    `plan` is a new plan, or has at least the uid of one that exists.
    """
    plans = (await client.list(UPGRADE_PLANS)).items
    own = next((one for one in plans if objects.uid(one) == objects.uid(plan)), plan)
    earlier = (one for one in plans if one is not own and _is_same_release(own, one) and _preloads(one))
    return frozenset(node for one in earlier for node in _preloaded(one))


def _is_same_release(own: Object, other: Object) -> bool:
    version, image = objects.text(own, "spec", "version"), objects.text(own, "spec", "image")
    names = {objects.text(other, "spec", "version"), objects.text(other, "status", "releaseMetadata", "harvester")}
    return (bool(version) and version in names) or (bool(image) and image == objects.text(other, "spec", "image"))


def _preloads(plan: Object) -> bool:
    """Return False for a plan without the phase: NodeUpgrade records its nodes as ImagePreloaded all the same."""
    return (objects.number(plan, "spec", "imagePreloadOption", "concurrency") or 0) >= 0


def _preloaded(plan: Object) -> Iterator[str]:
    for node, entry in objects.mapping(plan, "status", "nodeUpgradeStatuses").items():
        state = state_of(objects.value(entry, "state"))
        if state is not None and state not in _BEFORE:
            yield node
