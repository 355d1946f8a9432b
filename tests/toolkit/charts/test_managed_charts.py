from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden, NotFound
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS
from upgrade_manager.toolkit.charts.chart_repository import upgrade_repository
from upgrade_manager.toolkit.charts.managed_charts import (
    ANNOTATION_GENERATION,
    ANNOTATION_PAUSED,
    HARVESTER,
    HARVESTER_CRD,
    KUBEOVN_CRD,
    LOGGING_CRD,
    MONITORING_CRD,
    UPGRADED,
    chart_missing,
    charts_not_paused,
    charts_not_settled,
    charts_paused,
    pause_charts,
    remove_records,
    unpause_charts,
    upgrade_chart,
    without_effect,
)
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.errors import StepFailed

ABOUT = "ManagedChart fleet-local/harvester"
PAUSED = "; it is paused, set spec.paused to false to continue"


def chart(*, version: str = "1.8.0", paused: bool = False, before: str | None = None, **status: Any) -> Object:
    ready = {
        "observedGeneration": 13,
        "conditions": [{"type": "Ready", "status": "True"}],
        "summary": {"ready": 1, "desiredReady": 1},
    }
    annotations = {} if before is None else {ANNOTATION_GENERATION: before}
    return {
        "metadata": {"name": "harvester", "namespace": "fleet-local", "annotations": annotations},
        "spec": {"version": version, "paused": paused},
        "status": ready | status,
    }


def not_ready(*resources: Object, message: str = "") -> dict[str, Any]:
    return {
        "conditions": [{"type": "Ready", "status": "False", "message": message}],
        "summary": {"ready": 0, "desiredReady": 1, "nonReadyResources": list(resources)},
    }


def deployment(name: str, **summary: Any) -> Object:
    return {"kind": "Deployment", "namespace": "n", "name": name, "summary": summary}


def bundle(*objects: Object, **more: Any) -> Object:
    return {"name": "c/local", "bundleState": "NotReady", "nonReadyStatus": list(objects), **more}


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        pytest.param(chart(), "", id="ready"),
        pytest.param(chart(before="12"), "", id="ready-in-new-generation"),
        pytest.param(chart(paused=True), "", id="ready-and-paused-by-a-user"),
        pytest.param(chart(version="1.7.1"), f"{ABOUT} has version 1.7.1 instead of 1.8.0", id="old-version"),
        pytest.param(chart(before="13"), f"{ABOUT}: Fleet has not deployed version 1.8.0 yet", id="stale"),
        pytest.param(
            chart(before="0", observedGeneration=None),
            f"{ABOUT}: Fleet has not deployed version 1.8.0 yet",
            id="never-deployed",
        ),
        pytest.param(
            chart(before="13", paused=True), f"{ABOUT}: Fleet has not deployed version 1.8.0 yet{PAUSED}", id="paused"
        ),
        pytest.param(
            chart(**not_ready(message="ErrApplied(1) [Cluster fleet-local/local: timed out]")),
            f"{ABOUT} 1.8.0 is not ready: ErrApplied(1) [Cluster fleet-local/local: timed out]",
            id="condition",
        ),
        pytest.param(
            chart(**not_ready({"name": "fleet-local/local", "bundleState": "ErrApplied", "message": "timed out"})),
            f"{ABOUT} 1.8.0 is not ready: fleet-local/local ErrApplied: timed out",
            id="bundle",
        ),
        pytest.param(
            chart(**not_ready(bundle(deployment("a", state="updating", message=["Available: 1/3", "x"])))),
            f"{ABOUT} 1.8.0 is not ready: c/local NotReady: Deployment n/a: Available: 1/3, x",
            id="object",
        ),
        pytest.param(
            chart(**not_ready(bundle(deployment("a", state="updating"), message="timed out"))),
            f"{ABOUT} 1.8.0 is not ready: c/local NotReady: timed out; Deployment n/a: updating",
            id="object-without-message",
        ),
        pytest.param(
            chart(**not_ready({"nonReadyStatus": [{"kind": "Pod", "namespace": "n", "name": "a"}]})),
            f"{ABOUT} 1.8.0 is not ready: unnamed NotReady: Pod n/a: not ready",
            id="object-without-summary",
        ),
        pytest.param(
            chart(**not_ready(bundle(*(deployment(name, state="x") for name in "abcd")))),
            f"{ABOUT} 1.8.0 is not ready: c/local NotReady: Deployment n/a: x; Deployment n/b: x; Deployment n/c: x",
            id="many-objects",
        ),
        pytest.param(
            chart(**not_ready(*({"name": f"r{number}", "bundleState": "Modified"} for number in range(5)))),
            f"{ABOUT} 1.8.0 is not ready: r0 Modified; r1 Modified; r2 Modified; 2 more",
            id="many",
        ),
        pytest.param(
            chart(summary={"ready": 0, "desiredReady": 1}),
            f"{ABOUT} 1.8.0 is not ready: Fleet reports no reason",
            id="summary-only",
        ),
    ],
)
def test_what_a_chart_lacks(obj: Object, words: str) -> None:
    assert without_effect(obj, "1.8.0") == words


@asynccontextmanager
async def charts(folder: Path) -> AsyncIterator[tuple[Client, ToolkitContext]]:
    """Create a cluster whose charts have the old release's versions, and whose repository has the new ones."""
    async with services_world(folder) as world:
        await upgrade_repository(world.context())
        yield world.client, world.context()


async def change(client: Client, name: str, **spec: Any) -> None:
    """Patch the chart, as a user does."""
    await client.patch(MANAGED_CHARTS, name, MergePatch({"spec": spec}), namespace="fleet-local")


async def deploy(client: Client, name: str, *, generation: int | None = 13) -> None:
    """Patch the chart's status, as Fleet does for a new generation of the Bundle."""
    status = MergePatch({"status": {"observedGeneration": generation}})
    await client.patch(MANAGED_CHARTS, name, status, namespace="fleet-local", subresource="status")


async def read(client: Client, name: str) -> tuple[Object, Object]:
    """Return spec and annotations of the chart."""
    found = await client.get(MANAGED_CHARTS, name, namespace="fleet-local")
    return objects.spec(found), objects.annotations_of(found)


async def test_every_chart_is_paused_also_the_optional_one(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        names = ", ".join(f"fleet-local/{name}" for name in (*UPGRADED, KUBEOVN_CRD))
        assert await charts_not_paused(context) == f"ManagedCharts {names} are not paused"
        assert await charts_paused(context) == ""
        await pause_charts(context)
        assert await charts_not_paused(context) == ""
        for name in (*UPGRADED, KUBEOVN_CRD):
            spec, annotations = await read(client, name)
            assert (spec["paused"], annotations) == (True, {ANNOTATION_PAUSED: "false"})
            assert f"fleet-local/{name}" in await charts_paused(context)


async def test_chart_that_a_user_resumes_is_paused_again(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        await pause_charts(context)
        await change(client, HARVESTER, paused=False)
        assert await charts_not_paused(context) == "ManagedCharts fleet-local/harvester are not paused"
        await pause_charts(context)
        await unpause_charts(context)
        spec, annotations = await read(client, HARVESTER)
        assert (spec["paused"], annotations) == (False, {})


async def test_chart_that_a_user_has_paused_stays_paused(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        await change(client, HARVESTER, paused=True)
        assert "fleet-local/harvester," in await charts_not_paused(context)
        # A killed command runs again.
        for _ in range(2):
            await pause_charts(context)
            assert (await read(client, HARVESTER))[1] == {ANNOTATION_PAUSED: "true"}
        await unpause_charts(context)
        spec, annotations = await read(client, HARVESTER)
        assert (spec["paused"], annotations) == (True, {})


async def test_chart_of_the_release_is_not_paused(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        await change(client, HARVESTER_CRD, version="1.8.0")
        await pause_charts(context)
        spec, annotations = await read(client, HARVESTER_CRD)
        assert (spec["paused"], annotations) == (False, {})


async def test_charts_are_resumed_after_a_refusal_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = Client.patch

    async def refuse_harvester(client: Client, resource: Any, name: str, *given: Any, **more: Any) -> Any:
        if name == HARVESTER:
            raise Forbidden("refused")
        return await patch(client, resource, name, *given, **more)

    async with charts(tmp_path) as (client, context):
        await pause_charts(context)
        with monkeypatch.context() as refusing:
            refusing.setattr(Client, "patch", refuse_harvester)
            with pytest.raises(Forbidden, match="refused"):
                await unpause_charts(context)
        assert await charts_paused(context) == "ManagedCharts fleet-local/harvester are not resumed"
        paused = {name for name in (*UPGRADED, KUBEOVN_CRD) if (await read(client, name))[0]["paused"]}
        assert paused == {HARVESTER}


VERSIONS = {
    HARVESTER_CRD: "1.8.0",
    HARVESTER: "1.8.0",
    MONITORING_CRD: "109.0.1+up80.9.1",
    LOGGING_CRD: "109.0.0+up6.0.2",
    KUBEOVN_CRD: "1.15.4",
}


@pytest.mark.parametrize(("name", "version"), VERSIONS.items())
async def test_chart_is_upgraded_and_resumed_once(tmp_path: Path, name: str, version: str) -> None:
    async with charts(tmp_path) as (client, context):
        await pause_charts(context)
        old = (await read(client, name))[0]["version"]
        about = f"ManagedChart fleet-local/{name}"
        assert await chart_missing(name)(context) == f"{about} has version {old} instead of {version}"
        # A killed command runs again.
        for _ in range(2):
            await upgrade_chart(name)(context)
            spec, annotations = await read(client, name)
            # With an equal Bundle, Fleet's observedGeneration would never grow.
            assert (spec["version"], spec["timeoutSeconds"], spec["paused"]) == (version, 601, False)
            assert annotations[ANNOTATION_GENERATION] == "12"
        assert await chart_missing(name)(context) == f"{about}: Fleet has not deployed version {version} yet"
        await deploy(client, name)
        assert await chart_missing(name)(context) == ""


@pytest.mark.parametrize(("before", "after"), [(None, 601), (900, 901)])
async def test_timeout_of_the_chart_is_changed(tmp_path: Path, before: int | None, after: int) -> None:
    async with charts(tmp_path) as (client, context):
        await change(client, HARVESTER, timeoutSeconds=before)
        await deploy(client, HARVESTER, generation=None)
        await upgrade_chart(HARVESTER)(context)
        spec, annotations = await read(client, HARVESTER)
        assert (spec["timeoutSeconds"], annotations) == (after, {ANNOTATION_GENERATION: "0"})


async def test_charts_settle_in_turn_and_lose_their_records(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        assert await charts_not_settled(context) == (
            "ManagedChart fleet-local/harvester-crd has version 1.7.1 instead of 1.8.0"
        )
        for name in VERSIONS:
            await upgrade_chart(name)(context)
        for name, version in VERSIONS.items():
            stale = f"ManagedChart fleet-local/{name}: Fleet has not deployed version {version} yet"
            assert await charts_not_settled(context) == stale
            await remove_records(context)
            assert await charts_not_settled(context) == stale
            await deploy(client, name)
            recorded = f"ManagedChart fleet-local/{name} has the annotation {ANNOTATION_GENERATION}"
            assert await charts_not_settled(context) == recorded
            await remove_records(context)
            assert (await read(client, name))[1] == {}
        assert await charts_not_settled(context) == ""


async def test_optional_chart_follows_harvesters(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        await change(client, HARVESTER, version="1.8.0")
        await pause_charts(context)
        assert not (await read(client, KUBEOVN_CRD))[0]["paused"]
        await client.delete(MANAGED_CHARTS, KUBEOVN_CRD, namespace="fleet-local")
        await upgrade_chart(KUBEOVN_CRD)(context)
        assert await chart_missing(KUBEOVN_CRD)(context) == ""


async def test_missing_chart_fails_the_step(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        await client.delete(MANAGED_CHARTS, HARVESTER, namespace="fleet-local")
        text = "ManagedChart fleet-local/harvester does not exist; is this a Harvester cluster?"
        with pytest.raises(StepFailed) as error:
            await upgrade_chart(HARVESTER)(context)
        assert str(error.value) == text
        assert isinstance(error.value.__cause__, NotFound)
