"""The verdicts about an attempt after a failure: one row for each check that differs from that of a new plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.cluster_reader import MemoryReader, named, node
from tests.support.cluster.instances import GPU, instance
from tests.support.webhook import webhook
from tests.support.webhook.admission_messages import machine
from tests.webhook.test_admission import request
from upgrade_manager.api.keys import ANNOTATION_CONTINUE
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.kube import resources
from upgrade_manager.kube.objects import Object
from webhook.attempt import checks_of
from webhook.catalogue import CHECKS
from webhook.cluster import ClusterReader, Listing, LiveReader

NODES = [node(f"node-{number}", machine=f"m-{number}", cordoned=number == 2) for number in range(3)]
MACHINES = [machine(f"m-{number}", "Running", f"node-{number}") for number in range(3)]
IMAGE = named("upgrade-iso", "harvester-system")
RUNNING = named(
    "b", status={"currentPhase": "NodeUpgrading", "conditions": [{"type": "Progressing", "status": "True"}]}
)
ADDON = named("logging", "cattle-logging-system", spec={"enabled": True}, status={"status": "AddonEnabling"})
#: VMs that cannot be migrated, on a node that is done and on one that is left.
DONE, LEFT = instance(hostDevices=[GPU], on="node-0"), instance(hostDevices=[GPU], on="node-1")


class Changed:
    """A healthy cluster with other objects of some kinds."""

    def __init__(self, healthy: ClusterReader, changes: dict[Any, list[Any]]) -> None:
        self._healthy = healthy
        self._others = MemoryReader(changes)
        self._changed = changes

    async def list(self, listing: Listing) -> Sequence[Object]:
        return await (self._others if listing.resource in self._changed else self._healthy).list(listing)


def failed(*, in_phase: str, attempt: int = 1) -> Object:
    """Return a plan that has failed there on its second node."""
    reached = PHASE_VALUES[: PHASE_VALUES.index(in_phase) + 1]
    states = {"node-0": {"state": "PostDrained"}, "node-1": {"state": "PreDrainFailed"}}
    status = {
        "currentPhase": "Failed",
        "isoImageID": "upgrade-iso",
        "phaseTransitionTimestamps": [{"phase": phase} for phase in [*reached, "Failed"]],
        "nodeUpgradeStatuses": states,
    }
    return {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0", "attempt": attempt}, "status": status}


@pytest.mark.parametrize(
    ("phase", "changes", "denied", "warned"),
    [
        pytest.param("NodeUpgrading", {}, "", "", id="nothing has changed"),
        pytest.param(
            "NodeUpgrading",
            {resources.VIRTUAL_MACHINE_IMAGES: []},
            "VirtualMachineImage harvester-system/upgrade-iso does not exist, so that no attempt can go on with it",
            "",
            id="the image was deleted",
        ),
        pytest.param("ISODownloading", {resources.VIRTUAL_MACHINE_IMAGES: []}, "", "", id="no image was imported"),
        pytest.param(
            "NodeUpgrading", {resources.UPGRADE_PLANS: [RUNNING]}, "UpgradePlan b is in progress", "", id="another plan"
        ),
        pytest.param(
            "NodeUpgrading",
            {resources.NODES: NODES, resources.MACHINES: MACHINES},
            "Node node-2 is cordoned",
            "",
            id="a node is cordoned",
        ),
        pytest.param(
            "NodeUpgrading", {resources.VIRTUAL_MACHINE_INSTANCES: [DONE]}, "", "", id="a VM on a node that is done"
        ),
        pytest.param(
            "NodeUpgrading",
            {resources.VIRTUAL_MACHINE_INSTANCES: [LEFT]},
            "VirtualMachine default/db cannot be live-migrated: it uses host devices",
            "",
            id="a VM on a node that is left",
        ),
        pytest.param(
            "ImagePreloading", {resources.ADDONS: [ADDON]}, "Addon cattle-logging-system/logging", "", id="an addon"
        ),
        pytest.param(
            "ClusterUpgrading",
            {resources.ADDONS: [ADDON]},
            "",
            "Addon cattle-logging-system/logging",
            id="an addon that the failed step may have left",
        ),
    ],
)
async def test_attempt_is_checked(phase: str, changes: dict[Any, list[Any]], denied: str, warned: str) -> None:
    found = {resources.VIRTUAL_MACHINE_IMAGES: [IMAGE]} | changes
    old, new = failed(in_phase=phase), failed(in_phase=phase, attempt=2)
    async with Simulation(actors=False) as simulation:
        admission = webhook.admission(reader=Changed(LiveReader(simulation.client()), found))
        verdict = await admission.decide(request("UPDATE", new=new, old=old))
    denials = [finding.message for finding in verdict.findings]
    assert [message.startswith(denied) for message in denials] == [True] * bool(denied)
    assert [message.startswith(warned) for message in verdict.warnings if warned] == [True] * bool(warned)


@pytest.mark.parametrize(
    ("option", "annotations", "denied"),
    [
        pytest.param({"pauseAfter": 1}, {}, "", id="a canary"),
        pytest.param(
            {"pauseAfter": 9}, {}, "The cluster has 3 nodes, so that the upgrade never pauses after 9", id="none left"
        ),
        pytest.param(
            {},
            {ANNOTATION_CONTINUE: "node-1:Drain"},
            "'node-1:Drain' has no effect, because the plan has failed. Continue the node in the next attempt",
            id="a node of the plan that has failed",
        ),
    ],
)
async def test_other_changes_of_the_same_update_are_checked(
    option: dict[str, Any], annotations: dict[str, str], denied: str
) -> None:
    found = {resources.VIRTUAL_MACHINE_IMAGES: [IMAGE]}
    old, new = failed(in_phase="NodeUpgrading"), failed(in_phase="NodeUpgrading", attempt=2)
    new["spec"]["nodeUpgradeOption"] = option
    new["metadata"]["annotations"] = annotations
    async with Simulation(actors=False) as simulation:
        admission = webhook.admission(reader=Changed(LiveReader(simulation.client()), found))
        verdict = await admission.decide(request("UPDATE", new=new, old=old))
    assert [finding.message[: len(denied)] for finding in verdict.findings] == [denied] * bool(denied)


ALWAYS = {"concurrency", "built-in upgrade", "machines", "pairing", "backups", "pause list", "nodes", "VMs"}
HALF_WAY = {"cluster", "managed charts", "addons", "Longhorn"}


@pytest.mark.parametrize(
    ("phase", "names", "other"),
    [
        pytest.param("Initializing", ALWAYS | HALF_WAY, {"VMs"}, id="before the image was imported"),
        pytest.param("ImagePreloading", ALWAYS | HALF_WAY | {"image"}, {"VMs", "image"}, id="after it"),
        pytest.param("NodeUpgrading", ALWAYS | HALF_WAY | {"image"}, {"VMs", "image", *HALF_WAY}, id="half-way"),
    ],
)
def test_attempt_has_the_checks_of_the_table(phase: str, names: set[str], other: set[str]) -> None:
    checks = checks_of(failed(in_phase=phase))
    assert {check.name for check in checks} == names
    assert {check.name for check in checks if check not in CHECKS} == other


async def test_update_without_another_attempt_reads_nothing() -> None:
    admission = webhook.admission(reader=MemoryReader({resources.NODES: [node("node-0", cordoned=True)]}))
    plan = failed(in_phase="NodeUpgrading", attempt=2)
    assert (await admission.decide(request("UPDATE", new=plan, old=plan))).is_allowed
