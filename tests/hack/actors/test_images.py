from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.images import ImageController
from hack.cluster.scenario import load
from tests.support.actor_cluster import ISO_URL, ActorCluster
from tests.support.polling import eventually
from tests.support.upgrade_script import image
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

NAMESPACE = "harvester-system"


class Importing:
    """One image, from its creation on."""

    def __init__(self, stage: ActorCluster) -> None:
        self.stage = stage
        self.seen: list[Object] = []

    async def create(self, **spec: Any) -> None:
        url = spec.pop("url", ISO_URL)
        await self.stage.client.create(VIRTUAL_MACHINE_IMAGES, image("iso", url, **spec))

    async def now(self) -> Object:
        return await self.stage.client.get(VIRTUAL_MACHINE_IMAGES, "iso", namespace=NAMESPACE)

    async def until(self, condition: str, status: str = "True") -> Object:
        async def reached() -> bool:
            found = await self.now()
            self.seen.append(found)
            return (objects.condition(found, condition) or {}).get("status") == status

        await eventually(reached)
        return await self.now()


async def importing(**changes: Any) -> tuple[Importing, ImageController]:
    stage = ActorCluster(scenario=load("three-nodes").changed(jitter=0.0, **changes))
    await stage.prepare(NAMESPACE, groups=("harvesterhci.io",))
    return Importing(stage), ImageController(stage.context.for_actor("images"))


async def test_image_import_reports_progress_and_labels_at_the_end() -> None:
    given, actor = await importing()
    async with given.stage.play(actor):
        await given.create()
        done = await given.until("Imported")
    progress = [objects.status(one).get("progress") or 0 for one in given.seen]
    assert progress == sorted(progress)
    assert len(set(progress)) > 2
    assert all(objects.labels(one) == {} for one in given.seen[:-1])
    assert objects.labels(done) == {"harvesterhci.io/imageDisplayName": "iso"}
    assert done["status"]["progress"] == 100
    running = next(one for one in given.seen if objects.condition(one, "Initialized"))
    assert (objects.condition(running, "Imported") or {})["reason"] == "Importing"


async def test_failed_imports_are_counted_and_retried() -> None:
    given, actor = await importing(image_import={"attempts": 2, "message": "unexpected EOF"})
    async with given.stage.play(actor):
        await given.create()
        done = await given.until("Imported")
    assert done["status"]["failed"] == 2
    failing = [one for one in given.seen if objects.status(one).get("failed") == 1]
    limit = objects.condition(failing[0], "RetryLimitExceeded") or {}
    assert (limit["status"], limit["message"]) == ("False", "unexpected EOF")
    assert (objects.condition(failing[0], "Imported") or {})["status"] == "Unknown"
    assert "message" not in (objects.condition(done, "RetryLimitExceeded") or {})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"url": "http://elsewhere.example.com/a.iso"}, "no such host", id="a wrong address"),
        pytest.param({"targetStorageClassName": "fast"}, "not found", id="a storage class that does not exist"),
    ],
)
async def test_permanent_import_failure_exceeds_the_limit(spec: dict[str, Any], said: str) -> None:
    given, actor = await importing()
    async with given.stage.play(actor):
        await given.create(retry=1, **spec)
        done = await given.until("RetryLimitExceeded")
        await asyncio.sleep(60)
        assert await given.now() == done
    assert done["status"]["failed"] == 2
    assert (objects.condition(done, "Imported") or {})["status"] == "False"
    assert said in (objects.condition(done, "RetryLimitExceeded") or {})["message"]
