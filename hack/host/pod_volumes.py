"""The volumes of a Pod as folders of this machine: empty ones, and the ServiceAccount's token with the cluster's CA."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.actors.container_work import container_of
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from pathlib import Path

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_SHARED, _OWNER = 0o777, 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVolumes:
    """Creates the volumes of Pods in one folder."""

    folder: Path
    client: Client
    #: PEM, of the API server's CA.
    authority: bytes

    async def mounts(self, pod: Object, *, user: int, group: int) -> list[tuple[Path, str]]:
        """Create the volumes, unless they exist; return them with the paths in the container."""
        volumes = {volume["name"]: volume for volume in objects.spec(pod).get("volumes") or ()}
        found = []
        for mount in container_of(pod).get("volumeMounts") or ():
            path = self.folder / objects.uid(pod) / mount["name"]
            if not path.exists():
                path.mkdir(parents=True)
                path.chmod(_SHARED)
                await self._fill(path, volumes[mount["name"]], pod)
                for file in path.iterdir():
                    file.chmod(_OWNER)
                    os.chown(file, user, group)
            found.append((path, str(mount["mountPath"])))
        return found

    async def _fill(self, path: Path, volume: dict[str, Any], pod: Object) -> None:
        if not {"emptyDir", "projected"} & volume.keys():
            raise NotImplementedError(f"volume {volume['name']} of Pod {objects.name(pod)}")
        for source in volume.get("projected", {}).get("sources", ()):
            await self._project(path, source, pod)

    async def _project(self, path: Path, source: dict[str, Any], pod: Object) -> None:
        if "serviceAccountToken" in source:
            token = await self._token(pod, source["serviceAccountToken"])
            (path / source["serviceAccountToken"]["path"]).write_text(token, encoding="utf-8")
        elif "configMap" in source:
            # kube-root-ca.crt, which kube-controller-manager would write.
            for item in source["configMap"]["items"]:
                (path / item["path"]).write_bytes(self.authority)
        else:
            for item in source["downwardAPI"]["items"]:
                (path / item["path"]).write_text(objects.namespace(pod), encoding="utf-8")

    async def _token(self, pod: Object, wanted: dict[str, Any]) -> str:
        """Request a token that is bound to the Pod, as a kubelet does."""
        account = objects.spec(pod).get("serviceAccountName") or "default"
        path = f"/api/v1/namespaces/{objects.namespace(pod)}/serviceaccounts/{account}/token"
        bound = {"apiVersion": "v1", "kind": "Pod", "name": objects.name(pod), "uid": objects.uid(pod)}
        spec = {"audiences": [], "expirationSeconds": wanted["expirationSeconds"], "boundObjectRef": bound}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        response = await self.client.raw("POST", path, body=body)
        return str(json.loads(response.body)["status"]["token"])
