"""Images of the previous release that stay on nodes after an upgrade, and their removal by hand.

The phase ImageCleanup (pipeline/phases/image_cleanup.py) reports them; the command of its Jobs
(toolkit/commands/image_cleanup.py) removes images by the same program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.text import name_list

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The kubelet's program for images, on each node.
CRICTL = "/var/lib/rancher/rke2/bin/crictl"
CRICTL_CONFIG = "/var/lib/rancher/rke2/agent/etc/crictl.yaml"
_BY_HAND = f"{CRICTL} --config {CRICTL_CONFIG}"


def not_removed(nodes: Sequence[str], *, previous: str, cause: str) -> str:
    """Return the message about nodes that keep the previous release's images; the plan's Jobs are removed by then.

    A prune would remove images, too, that the release needs and that no registry has.
    """
    named = f"Node{'s' if len(nodes) > 1 else ''} {name_list(nodes)}"
    return (
        f"{named}: images that only {previous} needs were not removed ({cause}). The upgrade is complete, and the "
        "kubelet removes unused images when it needs disk space. To free space before, list the images on the node: "
        f"{_BY_HAND} images; then remove each that only {previous} needs: {_BY_HAND} rmi IMAGE"
    )
