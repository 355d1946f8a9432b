"""A cluster for webhook checks, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any

from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import Resource
from webhook.check import Check, Subject
from webhook.cluster import ClusterReader, Listing, NotInstalled


class MemoryReader:
    """A `ClusterReader` over objects by resource; it records the listings.

    A resource without objects is installed, unless it is in `missing`; `errors` are raised.
    """

    def __init__(
        self,
        objects_of: Mapping[Resource, Sequence[Any]],
        *,
        missing: Collection[Resource] = (),
        errors: Mapping[Resource, Exception] | None = None,
    ) -> None:
        self._objects = objects_of
        self._missing = missing
        self._errors = errors or {}
        self.listings: list[Listing] = []

    async def list(self, listing: Listing) -> Sequence[Object]:
        self.listings.append(listing)
        if listing.resource in self._errors:
            raise self._errors[listing.resource]
        if listing.resource in self._missing:
            raise NotInstalled(listing.resource.name)
        found = [obj for obj in self._objects.get(listing.resource, ()) if _is_selected(obj, listing)]
        return [listing.slim(deepcopy(_metadata(obj) if listing.metadata_only else obj)) for obj in found]


def _is_selected(obj: Object, listing: Listing) -> bool:
    wanted = dict(one.split("=") for one in listing.label_selector.split(",") if one)
    return (
        listing.namespace in {"", objects.text(obj, "metadata", "namespace")}
        and listing.field_selector in {"", f"metadata.name={objects.name(obj)}", f"type={objects.text(obj, 'type')}"}
        and wanted.items() <= objects.strings(obj, "metadata", "labels").items()
    )


def _metadata(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key in {"apiVersion", "kind", "metadata"}}


async def find(
    check: Check, reader: ClusterReader, *, name: str = "demo", annotations: dict[str, str] | None = None, **spec: Any
) -> list[str]:
    """Run a check over a plan; return the messages, after the field if it is not the check's."""
    plan = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
    findings = await check.find(Subject.of(plan, cluster=reader, toolkit=TOOLKIT))
    return [f"{one.field}: {one.message}" if one.field else one.message for one in findings]


def named(name: str, namespace: str = "", **more: Any) -> Object:
    """Return an object of any kind; labels, annotations, owners and finalizers belong to its metadata."""
    metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    fields = ("labels", "annotations", "ownerReferences", "finalizers")
    metadata |= {key: more.pop(key) for key in fields if key in more}
    return {"metadata": metadata, **more}


def node(name: str, *, ready: str = "True", cordoned: bool = False, machine: str = "", **labels: str) -> Object:
    """Return a managed node; `machine` is its Machine, by default m-NAME."""
    return named(
        name,
        labels={"harvesterhci.io/managed": "true", **labels},
        annotations={"cluster.x-k8s.io/machine": machine or f"m-{name}"},
        spec={"unschedulable": True} if cordoned else {},
        status={"conditions": [{"type": "Ready", "status": ready, "message": "kubelet is posting ready status"}]},
    )


def assert_messages(found: Sequence[str], expected: Sequence[str]) -> None:
    """Check that each message contains the expected text, in order."""
    assert len(found) == len(expected), found
    for message, part in zip(found, expected, strict=True):
        assert part in message


async def create(client: Client, resource: Resource, obj: Object) -> None:
    """Create an object with its status."""
    status = obj.get("status")
    created = await client.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})
    if created.get("status") != status:
        await set_status(client, resource, objects.name(obj), objects.namespace(obj), **(status or {}))


async def set_status(client: Client, resource: Resource, name: str, namespace: str = "", **status: Any) -> None:
    """Change fields of the status subresource."""
    patch = MergePatch({"status": status})
    await client.patch(resource, name, patch, namespace=namespace, subresource="status")
