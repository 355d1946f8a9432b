"""The restart of a node's VMs, and the messages when they are not started."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from unittest.mock import AsyncMock

import pytest

from tests.support.managers.node_upgrade import entry_of
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden, Transient
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, NAMESPACES
from upgrade_manager.pipeline.node_upgrade.vm_restore import (
    discard_stale_list,
    release_list,
    report_failures,
    report_stopped,
    start,
    unfinished,
)
from upgrade_manager.resources.jobs import node_job, restore_job
from upgrade_manager.resources.owner import Owner, plan_uid

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

PLACE = "harvester-system"
NAME = "up-node-upgrade-restore-vm-n1"
NODES: Object = {name: {"state": "PostDrained"} for name in ("n1", "n2")}
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
FAILING = {"conditions": [{"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}]}


async def prepared(
    cluster: Harvester, *, listed: Object | None = None, restore: bool = True, nodes: Object = NODES
) -> ReconcileContext:
    status = {"currentPhase": "NodeUpgrading", "nodeUpgradeStatuses": nodes}
    ctx = cluster.context(await cluster.plan(spec={"version": "v1", "restoreVM": restore}, status=status))
    if listed is not None:
        metadata = {"name": "up-restore-vm", "namespace": PLACE}
        await cluster.put(CONFIG_MAPS, {"metadata": metadata, **listed})
    return ctx


@pytest.mark.rule("nodes: a restore-vm Job needs VMs of the node in ConfigMap harvester-system/PLAN-restore-vm")
@pytest.mark.parametrize(
    ("listed", "made"),
    [
        pytest.param({"data": {"n1": "default/db"}}, True, id="one VM"),
        pytest.param({"data": {"n1": "default/db,other/web"}}, True, id="two VMs"),
        pytest.param({"data": {"n1": "db"}}, True, id="invalid entry"),
        pytest.param({"data": {"n2": "default/db"}}, False, id="another node"),
        pytest.param({"data": {"n1": ""}}, False, id="empty"),
        pytest.param({"data": {"n1": " , ,\n"}}, False, id="separators"),
        pytest.param({"data": {}}, False, id="no nodes"),
        pytest.param({}, False, id="no data"),
        pytest.param({"binaryData": {"n1": "ZA=="}}, False, id="binaryData"),
        pytest.param(None, False, id="no ConfigMap"),
    ],
)
async def test_job_is_created_once_if_vms_are_listed(cluster: Harvester, listed: Object | None, *, made: bool) -> None:
    ctx = await prepared(cluster, listed=listed)
    await start(ctx, "n1", request="")
    first = await cluster.find(JOBS, NAME, PLACE)
    await start(ctx, "n1", request="")
    assert await cluster.find(JOBS, NAME, PLACE) == first
    assert await cluster.names(JOBS, PLACE) == ([NAME] if made else [])
    assert cluster.recorder.recorded == []


@pytest.mark.rule("nodes: a restore-vm Job that cannot be created only records a Warning event")
async def test_foreign_job_is_not_adopted_and_only_warned_about(cluster: Harvester) -> None:
    ctx = await prepared(cluster, listed={"data": {"n1": "default/db"}})
    foreign = restore_job(Owner(name="up", uid="other"), ctx.job_settings, node="n1")
    await cluster.put(JOBS, foreign)
    await start(ctx, "n1", request="")
    ((reason, message),) = cluster.recorder.recorded
    assert reason == "RestoreVMFailed"
    assert "belongs to UpgradePlan up (uid other)" in message
    assert ctx.owner.uid in message
    assert "Start the VMs that are off: default/db. Cause: " in message
    assert plan_uid(await cluster.find(JOBS, NAME, PLACE)) == "other"


@pytest.mark.rule("nodes: a restore-vm Job that cannot be created only records a Warning event")
async def test_permanent_refusal_is_a_warning(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = await prepared(cluster)
    monkeypatch.setattr(ctx.client, "get", AsyncMock(side_effect=Forbidden("may not get the list")))
    await start(ctx, "n1", request="")
    assert [reason for reason, _ in cluster.recorder.recorded] == ["RestoreVMFailed"]
    assert "n1: restarting VMs failed; the upgrade continues. " in cluster.recorder.recorded[0][1]


async def test_transient_error_is_raised(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = await prepared(cluster)
    monkeypatch.setattr(ctx.client, "get", AsyncMock(side_effect=Transient("no answer")))
    with pytest.raises(Transient):
        await start(ctx, "n1", request="")
    assert cluster.recorder.recorded == []


async def test_missing_namespace_lists_no_vms(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    await cluster.client.delete(NAMESPACES, PLACE)
    await start(ctx, "n1", request="")
    assert cluster.recorder.recorded == []


MARK: Object = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "name": "up"}
LISTED: Object = {"data": {"n1": "default/db"}}


def config_map(*owners: Object) -> Object:
    return {"metadata": {"name": "up-restore-vm", "namespace": PLACE, "ownerReferences": list(owners)}, **LISTED}


@pytest.mark.rule("nodes: a ConfigMap PLAN-restore-vm of an earlier plan of that name is ignored")
@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("is_marked", [True, False], ids=["with an owner", "by age"])
async def test_list_of_an_earlier_plan_is_ignored(cluster: Harvester, *, is_own: bool, is_marked: bool) -> None:
    if not is_own and not is_marked:
        await cluster.put(CONFIG_MAPS, config_map())
    await asyncio.sleep(2)
    ctx = await prepared(cluster)
    if is_own or is_marked:
        mark = {**MARK, "uid": ctx.owner.uid if is_own else "earlier"}
        await cluster.put(CONFIG_MAPS, config_map(*[mark] * is_marked))
    await start(ctx, "n1", request="")
    assert await cluster.names(JOBS, PLACE) == [NAME] * is_own
    await discard_stale_list(ctx)
    assert await cluster.names(CONFIG_MAPS, PLACE) == ["up-restore-vm"] * is_own


@pytest.mark.rule("nodes: the ConfigMap PLAN-restore-vm is removed at the end, or goes with the Jobs that read it")
@pytest.mark.parametrize("is_read", [True, False], ids=["restoring", "idle"])
async def test_list_goes_with_its_readers(cluster: Harvester, *, is_read: bool) -> None:
    ctx = await prepared(cluster, listed=LISTED)
    await job(cluster, ctx, "n1")
    readers = [await cluster.find(JOBS, NAME, PLACE)] * is_read
    for _ in range(2):
        await release_list(ctx, readers)
    expected = [("Job", objects.uid(one)) for one in readers]
    assert await cluster.names(CONFIG_MAPS, PLACE) == ["up-restore-vm"] * bool(expected)
    if expected:
        owners = objects.metadata(await cluster.find(CONFIG_MAPS, "up-restore-vm", PLACE))["ownerReferences"]
        assert [(owner["kind"], owner["uid"]) for owner in owners] == expected


@pytest.mark.parametrize(
    ("state", "listed", "is_reported"),
    [
        pytest.param("PreDraining", LISTED, True, id="draining"),
        pytest.param("PreDrainFailed", LISTED, True, id="failed"),
        pytest.param("WaitingReboot", LISTED, True, id="rebooting"),
        pytest.param("PostDrained", LISTED, False, id="upgraded"),
        pytest.param("CleanedByTheNextRelease", LISTED, True, id="unknown state"),
        pytest.param("PreDraining", {"data": {"n1": ""}}, False, id="no VMs"),
        pytest.param("PreDraining", {}, False, id="no data"),
        pytest.param("PreDraining", None, False, id="no list"),
    ],
)
async def test_stopped_vms_are_named_before_their_list_is_removed(
    cluster: Harvester, state: str, listed: Object | None, *, is_reported: bool
) -> None:
    ctx = await prepared(cluster, listed=listed, nodes={"n1": {"state": state, "message": "Job x failed"}})
    for _ in range(2):
        await report_stopped(ctx)
    text = "Node n1 is not upgraded: VMs that were shut down for it are not restarted. "
    text += "Start those that are off: default/db"
    assert cluster.recorder.recorded == [("RestoreVMFailed", text)] * is_reported
    assert ctx.status.node_message("n1") == (f"{text}. Job x failed" if is_reported else "Job x failed")


async def test_vms_of_a_failed_plan_are_restarted_after_a_retry(cluster: Harvester) -> None:
    ctx = await prepared(cluster, listed=LISTED, nodes={"n1": {"state": "PreDrainFailed"}})
    ctx.status["currentPhase"] = "Failed"
    await report_stopped(ctx)
    text = "Node n1 is not upgraded: VMs that were shut down for it are restarted only after a retry. "
    assert ctx.status.node_message("n1") == f"{text}Start those that are off: default/db"


@pytest.mark.rule("nodes: a failure to restart VMs stays in the node's message")
async def test_failure_stays_in_the_nodes_message(cluster: Harvester) -> None:
    ctx = await prepared(cluster, listed=LISTED)
    await job(cluster, ctx, "n1", FAILED)
    await report_failures(ctx)
    for state in (NodeState.IMAGE_CLEANING, NodeState.IMAGE_CLEANED):
        ctx.status.move_node("n1", state)
    entry = ctx.status["nodeUpgradeStatuses"]["n1"]
    assert (entry["state"], entry["reason"]) == ("ImageCleaned", "RestoreVMFailed")
    assert "Start the VMs that are off: default/db. Cause: Job " in entry["message"]
    ctx.status.move_node("n1", NodeState.IMAGE_CLEANED, message="other")
    assert entry_of(ctx.status, "n1") == {"state": "ImageCleaned", "message": "other"}


async def job(cluster: Harvester, ctx: ReconcileContext, node: str, status: Object | None = None) -> None:
    await cluster.put(JOBS, restore_job(ctx.owner, ctx.job_settings, node=node), status=status)


@pytest.mark.rule("nodes: a failed restore-vm Job records a Warning event")
@pytest.mark.parametrize(
    ("status", "waits", "failure"),
    [
        pytest.param(None, True, "", id="running"),
        pytest.param({"failed": 2}, True, "", id="retrying"),
        pytest.param(COMPLETE, False, "", id="complete"),
        pytest.param(FAILED, False, "failed: BackoffLimitExceeded", id="failed"),
        pytest.param(FAILING, False, "failed: DeadlineExceeded", id="failing on a node that is down"),
    ],
)
async def test_running_jobs_are_awaited_and_failed_ones_reported(
    cluster: Harvester, status: Object | None, failure: str, *, waits: bool
) -> None:
    ctx = await prepared(cluster)
    await job(cluster, ctx, "n1", status)
    for _ in range(2):
        await report_failures(ctx)
        assert [left.name for left in await unfinished(ctx)] == ([NAME] if waits else [])
    expected = f"Job {PLACE}/{NAME}: restarting VMs failed; the upgrade continues. Start the VMs that are off. Cause: "
    assert [message.startswith(expected) for _, message in cluster.recorder.recorded] == ([True] if failure else [])
    assert [failure in message for _, message in cluster.recorder.recorded] == ([True] if failure else [])


async def test_each_failure_has_one_event_across_processes(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    for node in ("n1", "n2"):
        await job(cluster, ctx, node, FAILED)
    await report_failures(ctx)
    # The next process does not know what this one has said; the API server does, by the name.
    await report_failures(cluster.context(ctx.raw))
    first, second, again_first, again_second = cluster.recorder.names
    assert (first, second) == (again_first, again_second)
    assert first != second


async def test_other_jobs_and_other_plans_are_ignored(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    step = node_job(ctx.owner, ctx.job_settings, node="n1", job_type=JobType.PRE_DRAIN)
    await cluster.put(JOBS, step, status=FAILED)
    await cluster.put(JOBS, restore_job(Owner(name="up", uid="old"), ctx.job_settings, node="n1"), status=FAILED)
    await report_failures(ctx)
    assert await unfinished(ctx) == []
    assert cluster.recorder.recorded == []


async def test_nothing_is_awaited_after_restore_vm_is_unset(cluster: Harvester) -> None:
    ctx = await prepared(cluster, restore=False)
    await job(cluster, ctx, "n1")
    assert await unfinished(ctx) == []
