from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.jobs import JobController
from hack.actors.kubelet import Kubelet
from hack.actors.scheduler import Scheduler
from hack.actors.toolkit import Ended
from hack.cluster.scenario import load
from tests.support.actor_cluster import ActorCluster
from tests.support.polling import eventually
from tests.support.upgrade_script import job
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, JOBS, PODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.actors.context import Actor
    from upgrade_manager.kube.objects import Object

NAMESPACE = "harvester-system"


class Script:
    """Ends every container after a second, the first ones badly."""

    def __init__(self) -> None:
        self.failures = 0
        self.forever = False
        self._ends: dict[str, float] = {}

    async def look(self, pod: Object) -> Ended | float | None:
        if self.forever:
            return None
        now = asyncio.get_running_loop().time()
        end = self._ends.setdefault(objects.uid(pod), now + 1)
        if end > now:
            return end - now
        self.failures -= 1
        return Ended(1 if self.failures >= 0 else 0, "out of luck" if self.failures >= 0 else "")

    def forget(self, pod: Object) -> None:
        self._ends.pop(objects.uid(pod), None)


class Given:
    """A Job, and those who play it."""

    def __init__(self, stage: ActorCluster) -> None:
        self.stage = stage
        self.script = Script()

    async def create(self, *, node: str = "node-0", **spec: Any) -> None:
        given = job("work", "demo", command=["upgrade_node.sh", "pre-drain"], node=node, **spec)
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

    async def patch(self, **spec: Any) -> None:
        await self.stage.client.patch(JOBS, "work", MergePatch({"spec": spec}), namespace=NAMESPACE)


@pytest.fixture
async def given(request: pytest.FixtureRequest) -> AsyncIterator[Given]:
    dead = getattr(request, "param", ())
    stage = ActorCluster(
        scenario=load("three-nodes").changed(jitter=0.0, nodes={"dead": dead}, durations={"job_sync": 1})
    )
    await stage.prepare(NAMESPACE, groups=("none",))
    await stage.add_node("node-0")
    given = Given(stage)
    context = stage.context
    actors: list[Actor] = [JobController(context), Scheduler(context), Kubelet(context, given.script)]
    async with stage.play(*actors):
        yield given


async def test_job_runs_one_pod_and_completes(given: Given) -> None:
    await given.create()
    done = await given.until("Complete")
    assert done["status"]["succeeded"] == 1
    assert [one["type"] for one in done["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert done["status"]["completionTime"]
    (pod,) = await given.pods()
    assert objects.labels(pod)["job-name"] == "work"
    assert objects.spec(pod)["nodeName"] == "node-0"
    assert objects.finalizers(pod) == []
    reasons = [event["reason"] for event in (await given.stage.client.list(EVENTS, namespace=NAMESPACE)).items]
    assert sorted(reasons) == ["Completed", "SuccessfulCreate"]


async def test_failed_pods_are_replaced_after_10_and_20_seconds(given: Given) -> None:
    given.script.failures = 2
    await given.create()
    done = await given.until("Complete")
    assert (done["status"]["failed"], done["status"]["succeeded"]) == (2, 1)
    starts = sorted(objects.metadata(pod)["creationTimestamp"][-5:-1] for pod in await given.pods())
    seconds = [int(text[:1]) * 60 + int(text[2:]) for text in starts]
    assert 10 <= seconds[1] - seconds[0] <= 13
    assert 20 <= seconds[2] - seconds[1] <= 23


async def test_backoff_limit_fails_job_and_keeps_termination_message(given: Given) -> None:
    given.script.failures = 99
    await given.create(backoffLimit=1)
    done = await given.until("Failed")
    types = [(one["type"], one["reason"]) for one in done["status"]["conditions"]]
    assert types == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    assert done["status"]["failed"] == 2
    states = [pod["status"]["containerStatuses"][0]["state"] for pod in await given.pods()]
    assert [state["terminated"]["message"] for state in states] == ["out of luck", "out of luck"]


async def test_deadline_kills_the_pod_before_the_job_fails(given: Given) -> None:
    given.script.forever = True
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


async def test_suspended_job_has_no_pod_until_resumed(given: Given) -> None:
    await given.create(suspend=True)
    suspended = await given.until("Suspended")
    await asyncio.sleep(30)
    assert await given.pods() == []
    assert "startTime" not in suspended["status"]
    await given.patch(suspend=False)
    done = await given.until("Complete")
    assert (objects.condition(done, "Suspended") or {})["reason"] == "JobResumed"


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
    given.script.forever = True
    await given.create()
    await eventually(given.pods)
    await asyncio.sleep(5)
    await given.stage.client.delete(JOBS, "work", namespace=NAMESPACE)
    await asyncio.sleep(5)
    assert await given.pods() == []
