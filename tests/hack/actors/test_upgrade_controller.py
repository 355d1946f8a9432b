"""The system-upgrade-controller's rules beyond the recordings, after suc-observed.md."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.upgrade_controller import UpgradeController
from hack.scenario import load
from tests.support.cluster.actor_cluster import ActorCluster, ScriptedPods
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, SUC_PLANS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

NAMESPACE = "cattle-system"
NODE_NAMES = ("n1", "n2", "n3")
SPEC: dict[str, Any] = {
    "concurrency": 3,
    "jobActiveDeadlineSecs": 21600,
    "version": "v1.8.0",
    "serviceAccountName": "system-upgrade-controller",
    "nodeSelector": {"matchLabels": {"harvesterhci.io/managed": "true"}},
    "upgrade": {"image": "rancher/harvester-upgrade-toolkit", "command": ["upgrade_node.sh"], "args": ["prepare"]},
}


class Given:
    """Three nodes, and one Plan."""

    def __init__(self, stage: ActorCluster) -> None:
        self.stage = stage
        self.client = stage.client
        self.containers = ScriptedPods()

    async def create(self, **spec: Any) -> None:
        plan = {
            "apiVersion": SUC_PLANS.api_version,
            "kind": SUC_PLANS.kind,
            "metadata": {"name": "work", "namespace": NAMESPACE},
            "spec": {key: value for key, value in (SPEC | spec).items() if value is not ...},
        }
        await self.client.create(SUC_PLANS, plan)

    async def patch(self, **spec: Any) -> None:
        await self.client.patch(SUC_PLANS, "work", MergePatch({"spec": spec}), namespace=NAMESPACE)

    async def plan(self) -> Object:
        return await self.client.get(SUC_PLANS, "work", namespace=NAMESPACE)

    async def complete(self) -> tuple[str, str]:
        found = objects.condition(await self.plan(), "Complete")
        return found.get("status") or "", found.get("reason") or ""

    async def until(self, status: str, reason: str) -> Object:
        async def reached() -> bool:
            return await self.complete() == (status, reason)

        await eventually(reached)
        return await self.plan()

    async def jobs(self) -> list[Object]:
        return (await self.client.list(JOBS, namespace=NAMESPACE)).items


@pytest.fixture
async def given() -> AsyncIterator[Given]:
    settings = {"backoff_limit": 0, "deadline": 900}
    scenario = load("three-nodes").changed(jitter=0.0, upgrade_controller=settings)
    stage = ActorCluster(scenario=scenario)
    await stage.prepare(NAMESPACE, groups=("upgrade.cattle.io",))
    for name in NODE_NAMES:
        await stage.add_node(name)
    given = Given(stage)
    async with stage.play(UpgradeController(stage.context.for_actor("suc")), *stage.job_actors(given.containers)):
        yield given


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"concurrency": 0}, id="no concurrency at all"),
        pytest.param({"concurrency": -1}, id="a negative concurrency"),
        pytest.param({"concurrency": ...}, id="an absent concurrency"),
        pytest.param({"nodeSelector": ...}, id="an absent selector"),
        pytest.param({"nodeSelector": {"matchLabels": {"a": "b"}}}, id="a selector that matches nothing"),
    ],
)
async def test_plan_without_nodes_is_complete(given: Given, spec: dict[str, Any]) -> None:
    await given.create(**spec)
    plan = await given.until("True", "Complete")
    assert "applying" not in objects.status(plan)
    assert await given.jobs() == []


@pytest.mark.parametrize(
    ("seconds", "deadline"), [(..., 900), (-5, 900), (0, None), (5, 5)], ids=["absent", "negative", "zero", "given"]
)
async def test_job_deadline_rules(given: Given, seconds: Any, deadline: int | None) -> None:
    await given.create(jobActiveDeadlineSecs=seconds)
    await given.until("True", "Complete")
    assert {objects.spec(job).get("activeDeadlineSeconds") for job in await given.jobs()} == {deadline}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"version": ...}, "are both empty", id="neither version nor channel"),
        pytest.param({"window": {"days": ["mo"]}}, "does not support spec.window", id="unsupported field"),
        pytest.param(
            {"secrets": [{"name": "none", "path": "x"}]}, "does not support spec.secrets", id="unsupported Secret"
        ),
    ],
)
async def test_invalid_plan_reports_the_reason(given: Given, spec: dict[str, Any], message: str) -> None:
    await given.create(**spec)
    plan = await given.until("False", "NotReady")
    assert message in str(objects.status(plan)["conditions"])
    await asyncio.sleep(30)
    assert await given.jobs() == []
