"""kubectl delete and wait: finalizers, selection, dependents, conditions, timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.kubectl import PLANS, Cluster, manifest

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


MAPS = "/api/v1/namespaces/default/configmaps"


async def test_plan_is_deleted_once(cluster: Cluster) -> None:
    await cluster.plan()
    outcome = await cluster.succeed("delete", "up", "demo")
    assert outcome.out.startswith('upgradeplan.management.harvesterhci.io "demo" deleted')
    assert (await cluster.succeed("get", "up", "-o", "name")).out == ""
    assert 'upgradeplans.management.harvesterhci.io "demo" not found' in await cluster.fail("delete", "up", "demo")
    assert (await cluster.succeed("delete", "up", "demo", "--ignore-not-found")).err == ""


async def test_delete_waits_for_finalizers(cluster: Cluster) -> None:
    plan = manifest()
    plan["metadata"]["finalizers"] = ["management.harvesterhci.io/upgradeplan-cleanup"]
    await cluster.wire.post(PLANS, plan)
    waiting = await cluster.kubectl("delete", "up", "demo", "--timeout=100ms")
    assert waiting.code == 1
    assert "timed out waiting for the condition on upgradeplans/demo" in waiting.err
    metadata = (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.metadata}")).json
    assert metadata["deletionTimestamp"]
    await cluster.succeed("patch", "up", "demo", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert (await cluster.succeed("get", "up", "-o", "name")).out == ""


async def test_plans_are_deleted_by_label_or_all(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        await cluster.plan(name)
    await cluster.succeed("label", "up", "a", "team=blue")
    assert len((await cluster.succeed("delete", "up", "-l", "team=blue")).lines) == 1
    assert len((await cluster.succeed("delete", "up", "--all")).lines) == 2


@pytest.mark.parametrize("cascade", ["background", "foreground"])
async def test_only_dependents_are_deleted_with_their_owner(cluster: Cluster, cascade: str) -> None:
    plan = await cluster.plan()
    uid = plan["metadata"]["uid"]
    labels = {"management.harvesterhci.io/upgrade-plan-uid": uid}
    await cluster.wire.post(MAPS, {"metadata": {"name": "labeled", "labels": labels}})
    owner = {"apiVersion": plan["apiVersion"], "kind": "UpgradePlan", "name": "demo", "uid": uid, "controller": True}
    await cluster.wire.post(MAPS, {"metadata": {"name": "child", "ownerReferences": [owner]}})
    await cluster.succeed("delete", "up", "demo", f"--cascade={cascade}")
    await cluster.succeed("wait", "--for=delete", "configmap/child", "--timeout=120s")
    assert (await cluster.succeed("get", "configmap", "labeled", "-o", "name")).out == "configmap/labeled\n"


#: The waits for the end of an upgrade.
FINISHED = ["--for=condition=Progressing=False", "--for=jsonpath={.status.currentPhase}=Succeeded"]


def progressing(status: str) -> dict[str, Any]:
    condition = {"type": "Progressing", "status": status, "reason": "Succeeded", "message": "", "observedGeneration": 1}
    condition |= {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"status": {"currentPhase": "Succeeded" if status == "False" else "Initializing", "conditions": [condition]}}


@pytest.mark.rule("api: kubectl wait for Progressing=False works", "api: kubectl wait for currentPhase=Succeeded works")
@pytest.mark.parametrize("what", FINISHED)
async def test_wait_returns_when_the_condition_is_met(cluster: Cluster, what: str) -> None:
    await cluster.plan()
    await cluster.wire.patch(f"{PLANS}/demo/status", progressing("True"))
    async with cluster.running("wait", what, "up/demo", "--timeout=30s") as output:
        await cluster.wire.patch(f"{PLANS}/demo/status", progressing("False"))
        assert await output.readline() == b"upgradeplan.management.harvesterhci.io/demo condition met\n"


async def test_wait_times_out(cluster: Cluster) -> None:
    message = await cluster.fail("wait", "--for=condition=Available", "up/demo", "--timeout=100ms")
    assert 'upgradeplans.management.harvesterhci.io "demo" not found' in message
    await cluster.plan()
    for what in FINISHED:
        message = await cluster.fail("wait", what, "up/demo", "--timeout=100ms")
        assert message == "error: timed out waiting for the condition on upgradeplans/demo\n"


async def test_wait_returns_after_a_deletion(cluster: Cluster) -> None:
    await cluster.plan()
    async with cluster.running("wait", "--for=delete", "up/demo", "--timeout=30s") as output:
        await cluster.wire.delete(f"{PLANS}/demo")
        assert await output.readline() in {b"upgradeplan.management.harvesterhci.io/demo condition met\n", b""}
