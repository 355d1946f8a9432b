"""The upgrade repository: the files of the ISO, served while a plan's repository runs."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import yaml

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_SERVICE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import ENDPOINT_SLICES, SERVICES
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.scenario import Scenario

ROOT = "/harvester-iso/"
RELEASE_FILE = "harvester-release.yaml"
_METADATA = "bundle/metadata.yaml"
_LISTS = "bundle/harvester/images-lists-archive"


class Repository:
    """One ISO behind any number of Services; a Service responds while it has a ready endpoint."""

    def __init__(self, context: ActorContext) -> None:
        self._faults = context.scenario.repository
        self._files = files_of(context.scenario)
        self._services = context.caches.of(SERVICES)
        self._slices = context.caches.of(ENDPOINT_SLICES)
        #: The number of error responses before the first good one.
        self._failing = self._faults.failing_requests

    @property
    def files(self) -> dict[str, bytes]:
        """The ISO's files by their path below /harvester-iso/; more can be added."""
        return self._files

    @property
    def checksums(self) -> dict[str, str]:
        """Digests as `node checksums` computes them from the mounted ISO; a file that is not simulated is its path."""
        bundle = yaml.safe_load(self._files.get(_METADATA, b"")) or {"images": {}}
        archives = [archive for group in bundle["images"].values() for archive in group]
        paths = (RELEASE_FILE, _METADATA, "rootfs.squashfs")
        listed = (f"bundle{archive[kind]}" for archive in archives for kind in ("archive", "list"))
        return {f"/{path}": sha256(self._files.get(path, path.encode())).hexdigest() for path in (*paths, *listed)}

    def is_up(self, service: str) -> bool:
        """Report whether the Service in harvester-system has a ready endpoint."""
        if self._services.store.get(service, HARVESTER_SYSTEM) is None:
            return False
        return any(
            objects.labels(one).get(LABEL_SERVICE_NAME) == service
            and any((endpoint.get("conditions") or {}).get("ready") for endpoint in one.get("endpoints") or ())
            for one in self._slices.store.list()
            if objects.namespace(one) == HARVESTER_SYSTEM
        )

    def answer(self, path: str) -> Response:
        """Serve GET of a path, as nginx does on the ISO; double slashes are merged."""
        if self._failing > 0:
            self._failing -= 1
            return Response(status=self._faults.status, body=b"the simulated repository fails\n")
        clean = re.sub(r"/{2,}", "/", path)
        content = self._content(clean.removeprefix(ROOT)) if clean.startswith(ROOT) else None
        if content is None:
            return Response(status=404, body=b"404 Not Found\n")
        return Response(status=200, headers={"content-type": "text/plain"}, body=content)

    def _content(self, path: str) -> bytes | None:
        changed = self._faults.changed.get(path)
        return self._files.get(path) if changed is None else changed.encode()


def files_of(scenario: Scenario) -> dict[str, bytes]:
    """Return the ISO's files by their path below /harvester-iso/."""
    release, faults = scenario.release, scenario.repository
    previous = (*release.images_removed, *release.images_kept)
    current = (*release.images_added, *release.images_kept)
    text = faults.release_text
    files = {
        RELEASE_FILE: release_text(scenario) if text is None else text,
        _METADATA: yaml.safe_dump({"images": _bundle(scenario)}, sort_keys=False),
        f"{_LISTS}/{scenario.software.harvester}/image_list_all.txt": _lines(previous),
        f"{_LISTS}/current/image_list_all.txt": _lines(current),
    } | faults.files
    return {path: content.encode() for path, content in files.items() if path not in faults.missing}


def release_text(scenario: Scenario) -> str:
    """Render harvester-release.yaml."""
    return yaml.safe_dump(release_of(scenario), sort_keys=False)


def release_of(scenario: Scenario) -> dict[str, Any]:
    """Return what harvester-release.yaml says."""
    release = scenario.release
    chart = release.harvester.removeprefix("v")
    document = {
        "harvester": release.harvester,
        "harvesterChart": chart,
        "os": release.os_image,
        "kubernetes": release.kubernetes,
        "rancher": release.rancher,
        "monitoringChart": "109.0.1+up80.9.1",
        "loggingChart": "109.0.0+up6.0.2",
        "loggingChartHarvesterEventRouter": "rancher/harvester-eventrouter:v0.5.0",
        "installer": "9e8d7c6",
        "kubevirt": "1.7.0",
        "minUpgradableVersion": release.min_upgradable_version,
        "rancherDependencies": {
            "fleet": {"chart": "109.0.0+up0.15.0", "app": "0.15.0"},
            "fleet-crd": {"chart": "109.0.0+up0.15.0", "app": "0.15.0"},
            "rancher-webhook": {"chart": "109.0.0+up0.10.0", "app": "0.10.0"},
        },
    }
    return document | release.metadata


def _bundle(scenario: Scenario) -> dict[str, list[dict[str, str]]]:
    release = scenario.release
    rke2 = release.kubernetes.replace("+", "-")
    names = {
        "common": [f"harvester/{kind}-images-{version}" for kind, version in _common(scenario)],
        "rke2": [f"harvester/rke2-images.linux-amd64-{rke2}", f"harvester/rke2-images-multus.linux-amd64-{rke2}"],
        "agent": [f"rancherd/rancherd-bootstrap-images-{release.harvester}"],
    }
    return {group: [_archive(*name.split("/")) for name in listed] for group, listed in names.items()}


def _common(scenario: Scenario) -> tuple[tuple[str, str], ...]:
    return (("rancher", scenario.release.rancher), ("harvester", scenario.release.harvester))


def _archive(folder: str, name: str) -> dict[str, str]:
    lists = "images-lists" if folder == "harvester" else "images"
    return {"list": f"/{folder}/{lists}/{name}.txt", "archive": f"/{folder}/images/{name}.tar.zst"}


def _lines(images: tuple[str, ...]) -> str:
    return "".join(f"{image}\n" for image in sorted(images))
