"""Harvester's add-ons beside monitoring and logging: their charts, images and manifests.

toolkit/charts/addons.py upgrades them; generic.py has the row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from upgrade_manager.api.keys import HARVESTER_SYSTEM, KUBE_SYSTEM
from upgrade_manager.release.version import InvalidVersion, Version

#: Minor release and date of an image of NVIDIA's toolkit.
Stamp: TypeAlias = tuple[int, int, str]

NVIDIA = "nvidia-driver-toolkit"
_EXPERIMENTAL = {"addon.harvesterhci.io/experimental": "true"}
#: The form of a released tag, such as v1.8-20260424.
_STAMP = re.compile(r"v(\d+)\.(\d+)-(\d{8})", re.ASCII)
#: The tags of NVIDIA's toolkit by Harvester's release: no list of the ISO names this image, which is not on it.
NVIDIA_TAGS = {
    (1, 8, 0): "v1.8-20260424",
    (1, 8, 1): "v1.8-20260629",
    (1, 8, 2): "v1.8-20260706",
    # Of v1.9.0-rc3.
    (1, 9, 0): "v1.9-20260722",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAddon:
    """An add-on that Harvester brings."""

    name: str
    namespace: str
    chart: str
    #: The repository of the image whose tag its values have; empty if they have none.
    image: str = ""
    labels: dict[str, str] | None = None
    #: Values beside the tag, with which an absent add-on is created; None if it is not: then they are long and may
    #: depend on the cluster.
    values: str | None = None


ADDONS = (
    KnownAddon(
        name="vm-import-controller",
        namespace=HARVESTER_SYSTEM,
        chart="harvester-vm-import-controller",
        image="harvester-vm-import-controller",
        values="fullnameOverride: harvester-vm-import-controller\n",
    ),
    KnownAddon(
        name="pcidevices-controller",
        namespace=HARVESTER_SYSTEM,
        chart="harvester-pcidevices-controller",
        image="harvester-pcidevices",
        values="fullnameOverride: harvester-pcidevices-controller\n",
    ),
    KnownAddon(
        name="harvester-seeder",
        namespace=HARVESTER_SYSTEM,
        chart="harvester-seeder",
        image="harvester-seeder",
        labels=_EXPERIMENTAL,
        values="fullnameOverride: harvester-seeder\n",
    ),
    KnownAddon(
        name=NVIDIA,
        namespace=HARVESTER_SYSTEM,
        chart="nvidia-driver-runtime",
        image="harvester-nvidia-driver-toolkit",
        values='driverLocation: "HTTPENDPOINT/NVIDIA-Linux-x86_64-vgpu-kvm.run"\n'
        "fullnameOverride: nvidia-driver-runtime\n",
    ),
    KnownAddon(name="descheduler", namespace=KUBE_SYSTEM, chart="descheduler"),
    KnownAddon(name="kubeovn-operator", namespace=KUBE_SYSTEM, chart="kubeovn-operator"),
)


def nvidia_tag(release: str) -> str:
    """Return the tag of NVIDIA's toolkit in a release; empty if it is not known."""
    try:
        core = Version.parse(release).core
    except InvalidVersion:
        return ""
    return "" if core is None else NVIDIA_TAGS.get(core, "")


def is_older_nvidia(tag: str, *, than: str) -> bool:
    """Return True for a tag of an earlier release; any other is a user's own, or a later one."""
    found, wanted = _stamp_of(tag), _stamp_of(than)
    return found is not None and wanted is not None and found < wanted


def _stamp_of(tag: str) -> Stamp | None:
    match = _STAMP.fullmatch(tag)
    return (int(match[1]), int(match[2]), match[3]) if match is not None else None
