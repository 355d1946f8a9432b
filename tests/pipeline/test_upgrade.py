"""Whole upgrades, from the plan's creation to its end, in virtual time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from hack import virtual_time
from hack.simulation import Simulation
from tests.support.cluster_state import end_state, title
from tests.support.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, condition, phases_of
from upgrade_manager.api.phases import PHASE_VALUES, PHASES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import (
    ADDONS,
    DEPLOYMENTS,
    JOBS,
    LONGHORN_SETTINGS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)

if TYPE_CHECKING:
    from tests.support.simulate import Simulate

ENTRIES = [pytest.param(BY_VERSION, id="by-version"), pytest.param(BY_IMAGE, id="by-image")]


@pytest.mark.rule(
    "api: with image set no Version is read",
    "api: phase values are recorded in order",
    "api: previousVersion is Harvester's version before the upgrade",
    "api: a successful run records 17 timestamps in order",
    "api: succeeded: Available=False (Executed) with its fixed message",
    "api: succeeded: Progressing=False (Succeeded) with its fixed message",
    "api: succeeded: Degraded=False (ReconcileSuccess)",
)
@pytest.mark.servers
@pytest.mark.parametrize("spec", ENTRIES)
async def test_three_node_upgrade_succeeds(simulate: Simulate, spec: dict[str, Any]) -> None:
    async with simulate("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(spec)
            assert await stage.until_ended() == SUCCEEDED
        plan = await stage.plan()
    assert phases_of(plan) == [*PHASE_VALUES, SUCCEEDED]
    assert condition(plan, "Available") == ("False", "Executed", "The upgrade ended: Succeeded.")
    verdict, reason, message = condition(plan, "Progressing")
    assert (verdict, reason) == ("False", "Succeeded")
    assert re.fullmatch(r"Upgraded from v1\.7\.1 to v1\.8\.0 in [\dhmins ]+ \(3 nodes\)", message)
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")
    status = objects.status(plan)
    assert {entry["state"] for entry in status["nodeUpgradeStatuses"].values()} == {"ImageCleaned"}
    assert status["previousVersion"] == "v1.7.1"
    assert status["releaseMetadata"]["harvester"] == "v1.8.0"
    assert ("version" in status) == ("version" in spec)
    assert stage.ledger.conflicts == []


@pytest.mark.rule(
    "api: waiting records no event, and a healthy upgrade records no Warning",
    "pipeline: each phase records events PhaseTransition and PhaseCompleted",
    "pipeline: success records the event UpgradeSucceeded",
)
@pytest.mark.servers
@pytest.mark.parametrize("spec", ENTRIES)
async def test_each_phase_has_one_event_and_no_warning(simulate: Simulate, spec: dict[str, Any]) -> None:
    async with simulate("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(spec)
            await stage.until_ended()
        events = await stage.events()
    expected = [f"{verb} {phase}" for phase in PHASES for verb in ("Entering phase", "Completed phase")]
    assert [event["message"] for event in events] == [*expected, "Upgrade completed successfully"]
    assert {event["type"] for event in events} == {"Normal"}
    assert {event["count"] for event in events} == {1}


@pytest.mark.rule(
    "pipeline: Succeeded reverts the overrides",
    "pipeline: Longhorn's replenishment interval is restored",
    "pipeline: pendingOSImage annotations are removed",
    "pipeline: Succeeded removes the repository, the image that the manager created, Plans and Jobs",
    "pipeline: an image that spec.image names is never removed",
    "workloads: cleanup removes the system-upgrade-controller's labels from the nodes",
)
@pytest.mark.servers
@pytest.mark.parametrize("spec", ENTRIES)
async def test_success_restores_settings_and_removes_objects(simulate: Simulate, spec: dict[str, Any]) -> None:
    async with simulate("three-nodes") as simulation:
        client = simulation.client()
        before = await client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(spec)
            await stage.until_ended()
            await stage.settle()
        cluster = await client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        interval = await client.get(
            LONGHORN_SETTINGS, "replica-replenishment-wait-interval", namespace="longhorn-system"
        )
        descheduler = await client.get(ADDONS, "descheduler", namespace="kube-system")
        nodes = (await client.list(NODES)).items
        left = [
            title(obj)
            for resource in (DEPLOYMENTS, SERVICES, JOBS, SUC_PLANS, SECRETS, VIRTUAL_MACHINE_IMAGES)
            for obj in (await client.list(resource)).items
            if "management.harvesterhci.io/upgrade-plan" in objects.labels(obj)
        ]
        images = [objects.name(image) for image in (await client.list(VIRTUAL_MACHINE_IMAGES)).items]
    old, new = objects.spec(before)["rkeConfig"], objects.spec(cluster)["rkeConfig"]
    assert new["provisionGeneration"] == old.get("provisionGeneration", 0) + 1
    assert new.get("upgradeStrategy") == old.get("upgradeStrategy")
    assert objects.spec(cluster)["kubernetesVersion"] == "v1.35.2+rke2r1"
    assert interval["value"] == "600"
    assert objects.spec(descheduler)["enabled"] is True
    assert left == []
    assert images == ["harvester-v1.8.0"]
    for node in nodes:
        assert objects.status(node)["nodeInfo"]["osImage"] == "Harvester v1.8.0"
        assert not any(key.startswith("plan.upgrade.cattle.io/") for key in objects.labels(node))
        assert "management.harvesterhci.io/pendingOSImage" not in objects.annotations_of(node)


@pytest.mark.rule(
    "api: blocked: Available=False (ConcurrentUpgradeBlocked) names the other plan",
    "api: a blocked plan gets no finalizer",
    "pipeline: while one plan has Progressing=True others are blocked",
    "pipeline: a blocked plan has one Warning event, ConcurrentUpgradeBlocked",
    "pipeline: a blocked plan stays blocked",
)
@pytest.mark.servers
async def test_second_plan_is_blocked(simulate: Simulate) -> None:
    async with simulate("three-nodes") as simulation:
        first, second = (
            await UpgradeRun.set_up(simulation, name="first"),
            await UpgradeRun.set_up(simulation, name="second"),
        )
        async with first.life():
            await first.create_plan(BY_VERSION)
            await second.create_plan(BY_VERSION)
            assert await first.until_ended() == SUCCEEDED
        async with first.life(seed="successor"):
            await first.settle()
        plan, events = await second.plan(), await second.events()
    status, reason, message = condition(plan, "Available")
    assert (status, reason) == ("False", "ConcurrentUpgradeBlocked")
    assert "first" in message
    assert objects.condition(plan, "Progressing") is None
    assert phases_of(plan) == []
    assert objects.finalizers(plan) == []
    assert [(event["type"], event["reason"], event["count"]) for event in events] == [
        ("Warning", "ConcurrentUpgradeBlocked", 1)
    ]


@pytest.mark.full
def test_same_seed_gives_an_identical_run() -> None:
    async def upgrade(seed: int) -> str:
        async with Simulation("three-nodes", seed=seed) as simulation:
            stage = await UpgradeRun.set_up(simulation)
            async with stage.life():
                await stage.create_plan(BY_VERSION)
                await stage.until_ended()
            return await simulation.dump()

    first = virtual_time.run(upgrade(7))
    assert virtual_time.run(upgrade(7)) == first
    assert virtual_time.run(upgrade(8)) != first


@pytest.mark.rule("pipeline: deletion in any phase runs the same cleanup and then removes the finalizer")
@pytest.mark.servers
@pytest.mark.parametrize("phase", ["ISODownloading", "ImagePreloading", "ClusterUpgrading", "NodeUpgrading"])
async def test_plan_deleted_during_the_upgrade_leaves_nothing(simulate: Simulate, phase: str) -> None:
    async with simulate("three-nodes") as simulation:
        client = simulation.client()
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until(phase)
            await client.delete(UPGRADE_PLANS, stage.name)
            await stage.until("deleted")
            await stage.settle()
        state = await end_state(simulation)
    left = [title for title, obj in state.items() if "management.harvesterhci.io/upgrade-plan" in objects.labels(obj)]
    assert left == []
    interval = state["Setting longhorn-system/replica-replenishment-wait-interval"]
    assert interval["value"] == "600"
    assert not any("upgrade" in str(key) for key in objects.labels(state["Node node-0"]))
