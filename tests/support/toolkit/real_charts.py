"""Charts for a real helm, and a helm that is killed in the middle of an upgrade."""

from __future__ import annotations

import asyncio
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.control_plane.control_plane import ADMIN, ControlPlane
from hack.control_plane.kubeconfig import kubeconfig, write
from tests.support.programs.helm import Helm
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PODS

#: Seconds for a helm that waits for nothing.
SECONDS = 60.0


def archive(name: str, version: str, *templates: Object) -> bytes:
    """Return the archive of a chart with these objects."""
    metadata = {"apiVersion": "v2", "name": name, "version": version, "appVersion": f"v{version}"}
    files = {"Chart.yaml": metadata, **{f"templates/{number}.yaml": one for number, one in enumerate(templates)}}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as content:
        for path, text in files.items():
            encoded = yaml.safe_dump(text).encode()
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(encoded)
            content.addfile(entry, io.BytesIO(encoded))
    return buffer.getvalue()


def pre_upgrade(name: str) -> Object:
    """Return the Pod of a hook, which runs nowhere: helm waits for its end before it changes anything."""
    annotations = {"helm.sh/hook": "pre-upgrade"}
    container = {"name": "hook", "image": "registry.example/hook"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"schedulerName": "none", "restartPolicy": "Never", "containers": [container]},
    }


def config_map(name: str, **data: str) -> Object:
    """Return an object by which a test sees which chart is there."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def connected(folder: Path, plane: ControlPlane) -> Helm:
    """Return helm for the API server, as its administrator."""
    text = kubeconfig(server=plane.url, authority=plane.certificate, token=ADMIN.token)
    write(folder / "kubeconfig", text)
    return Helm(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A Pod for which helm waits."""

    client: Client
    name: str
    namespace: str

    async def appears(self, *, after: str = "") -> str:
        """Wait until helm has created it, and return its uid; `after` is the uid of an earlier one."""

        async def uid() -> str:
            found = await self.client.find(PODS, self.name, namespace=self.namespace)
            return "" if found is None or objects.uid(found) == after else objects.uid(found)

        found: Any = await eventually(uid, seconds=SECONDS)
        return str(found)

    async def succeeds(self) -> None:
        """Let helm go on."""
        patch = MergePatch({"status": {"phase": "Succeeded"}})
        await self.client.patch(PODS, self.name, patch, namespace=self.namespace, subresource="status")


async def killed_at(hook: Hook, helm: Helm, *arguments: str) -> str:
    """Run helm and kill it while it waits for the hook, whose uid is returned."""
    process = await helm.start(*arguments, namespace=hook.namespace)
    try:
        return await hook.appears()
    finally:
        process.kill()
        await asyncio.wait_for(process.wait(), SECONDS)
