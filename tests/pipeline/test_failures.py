"""Upgrades that fail, from the plan's creation to the next upgrade: one row per way to fail."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.cluster_state import created_objects, overridden_settings, title
from tests.support.cluster.simulate import SECOND, RepairableScenario, Simulate, fault
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, condition, node_states, phases_of, started
from upgrade_manager.api.display import where_it_failed
from upgrade_manager.api.phases import FAILED, PHASE_VALUES
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import PODS, UPGRADE_PLANS, VIRTUAL_MACHINE_IMAGES

pytestmark = pytest.mark.sampled

#: The objects that a failure leaves for a new attempt.
PAYLOAD = (
    "Deployment harvester-system/upgrade-repo",
    "EndpointSlice harvester-system/upgrade-repo-",
    "Service harvester-system/upgrade-repo",
    "VirtualMachineImage harvester-system/upgrade-iso",
)
#: Longer than the quarter of an hour that the system-upgrade-controller leaves to Jobs that ended.
LONG = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One way to fail, and what it looks like."""

    faults: dict[str, Any]
    #: The last phase value before the end.
    last: str
    #: The beginning and the end of the cause; random suffixes are between them.
    cause: tuple[str, str]
    #: Beginnings of the titles of what is kept; each has Pods.
    kept: tuple[str, ...] = ()
    nodes: dict[str, str] = field(default_factory=dict)
    #: The plan that succeeds when the fault is repaired, after the failed one.
    again: dict[str, Any] = field(default_factory=lambda: BY_VERSION)


def failing(last: str, work: str, cause: str, job: str, **states: str) -> Failure:
    """Return the failure of a Job, which is kept, on the second node unless `states` has no state of it."""
    node = SECOND if "second" in states else ""
    nodes = {"first": "node-0", "second": SECOND, "third": "node-1"}
    return Failure(
        faults=fault(work, node),
        last=last,
        cause=(f"{cause} failed ", " times: the last words"),
        kept=(f"Job {job}",),
        nodes={nodes[name]: state for name, state in states.items()},
    )


FAILURES = {
    "the ISO cannot be imported": Failure(
        faults={"image_import": {"attempts": 99, "message": "unexpected EOF"}},
        last="ISODownloading",
        cause=(
            "VirtualMachineImage harvester-system/upgrade-iso: import failed: unexpected EOF. Check the Version's ",
            "EOF. Check the Version's spec.isoURL and spec.isoChecksum, then retry",
        ),
        again=BY_IMAGE,
    ),
    "the upgrade is not allowed": Failure(
        # The Version does not know that minimum.
        faults={"release": {"metadata": {"minUpgradableVersion": "v1.7.5"}}},
        last="MetadataPopulated",
        cause=(
            "upgrade from v1.7.1 to v1.8.0 is not allowed: running version v1.7.1 is too old",
            "v1.7.5 or later first. Create a plan for another release; spec.force: true skips this check",
        ),
        again={**BY_VERSION, "force": True},
    ),
    "images cannot be preloaded on a node": failing(
        "ImagePreloading",
        "prepare",
        f"Node {SECOND}: image preload",
        f"cattle-system/apply-upgrade-image-preload-on-{SECOND}",
        first="ImagePreloaded",
        second="ImagePreloadFailed",
    ),
    "the cluster's components cannot be upgraded": failing(
        "ClusterUpgrading",
        "manifests",
        "The upgrade of the components",
        "harvester-system/upgrade-cluster-upgrade",
        first="ImagePreloaded",
    ),
    "the second node cannot be drained": failing(
        "NodeUpgrading",
        "pre-drain",
        f"Node {SECOND}: pre-drain",
        f"harvester-system/upgrade-node-upgrade-pre-drain-{SECOND}",
        first="PostDrained",
        second="PreDrainFailed",
        third="ImagePreloaded",
    ),
    "the second node's system cannot be upgraded": failing(
        "NodeUpgrading",
        "post-drain",
        f"Node {SECOND}: OS upgrade",
        f"harvester-system/upgrade-node-upgrade-post-drain-{SECOND}",
        first="PostDrained",
        second="PostDrainFailed",
        third="ImagePreloaded",
    ),
}
failures = pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)


def assert_reported(plan: Object, events: list[Object], failure: Failure, *, in_order: bool) -> None:
    """Check the cause in plan and events, and the node states; `in_order` where the order is known."""
    beginning, end = failure.cause
    recorded = PHASE_VALUES[: PHASE_VALUES.index(failure.last) + 1]
    assert phases_of(plan) == [*recorded, FAILED]
    cordoned = [SECOND] if failure.last == "NodeUpgrading" else []
    failed = where_it_failed(plan["status"], cordoned=cordoned)
    assert condition(plan, "Available") == ("False", "Executed", f"{failed}. Next step: see Degraded")
    status, reason, message = condition(plan, "Progressing")
    assert (status, reason) == ("False", "Failed")
    cause, _, log = message.partition(". Log: kubectl logs -n ")
    assert message.startswith(beginning)
    assert cause.endswith(end)
    assert [f"Job {log.replace(' job/', '/')}".startswith(job) for job in failure.kept] == [True] * bool(log)
    assert condition(plan, "Degraded")[:2] == ("True", "UpgradeFailed")
    states = node_states(plan)
    assert states == states | {node: state for node, state in failure.nodes.items() if node == SECOND or in_order}
    warnings = [(event["reason"], event["message"], event["count"]) for event in events if event["type"] == "Warning"]
    assert warnings == [("UpgradeFailed", f"Upgrade failed: {message}", 1)]


async def assert_kept(simulation: Simulation, titles: tuple[str, ...], *, payload: tuple[str, ...] = ()) -> None:
    """Of what the upgrade has made there are the objects whose titles begin so, and their Pods, and no others."""
    found = sorted(await created_objects(simulation))
    kept = [title for title in found if not title.startswith(payload)] if payload else found
    assert len(found) - len(kept) == len(payload)
    assert len(kept) == len(titles)
    assert all(title.startswith(wanted) for title, wanted in zip(kept, titles, strict=True))
    pods = (await simulation.client().list(PODS, label_selector="management.harvesterhci.io/upgrade-plan")).items
    owners = {objects.uid(obj) for obj in await simulation.backend.objects() if title(obj) in kept}
    assert {objects.owner_uid(pod) for pod in pods} == owners


@pytest.mark.rule(
    "api: ISODownload can fail",
    "api: ImagePreload can fail before it starts and while it runs",
    "api: ClusterUpgrade can fail",
    "api: NodeUpgrade can fail",
    "api: failed: Available=False (Executed) with its fixed message",
    "api: failed: Progressing=False (Failed) with the cause as message",
    "api: a failed pre-drain fails the plan",
    "api: a failed post-drain fails the plan",
    "nodes: a node with a failed pre-drain Job is PreDrainFailed",
    "nodes: a node with a failed post-drain Job is PostDrainFailed",
    'nodes: the plan fails with "Node NAME: WORK failed N times: CAUSE", and the command of the log',
    "nodes: when a node fails the states of other nodes are unchanged",
    'pipeline: failure records the event UpgradeFailed "Upgrade failed: CAUSE"',
    "pipeline: ISODownload fails when RetryLimitExceeded is True",
    "pipeline: ImagePreload is entered only for an allowed version step",
    "pipeline: ImagePreload fails when a Job of the Plan has failed",
    "pipeline: NodeUpgrade fails when a node has failed",
    "pipeline: Failed reverts the overrides",
    "pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted",
    "pipeline: Failed removes everything else",
    "workloads: a failed node fails the phase while other nodes are running",
    "nodes: the finalizer of an ended plan is removed after its clean-up",
    "api: force skips the version check before ImagePreload",
    "nodes: a stale hook is logged and not fatal",
    "pipeline: a new plan runs after the previous one has ended",
)
@pytest.mark.servers
@failures
@pytest.mark.parametrize(
    "deleted",
    [
        pytest.param(True, id="deleted at once"),
        pytest.param(False, id="deleted while the next one runs", marks=pytest.mark.full),
    ],
)
@pytest.mark.thin
async def test_cause_is_reported_and_the_next_plan_succeeds(
    simulate: Simulate, failure: Failure, *, deleted: bool
) -> None:
    scenario = RepairableScenario.of(**failure.faults)
    async with simulate(scenario) as simulation:
        before = await overridden_settings(simulation)
        async with started(simulation) as stage:
            failed = await stage.fail()
            await assert_ended(stage, failed, failure, before)
            assert stage.ledger.conflicts == []
            following = replace(stage, name="next")
            scenario.repair()
            if deleted:
                after = await overridden_settings(simulation)
                await stage.delete()
                await assert_kept(simulation, ())
                assert await overridden_settings(simulation) == after
            await following.create_plan(failure.again)
            if not deleted:
                await following.until_node("PreDraining", node="node-0")
                await stage.client.delete(UPGRADE_PLANS, stage.name)
                await stage.until("deleted")
                interval, *_ = await overridden_settings(simulation)
                assert interval == "1800"
            plan = await following.succeed()
        generation = objects.status(failed).get("provisionGeneration", 3)
        assert objects.status(plan)["provisionGeneration"] == generation + 1
        assert await overridden_settings(simulation) == before
        assert await created_objects(simulation, "next") == []
        assert await following.warnings() == []


async def assert_ended(stage: UpgradeRun, plan: Object, failure: Failure, before: list[Any]) -> None:
    """Check the cause, the Jobs that are kept and the settings."""
    simulation, is_real = stage.simulation, stage.simulation.backend.has_controllers
    # In which order others take the nodes is chance, which only the embedded server's dice repeat.
    assert_reported(plan, await stage.events(), failure, in_order=not is_real)
    await (stage.settle() if is_real else asyncio.sleep(LONG))
    has_payload = "ISODownloaded" in phases_of(plan)
    await assert_kept(simulation, failure.kept, payload=PAYLOAD if has_payload else ())
    after = await overridden_settings(simulation)
    assert after[:2] + after[3:] == before[:2] + before[3:]
    # Rancher's strategy holds the nodes that are left.
    assert (after[2] == before[2]) == (failure.last != "NodeUpgrading")
    assert objects.finalizers(await stage.plan()) == []


@pytest.mark.rule("api: ImageCleanup cannot fail")
@pytest.mark.servers
@pytest.mark.real_full
async def test_images_that_stay_do_not_fail_the_upgrade(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**fault("image-cleanup", SECOND))) as simulation:
        before = await overridden_settings(simulation)
        async with started(simulation) as stage:
            plan = await stage.succeed()
            status, reason, message = condition(plan, "ImagesNotRemoved")
            assert (status, reason) == ("True", "CleanupFailed")
            assert SECOND in message
            assert "Job" not in message
            assert node_states(plan)[SECOND] == "ImageCleanFailed"
            assert condition(plan, "Degraded")[0] == "False"
            assert [event["reason"] for event in await stage.events("ImagesNotRemoved")] == ["ImagesNotRemoved"]
            assert await created_objects(simulation) == []
        assert await overridden_settings(simulation) == before


async def test_next_plan_may_use_the_image_of_a_failed_one() -> None:
    scenario = RepairableScenario.of(**fault("manifests"))
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.fail()
        scenario.repair()
        later = replace(stage, name="later")
        await later.create_plan({"image": "upgrade-iso"})
        await later.succeed()
        images = (await stage.client.list(VIRTUAL_MACHINE_IMAGES)).items
        assert "upgrade-iso" in map(objects.name, images)
