"""The changes that an upgrade has left on the simulated hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.host import rke2_manifests, tree

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
