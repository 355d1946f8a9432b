"""The changes that an upgrade has left on the simulated hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.host import rke2_manifests, tree
from upgrade_manager.api.keys import CATTLE_SYSTEM, LABEL_COMPONENT
from upgrade_manager.kube.resources import JOBS, SUC_PLANS
from upgrade_manager.pipeline.host_changes import CHANGES

if TYPE_CHECKING:
    from hack.simulation import Simulation


def changed_hosts(simulation: Simulation) -> list[str]:
    """Return the hosts that have a hold on the system agent, or a manifest that is skipped, each with the fact."""
    found = []
    for name in simulation.hosts.names():
        host = simulation.hosts.of(name)
        if host.folder is None:
            continue
        held, skipped = tree.is_held(host.folder), rke2_manifests.is_skipped(host.folder)
        what = [text for text, is_so in (("a hold", held), ("a skipped manifest", skipped)) if is_so]
        found += [f"{name} has {' and '.join(what)}"] if what else []
    return found


async def undo_changes(simulation: Simulation) -> None:
    """Let the cluster be as managers leave it that do not change hosts."""
    client = simulation.client()
    components = ",".join(component for change in CHANGES for component in (change.apply, change.undo))
    for resource in (SUC_PLANS, JOBS):
        selector = f"{LABEL_COMPONENT} in ({components})"
        await client.delete_collection(resource, namespace=CATTLE_SYSTEM, label_selector=selector)
    for name in simulation.hosts.names():
        folder = simulation.hosts.of(name).folder
        if folder is not None:
            rke2_manifests.unskip(folder)
            tree.release(folder)
