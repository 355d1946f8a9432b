from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import pytest

from hack.scenario import load
from tests.support.cluster.actor_cluster import ActorCluster, ScriptedPods, job
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import JOBS, PODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

NAMESPACE = "harvester-system"
FOREVER = {"node-0": math.inf}


class Given:
    """A Job and its Pods."""

    def __init__(self, stage: ActorCluster) -> None:
        self.stage = stage
        self.script = ScriptedPods()

    async def create(self, *, node: str = "node-0", **spec: Any) -> None:
        given = job("work", command=["upgrade_node.sh", "pre-drain"], node=node, **spec)
        await self.stage.client.create(JOBS, given)

    async def now(self) -> Object:
        return await self.stage.client.get(JOBS, "work", namespace=NAMESPACE)

    async def pods(self) -> list[Object]:
        return (await self.stage.client.list(PODS, namespace=NAMESPACE)).items

    async def until(self, condition: str) -> Object:
        async def reached() -> bool:
            return objects.is_condition_true(await self.now(), condition)

        await eventually(reached, seconds=2000)
        return await self.now()


@pytest.fixture
async def given(request: pytest.FixtureRequest) -> AsyncIterator[Given]:
    dead = getattr(request, "param", ())
    stage = ActorCluster(
        scenario=load("three-nodes").changed(jitter=0.0, nodes={"dead": dead}, durations={"job_sync": 1})
    )
    await stage.prepare(NAMESPACE, groups=("none",))
    await stage.add_node("node-0")
    given = Given(stage)
    async with stage.play(*stage.job_actors(given.script)):
        yield given


async def test_failed_pods_are_replaced_after_10_and_20_seconds(given: Given) -> None:
    given.script.failures = 2
    await given.create()
    done = await given.until("Complete")
    assert (done["status"]["failed"], done["status"]["succeeded"]) == (2, 1)
    starts = sorted(objects.metadata(pod)["creationTimestamp"][-5:-1] for pod in await given.pods())
    seconds = [int(text[:1]) * 60 + int(text[2:]) for text in starts]
    assert 10 <= seconds[1] - seconds[0] <= 13
    assert 20 <= seconds[2] - seconds[1] <= 23


async def test_deadline_kills_the_pod_before_the_job_fails(given: Given) -> None:
    given.script.seconds = FOREVER
    await given.create(activeDeadlineSeconds=5)
    done = await given.until("Failed")
    assert [one["reason"] for one in done["status"]["conditions"]] == ["DeadlineExceeded"] * 2
    await asyncio.sleep(5)
    assert await given.pods() == []


@pytest.mark.parametrize("given", [("node-0",)], indirect=True)
async def test_job_of_dead_kubelet_stays_at_failure_target(given: Given) -> None:
    await given.create(activeDeadlineSeconds=5)
    await given.until("FailureTarget")
    await asyncio.sleep(300)
    assert not objects.is_condition_true(await given.now(), "Failed")


async def test_finished_job_and_its_pods_are_deleted_after_ttl(given: Given) -> None:
    await given.create(ttlSecondsAfterFinished=100)
    await given.until("Complete")
    await asyncio.sleep(90)
    assert await given.pods()
    await asyncio.sleep(20)
    with pytest.raises(NotFound):
        await given.now()
    assert await given.pods() == []


async def test_deleting_a_job_deletes_its_running_pod(given: Given) -> None:
    given.script.seconds = FOREVER
    await given.create()
    await eventually(given.pods)
    await asyncio.sleep(5)
    await given.stage.client.delete(JOBS, "work", namespace=NAMESPACE)
    await asyncio.sleep(5)
    assert await given.pods() == []
