"""Whole upgrades, from the plan's creation to its end, in virtual time."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.cluster.simulate import Simulate
from tests.support.managers.announcements import milestone_errors, without_milestones
from tests.support.managers.exactly_once import SUCCESS_EVENTS
from tests.support.managers.upgrade import ENTRIES, UpgradeRun, condition, node_states, started
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS, VIRTUAL_MACHINE_IMAGES


@pytest.mark.rule(
    "api: with image set no Version is read",
    "api: phase values are recorded in order",
    "api: previousVersion is Harvester's version before the upgrade",
    "api: a successful run records a timestamp for each value in order",
    "api: succeeded: Available=False (Executed) with its fixed message",
    "api: succeeded: Progressing=False (Succeeded) with its fixed message",
    "api: succeeded: Degraded=False (ReconcileSuccess)",
    "api: waiting records no event, and a healthy upgrade records no Warning",
    "nodes: the settings are given back before ImageCleanup",
    "pipeline: each phase records events PhaseTransition and PhaseCompleted",
    "pipeline: success records the event UpgradeSucceeded",
    "pipeline: Succeeded reverts the overrides",
    "pipeline: Longhorn's replenishment interval is restored",
    "pipeline: pendingOSImage annotations are removed",
    "pipeline: Succeeded removes the repository, the image that the manager created, Plans and Jobs",
    "pipeline: an image that spec.image names is never removed",
    "workloads: cleanup removes the system-upgrade-controller's labels from the nodes",
)
@pytest.mark.servers
@pytest.mark.parametrize("spec", ENTRIES)
@pytest.mark.thin
async def test_three_node_upgrade_succeeds(simulate: Simulate, spec: dict[str, Any]) -> None:
    async with simulate("three-nodes") as simulation:
        before = await overridden_settings(simulation)
        old = objects.spec(await simulation.client().get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local"))
        async with started(simulation, spec) as stage:
            await stage.until_node("PreDraining")
            assert await overridden_settings(simulation) != before
            await stage.until_recorded("CleaningUp")
            assert (await overridden_settings(simulation))[:3] == before[:3]
            # VMs that the last drain may have stopped are settled with the success.
            owed = {entry["kind"] for entry in objects.status(await stage.plan())["ledger"]}
            assert owed <= {"StoppedVM"}
            plan = await stage.succeed()
            assert objects.status(plan)["ledger"] == []
            assert_reported(plan, spec)
            events = await stage.events()
            announced = [(event["type"], event["message"], event["count"]) for event in without_milestones(events)]
            assert announced == [("Normal", message, 1) for message in SUCCESS_EVENTS]
            assert milestone_errors(events, node_states(plan), single=False) == []
        assert stage.ledger.conflicts == []
        strategy = old["rkeConfig"].get("upgradeStrategy")
        methods = [None, None, {"workloadUpdateMethods": ["LiveMigrate"]}]
        assert await overridden_settings(simulation) == before == ["600", True, strategy, [], [], methods]
        await assert_upgraded(stage, generation=old["rkeConfig"].get("provisionGeneration", 0) + 1)


def assert_reported(plan: Object, spec: dict[str, Any]) -> None:
    """Check the status of a plan that succeeded."""
    assert condition(plan, "Available") == ("False", "Executed", "The upgrade succeeded")
    verdict, reason, message = condition(plan, "Progressing")
    assert (verdict, reason) == ("False", "Succeeded")
    assert re.fullmatch(r"Upgraded from v1\.7\.1 to v1\.8\.0 in [\dhmins ]+ \(3 nodes\)", message)
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")
    status = objects.status(plan)
    assert set(node_states(plan).values()) == {"ImageCleaned"}
    assert status["previousVersion"] == "v1.7.1"
    assert status["releaseMetadata"]["harvester"] == "v1.8.0"
    assert ("version" in status) == ("version" in spec)


async def assert_upgraded(stage: UpgradeRun, *, generation: int) -> None:
    """Check that cluster and nodes run the release, and that the upgrade's objects are removed."""
    client = stage.client
    cluster = objects.spec(await client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local"))
    assert (cluster["kubernetesVersion"], cluster["rkeConfig"]["provisionGeneration"]) == ("v1.35.2+rke2r1", generation)
    assert await created_objects(stage.simulation) == []
    images = [objects.name(image) for image in (await client.list(VIRTUAL_MACHINE_IMAGES)).items]
    assert images == ["harvester-v1.8.0"]
    for node in (await client.list(NODES)).items:
        assert objects.status(node)["nodeInfo"]["osImage"] == "Harvester v1.8.0"


@pytest.mark.rule("blockers: ages are compared by the API server's clock")
@pytest.mark.servers
@pytest.mark.parametrize("skew", [90.0, -90.0], ids=["ahead", "behind"])
@pytest.mark.thin
@pytest.mark.full
async def test_wrong_clock_causes_no_warning(simulate: Simulate, skew: float) -> None:
    async with simulate() as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), skew=skew)
        async with stage.life():
            await stage.create_plan()
            await stage.succeed()
        assert await stage.warnings() == []
        plan = await stage.plan()
        created = parse_time(objects.metadata(plan)["creationTimestamp"])
        (first, *_) = objects.status(plan)["phaseTransitionTimestamps"]
        began = parse_time(first["phaseTransitionTimestamp"])
        assert created is not None
        assert began is not None
        assert abs((began - created).total_seconds()) <= 3
