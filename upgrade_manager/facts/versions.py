"""Harvester's Version objects, which name the releases, and its Setting of the release that runs.

The webhook (webhook/checks/version.py) and the first phase (pipeline/phases/initialize.py) call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, SETTING_SERVER_VERSION
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VERSIONS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: The remedy for a Version that does not exist.
CREATE = Remedy("Create it, or create a plan for one of", command=f"kubectl get {VERSIONS.name} -n {HARVESTER_SYSTEM}")
#: The remedy for a Setting that does not show the release that runs.
SHOW_LOG = Remedy("Show Harvester's log", command=f"kubectl logs -n {HARVESTER_SYSTEM} deployment/harvester")


def missing(name: str) -> str:
    """Return the problem of a plan whose Version does not exist."""
    return f"{named(name)} does not exist"


def without_url(name: str) -> str:
    """Return the message about a Version that names no ISO, with the remedy."""
    return f"{named(name)} lacks spec.isoURL. Set it to the URL of the ISO"


def not_running() -> str:
    """Return the problem of a Setting that does not show the release that runs."""
    return f"Setting {SETTING_SERVER_VERSION} lacks a value, which Harvester sets"


def running(setting: Object) -> str:
    """Return the release that the cluster runs, as Harvester's Setting server-version has it; empty if it has none."""
    return objects.text(setting, "value") or objects.text(setting, "default")


def source(version: Object) -> Object:
    """Return the fields from which the ISO is imported."""
    spec = objects.spec(version)
    return {key: spec[key] for key in ("isoURL", "isoChecksum") if spec.get(key)}


def named(name: str) -> str:
    """Return the Version in messages."""
    return f"Version {HARVESTER_SYSTEM}/{name}"
