"""Harvester's image controller with CDI: downloads an image into a volume, with retries and a limit.

An image whose name an earlier one had waits until that one's claim is deleted, which Pods that use it delay
(containerized-data-importer, pkg/controller/datavolume/controller-base.go, validatePVC).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hack.actors.conditions import with_condition
from hack.actors.controller import NamespacedController
from hack.actors.kinds import controller_reference
from upgrade_manager.api.keys import (
    ANNOTATION_OS_UPGRADE_IMAGE,
    ANNOTATION_STORAGE_CLASS,
    IMAGE_STORAGE_CLASS,
    LABEL_IMAGE_DISPLAY_NAME,
    OS_UPGRADE_IMAGE_VALUE,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PERSISTENT_VOLUME_CLAIMS, VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

#: The size in bytes that the simulator reports for the ISO.
_SIZE = 6912345088
#: The interval at which a running import reports its progress.
_STEPS = 4
_DEFAULT_RETRY = 3
#: Existing storage classes; only the static one offers a shared file system.
_CLASSES = ("harvester-longhorn", IMAGE_STORAGE_CLASS, "longhorn")


class ImageController(NamespacedController):
    """Reconciles the VirtualMachineImages that download through the CDI backend and ignores others."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, VIRTUAL_MACHINE_IMAGES, user_agent="harvester-image-controller", loop="images")
        self._claims = context.caches.of(PERSISTENT_VOLUME_CLAIMS)
        self._claims.subscribe(self._claim_changed)

    def _changed(self, change: Change) -> None:
        super()._changed(change)
        if change.kind.value == "deleted":
            self._timers.forget(objects.uid(change.obj))

    def _claim_changed(self, change: Change) -> None:
        """Reconcile the image of a deleted claim, which has the claim's name."""
        if change.kind.value == "deleted":
            self._loop.add(objects.key(change.obj))

    async def _reconcile(self, key: Key) -> RequeueAfter:
        image = self._cached(key)
        if image is None or objects.is_deleting(image) or objects.is_condition_true(image, "RetryLimitExceeded"):
            return None
        if objects.is_condition_true(image, "Imported"):
            return await self._keep(image)
        spec = objects.spec(image)
        if spec.get("backend") != "cdi" or spec.get("sourceType") != "download" or not spec.get("url"):
            return None
        if not objects.condition(image, "Initialized"):
            return await self._begin(image)
        return await self._import(image)

    async def _begin(self, image: Object) -> RequeueAfter:
        spec, at = objects.spec(image), self._context.timestamp()
        conditions = with_condition([], "Initialized", "True", reason="Initialized", at=at)
        conditions = with_condition(conditions, "Imported", "Unknown", reason="Importing", at=at)
        conditions = with_condition(conditions, "RetryLimitExceeded", "False", at=at)
        target = spec.get("targetStorageClassName") or "harvester-longhorn"
        await self._write(
            image,
            {
                "metadata": {"annotations": {ANNOTATION_STORAGE_CLASS: target}},
                "status": {
                    "appliedUrl": spec["url"],
                    "progress": 0,
                    "failed": 0,
                    "storageClassName": target,
                    "targetStorageClassName": target,
                    "conditions": conditions,
                },
            },
        )
        return 0.0

    async def _import(self, image: Object) -> RequeueAfter:
        status = objects.status(image)
        failed = int(status.get("failed") or 0)
        wait = self._until_retry(image)
        if wait > 0:
            return wait
        left, progress = self._step(image, failed)
        if left > 0:
            if progress > int(status.get("progress") or 0):
                await self._write(image, {"status": {"progress": progress}})
            return left
        message = self._failure_message(image, failed)
        if message:
            return await self._fail(image, failed + 1, message)
        return await self._finish(image)

    def _step(self, image: Object, attempt: int) -> tuple[float, int]:
        """Return the seconds until the next progress report, and the reported percentage."""
        durations = self._context.scenario.durations
        for number in range(_STEPS):
            seconds = self._context.seconds(durations.image_import / _STEPS)
            left = self._timers.left(objects.uid(image), (attempt, number), seconds)
            if left > 0:
                return left, min(99, number * 100 // _STEPS)
        return 0.0, 99

    def _until_retry(self, image: Object) -> float:
        last = objects.status(image).get("lastFailedTime")
        if not last:
            return 0.0
        pause = timedelta(seconds=self._context.scenario.durations.image_retry * self._context.scale)
        due = datetime.fromisoformat(last) + pause
        return (due - self._context.now()).total_seconds()

    def _failure_message(self, image: Object, failed: int) -> str:
        """Return why this attempt fails, or an empty string."""
        url = objects.spec(image)["url"]
        if url != self._context.iso_url:
            return f"unable to connect to http data source: {url}: no such host or file"
        target = objects.status(image).get("targetStorageClassName")
        if target not in _CLASSES:
            return f'storageclass.storage.k8s.io "{target}" not found'
        fault = self._context.scenario.image_import
        return fault.message if fault is not None and failed < fault.attempts else ""

    async def _fail(self, image: Object, failed: int, message: str) -> RequeueAfter:
        at = self._context.timestamp()
        conditions = objects.status(image).get("conditions") or []
        retry = objects.spec(image).get("retry")
        over = failed > (_DEFAULT_RETRY if retry is None else retry)
        limit = "True" if over else "False"
        conditions = with_condition(conditions, "RetryLimitExceeded", limit, message=message, at=at)
        if over:
            conditions = with_condition(conditions, "Imported", "False", reason="Failed", message=message, at=at)
        body = {"failed": failed, "lastFailedTime": at, "progress": 0, "conditions": conditions}
        await self._write(image, {"status": body})
        return 0.0

    async def _finish(self, image: Object) -> RequeueAfter:
        at = self._context.timestamp()
        conditions = objects.status(image).get("conditions") or []
        conditions = with_condition(conditions, "Imported", "True", reason="Imported", at=at)
        conditions = with_condition(conditions, "RetryLimitExceeded", "False", at=at)
        if not await self._make_claim(image):
            return None
        await self._write(
            image,
            {
                "metadata": {"labels": {LABEL_IMAGE_DISPLAY_NAME: objects.spec(image)["displayName"]}},
                "status": {"progress": 100, "size": _SIZE, "virtualSize": _SIZE, "conditions": conditions},
            },
        )
        return None

    async def _keep(self, image: Object) -> RequeueAfter:
        """Keep the volume of an imported image."""
        if self._claims.store.get(objects.name(image), objects.namespace(image)) is None:
            await self._make_claim(image)
        return None

    async def _make_claim(self, image: Object) -> bool:
        """Create the claim; return False while the claim of an earlier image exists."""
        claim = claim_of(image)
        try:
            written = await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim)
        except AlreadyExists:
            return await self._has_claim(image)
        bound = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": {"storage": str(_SIZE)}}
        await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS,
            objects.name(written),
            MergePatch({"status": bound}),
            namespace=objects.namespace(written),
            subresource="status",
        )
        return True

    async def _has_claim(self, image: Object) -> bool:
        name, namespace = objects.name(image), objects.namespace(image)
        found = await self._client.find(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
        return found is not None and objects.owner_uid(found) == objects.uid(image)

    async def _write(self, image: Object, body: Object) -> None:
        patch = MergePatch(body).at(objects.resource_version(image))
        await self._cache.patch(self._client, image, patch, subresource="")


def claim_of(image: Object) -> Object:
    """Build the claim that CDI creates: shared for upgrade images where the storage class allows it."""
    marked = objects.annotations_of(image).get(ANNOTATION_OS_UPGRADE_IMAGE) == OS_UPGRADE_IMAGE_VALUE
    target = objects.spec(image).get("targetStorageClassName") or "harvester-longhorn"
    shared = marked and target == IMAGE_STORAGE_CLASS
    owner = controller_reference(VIRTUAL_MACHINE_IMAGES, image)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": objects.name(image),
            "namespace": objects.namespace(image),
            "ownerReferences": [owner],
        },
        "spec": {
            "accessModes": ["ReadWriteMany" if shared else "ReadWriteOnce"],
            "volumeMode": "Filesystem" if shared else "Block",
            "storageClassName": target,
            "resources": {"requests": {"storage": str(_SIZE)}},
        },
    }
