"""Helm's storage: each revision of a release is a Secret, encoded as Helm does."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

DEPLOYED = "deployed"
SUPERSEDED = "superseded"
PENDING = "pending-upgrade"


def revision(
    name: str, *, namespace: str, number: int, status: str, chart: tuple[str, str], app: str, values: Object
) -> Object:
    """Build the Secret of a revision; `chart` is name and version."""
    release = {
        "name": name,
        "namespace": namespace,
        "version": number,
        "info": {"status": status},
        "chart": {"metadata": {"name": chart[0], "version": chart[1], "appVersion": app}},
        "config": values,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": f"sh.helm.release.v1.{name}.v{number}",
            "namespace": namespace,
            "labels": {"owner": "helm", "name": name, "status": status, "version": str(number)},
        },
        "data": {"release": _encoded(release)},
    }


class HelmStorage:
    """Reads and writes revisions."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def revisions(self, name: str, namespace: str) -> list[dict[str, Any]]:
        """Return all revisions, oldest first."""
        found = await self._client.list(SECRETS, namespace=namespace, label_selector=f"owner=helm,name={name}")
        releases = [_decoded(secret["data"]["release"]) for secret in found.items]
        return sorted(releases, key=lambda release: int(release["version"]))

    async def deploy(self, name: str, namespace: str, *, chart: str, app: str) -> None:
        """Add a deployed revision with the values of the last one, as a Helm that is never interrupted does."""
        last = (await self.revisions(name, namespace))[-1]
        chart_name = last["chart"]["metadata"]["name"]
        new = revision(
            name,
            namespace=namespace,
            number=last["version"] + 1,
            status=DEPLOYED,
            chart=(chart_name, chart),
            app=app,
            values=last["config"],
        )
        await self._client.create(SECRETS, new)
        await self.set_status(last, SUPERSEDED)

    async def set_status(self, release: dict[str, Any], status: str) -> None:
        """Change the status of a revision."""
        changed = {**release, "info": {**release["info"], "status": status}}
        name = f"sh.helm.release.v1.{release['name']}.v{release['version']}"
        body = {"metadata": {"labels": {"status": status}}, "data": {"release": _encoded(changed)}}
        await self._client.patch(SECRETS, name, MergePatch(body), namespace=release["namespace"])


def is_blocked(revisions: list[dict[str, Any]]) -> bool:
    """Return True if another Helm refuses to change the release."""
    return bool(revisions) and str(revisions[-1]["info"]["status"]).startswith("pending-")


def _encoded(release: dict[str, Any]) -> str:
    """Encode twice in base64: once for Helm, and once for the Secret."""
    packed = gzip.compress(json.dumps(release, sort_keys=True).encode(), mtime=0)
    return base64.b64encode(base64.b64encode(packed)).decode()


def _decoded(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(text))))
    return found
