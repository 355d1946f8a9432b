from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.images import ImageController
from tests.support.cluster.actor_cluster import ISO_URL, ActorCluster
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

NAMESPACE = "harvester-system"


class Import:
    """An image, from its creation on."""

    def __init__(self, stage: ActorCluster) -> None:
        self.stage = stage
        self.seen: list[Object] = []

    async def now(self) -> Object:
        return await self.stage.client.get(VIRTUAL_MACHINE_IMAGES, "iso", namespace=NAMESPACE)

    async def until(self, condition: str) -> Object:
        async def reached() -> Object | None:
            self.seen.append(await self.now())
            return self.seen[-1] if objects.is_condition_true(self.seen[-1], condition) else None

        found: Object = await eventually(reached)
        return found


@asynccontextmanager
async def importing(**spec: Any) -> AsyncIterator[Import]:
    stage = ActorCluster()
    await stage.prepare(NAMESPACE, groups=("harvesterhci.io",))
    default = {"backend": "cdi", "displayName": "iso", "sourceType": "download", "url": ISO_URL, "retry": 3}
    image = {
        "apiVersion": VIRTUAL_MACHINE_IMAGES.api_version,
        "kind": VIRTUAL_MACHINE_IMAGES.kind,
        "metadata": {"name": "iso", "namespace": NAMESPACE},
        "spec": default | {"targetStorageClassName": "longhorn-static"} | spec,
    }
    async with stage.play(ImageController(stage.context.for_actor("images"))):
        await stage.client.create(VIRTUAL_MACHINE_IMAGES, image)
        yield Import(stage)


async def test_image_import_reports_progress_and_labels_at_the_end() -> None:
    async with importing() as given:
        done = await given.until("Imported")
    progress = [objects.status(one).get("progress") or 0 for one in given.seen]
    assert progress == sorted(progress)
    assert len(set(progress)) > 2
    assert all(objects.labels(one) == {} for one in given.seen[:-1])
    assert objects.labels(done) == {"harvesterhci.io/imageDisplayName": "iso"}
    assert done["status"]["progress"] == 100
    running = next(one for one in given.seen if objects.condition(one, "Initialized"))
    assert objects.condition(running, "Imported")["reason"] == "Importing"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"url": "http://elsewhere.example.com/a.iso"}, "no such host", id="a wrong address"),
        pytest.param({"targetStorageClassName": "fast"}, "not found", id="a storage class that does not exist"),
    ],
)
async def test_permanent_import_failure_exceeds_the_limit(spec: dict[str, Any], message: str) -> None:
    async with importing(retry=1, **spec) as given:
        done = await given.until("RetryLimitExceeded")
        await asyncio.sleep(60)
        assert await given.now() == done
    assert done["status"]["failed"] == 2
    assert objects.condition(done, "Imported")["status"] == "False"
    assert message in objects.condition(done, "RetryLimitExceeded")["message"]
