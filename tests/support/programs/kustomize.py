"""The kustomizations in deploy: their files, and what kubectl makes of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hack.yaml_documents import documents
from tests.support.cluster.kubectl import installed

DEPLOY = Path(__file__).parents[3] / "deploy"
DEFAULT = DEPLOY / "default"
#: The component that lets the manager serve the webhook; it goes before the others.
IN_MANAGER = "webhook-in-manager"
#: Kustomize components that a user may add to the default.
COMPONENTS = ("certmanager", "prometheus", "grafana")


def files(folder: Path) -> Iterator[Path]:
    """Yield the manifests that a kustomization names, directly or by another one."""
    for name in next(documents((folder / "kustomization.yaml").read_text()))["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            yield from files(path)
        else:
            yield path


def objects(folder: Path) -> list[dict[str, Any]]:
    """Return the objects in a kustomization's files, without its changes, and without the CRD."""
    paths = [path for path in files(folder) if path.parent.name != "crds"]
    return [manifest for path in paths for manifest in documents(path.read_text())]


def rendered(folder: Path) -> list[dict[str, Any]]:
    """Return the output of kubectl kustomize, which runs once for each folder."""
    return deepcopy(_rendered(folder))


@cache
def _rendered(folder: Path) -> list[dict[str, Any]]:
    command = [str(installed()), "kustomize", str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  # our kubectl
    return list(documents(output))


def with_components(folder: Path, components: Iterable[str], *, base: Path = DEFAULT) -> Path:
    """Write a kustomization of the base with components into a folder, which may be anywhere."""
    kustomization = {
        "resources": [_relative(base, folder)],
        "components": [_relative(DEPLOY / name, folder) for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return folder


def title(manifest: dict[str, Any]) -> str:
    """Return kind, namespace and name."""
    metadata = manifest["metadata"]
    return f"{manifest['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def _relative(path: Path, folder: Path) -> str:
    return os.path.relpath(path.resolve(), folder.resolve())
