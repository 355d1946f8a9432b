"""Harvester's Version objects, which name the releases.

The webhook (webhook/checks/version.py) and the first phase (pipeline/phases/initialize.py) call it.
"""

from __future__ import annotations

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube.resources import VERSIONS

LIST = f"kubectl get {VERSIONS.name} -n {HARVESTER_SYSTEM}"


def missing(name: str) -> str:
    """Return the message about a Version that does not exist, with the remedy."""
    return f"{named(name)} does not exist. Create it, or create a plan for one of: {LIST}"


def without_url(name: str) -> str:
    """Return the message about a Version that names no ISO, with the remedy."""
    return f"{named(name)} lacks spec.isoURL. Set it to the URL of the ISO"


def named(name: str) -> str:
    """Return the Version in messages."""
    return f"Version {HARVESTER_SYSTEM}/{name}"
