"""Longhorn's provisioner and Kubernetes' volume binder: each claim gets a volume.

Only for a real kube-scheduler, which places no Pod whose claim has none (Kubernetes v1.35.4,
pkg/scheduler/framework/plugins/volumebinding). `ImageController` creates the claims, and writes their phase.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hack.actors.controller import NamespacedController
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PERSISTENT_VOLUME_CLAIMS, Resource

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

PERSISTENT_VOLUMES = Resource(
    group="", version="v1", plural="persistentvolumes", kind="PersistentVolume", namespaced=False
)
_DRIVER = "driver.longhorn.io"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class VolumeController(NamespacedController):
    """Reconciles the PersistentVolumeClaims of all namespaces."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, PERSISTENT_VOLUME_CLAIMS, user_agent="csi-provisioner", loop="volumes")
        #: The volume of each claim, to delete it with the claim.
        self._volumes: dict[Key, str] = {}

    async def _reconcile(self, key: Key) -> RequeueAfter:
        claim = self._cached(key)
        if claim is None:
            await self._delete(self._volumes.pop(key, ""))
        elif not objects.spec(claim).get("volumeName"):
            await self._bind(claim)
        else:
            self._volumes[key] = objects.spec(claim)["volumeName"]
        return None

    async def _bind(self, claim: Object) -> None:
        volume = _volume_of(claim)
        with suppress(AlreadyExists):
            await self._client.create(PERSISTENT_VOLUMES, volume)
        body: Object = {"metadata": {"annotations": _BOUND}, "spec": {"volumeName": objects.name(volume)}}
        patch = MergePatch(body).at(objects.resource_version(claim))
        try:
            await self._cache.patch(self._client, claim, patch, subresource="")
        except (Conflict, NotFound):
            self._loop.add(objects.key(claim))

    async def _delete(self, volume: str) -> None:
        if volume:
            with suppress(NotFound):
                await self._client.delete(PERSISTENT_VOLUMES, volume)


def _volume_of(claim: Object) -> Object:
    spec = objects.spec(claim)
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": objects.uid(claim)}
    reference |= {"name": objects.name(claim), "namespace": objects.namespace(claim)}
    name = f"pvc-{objects.uid(claim)}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": _DRIVER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "claimRef": reference,
            "csi": {"driver": _DRIVER, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.get("storageClassName") or "",
            "volumeMode": spec.get("volumeMode") or "Filesystem",
        },
    }
