"""Changes of a cluster that the demo makes, and that its user can make with kubectl."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource


class Command(Protocol):
    """One change; its text is the command line."""

    async def run(self, client: Client) -> None:
        """Make the change. Raises KubeError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Patches an object; `text` is the command where kubectl has a shorter one."""

    resource: Resource
    name: str
    namespace: str = ""
    #: For example `status`.
    subresource: str = ""
    body: Object
    text: str = ""

    async def run(self, client: Client) -> None:
        """See Command."""
        patch, part = MergePatch(self.body), self.subresource
        await client.patch(self.resource, self.name, patch, namespace=self.namespace, subresource=part)

    def __str__(self) -> str:
        """Return the command line."""
        if self.text:
            return self.text
        patch = json.dumps(self.body, separators=(",", ":"))
        part = f" --subresource {self.subresource}" if self.subresource else ""
        return f"kubectl patch {self.resource.name}{_place(self.namespace)} {self.name}{part} --type=merge -p '{patch}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Creates an object; `text` is the command where kubectl has a shorter one."""

    resource: Resource
    manifest: Object
    text: str = ""

    async def run(self, client: Client) -> None:
        """See Command."""
        await client.create(self.resource, self._whole)

    def __str__(self) -> str:
        """Return the command line."""
        return self.text or f"echo '{json.dumps(self._whole, separators=(',', ':'))}' | kubectl apply -f -"

    @property
    def _whole(self) -> Object:
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **self.manifest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Deletes an object."""

    resource: Resource
    name: str
    namespace: str = ""

    async def run(self, client: Client) -> None:
        """See Command."""
        await client.delete(self.resource, self.name, namespace=self.namespace)

    def __str__(self) -> str:
        """Return the command line."""
        return f"kubectl delete {self.resource.name}{_place(self.namespace)} {self.name}"


def scale(resource: Resource, name: str, namespace: str, replicas: int) -> Patch:
    """Return `kubectl scale`."""
    text = f"kubectl -n {namespace} scale {resource.kind.lower()}/{name} --replicas={replicas}"
    return Patch(resource=resource, name=name, namespace=namespace, body={"spec": {"replicas": replicas}}, text=text)


def restart(name: str, namespace: str) -> Patch:
    """Return `kubectl rollout restart` of a Deployment."""
    template = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": format_time(datetime.now(UTC))}}}
    text = f"kubectl -n {namespace} rollout restart deployment/{name}"
    body = {"spec": {"template": template}}
    return Patch(resource=DEPLOYMENTS, name=name, namespace=namespace, body=body, text=text)


def creation(obj: Object) -> Object:
    """Return the manifest from which a copy of an object is created."""
    metadata = {"name": objects.name(obj), "namespace": objects.namespace(obj)}
    return {**{key: value for key, value in obj.items() if key not in {"metadata", "status"}}, "metadata": metadata}


def _place(namespace: str) -> str:
    return f" -n {namespace}" if namespace else ""
