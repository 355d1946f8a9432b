"""The waits of the node upgrade, with the times and remedies that finders report."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from hack.virtual_time import virtual_now
from tests.support.cluster.nodes import OPTIONS, POST, PRE
from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import ANNOTATION_PROGRESS, ANNOTATION_PROGRESS_TIME
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.blockers.known_wait import (
    CordonedNodeWait,
    ForeignHookWait,
    LostHookWait,
    MissingNodeWait,
    PausedNodeWait,
)
from upgrade_manager.blockers.wait import DrainWait, EvacuationWait, LostNodeWait, RebootWait, WaitKind
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, MACHINES, NODES, UPGRADE_PLANS
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.support.managers.node_upgrade import NodeUpgradeRun
    from upgrade_manager.blockers.wait import Wait

#: Seconds after which a wait for Rancher is overdue.
LONG = 1200
FOREIGN = '{"preDrainHooks":[{"annotation":"management.harvesterhci.io/pre-hook"},{"annotation":"example.com/hook"}]}'


async def waits(stage: NodeUpgradeRun) -> list[Wait]:
    result = await stage.run()
    assert isinstance(result, Waiting)
    return list(result.waits)


def named(found: list[Wait]) -> Iterator[tuple[WaitKind, str]]:
    return ((wait.kind, wait.name) for wait in found)


async def test_without_a_node_under_way_it_waits_for_rancher(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    (wait,) = await waits(stage)
    assert (wait.kind, wait.namespace, wait.name) == (WaitKind.RANCHER, "fleet-local", "local")
    assert wait.detail == "waiting for Rancher to upgrade the next node"


async def test_undrained_node_with_the_release_is_named_with_the_patch(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.report("n2", kubelet="v1.33.5+rke2r1")
    (wait,) = await waits(stage)
    assert isinstance(wait, LostHookWait)
    assert (wait.name, wait.detail[:4]) == ("local", "n2: ")
    assert remedy_text(wait.remedies) == (
        "Let Rancher drain all nodes again, also the upgraded ones: "
        "kubectl patch -n fleet-local clusters.provisioning.cattle.io local --type=merge "
        """-p '{"spec":{"rkeConfig":{"provisionGeneration":6}}}'"""
    )


async def test_patch_raises_the_generation_that_was_just_requested(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.report("n2", kubelet="v1.33.5+rke2r1")
    await stage.enter()
    (wait,) = await waits(stage)
    assert isinstance(wait, LostHookWait)
    assert wait.detail.startswith("n2: ")
    assert f'"provisionGeneration":{await stage.generation() + 1}}}' in remedy_text(wait.remedies)


@pytest.mark.rule("blockers: the wait for Rancher begins when the last node ends, also after a repeated drain")
async def test_wait_for_rancher_begins_when_a_repeated_drain_ends(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.report("n2", kubelet="v1.33.5+rke2r1")
    await stage.move(n1="PostDrained")
    await asyncio.sleep(LONG)
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    assert WaitKind.LOST_HOOK not in dict(named(await waits(stage)))
    await asyncio.sleep(LONG)
    await stage.request("n1", "post")
    await stage.rancher("n1", pre=None, post=None)
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: None, POST: None}}})
    assert await stage.jobs() == []
    began = virtual_now()
    for _ in range(2):
        (wait,) = await waits(stage)
        assert isinstance(wait, LostHookWait)
        assert wait.detail.startswith("n2: ")
        assert wait.since == began
        await asyncio.sleep(LONG)


async def test_node_under_way_is_followed_from_its_vms_to_its_return(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    job, evacuation = await waits(stage)
    assert (job.kind, job.name) == (WaitKind.JOB, "up-node-upgrade-pre-drain-n1")
    assert isinstance(evacuation, EvacuationWait)
    assert (evacuation.name, evacuation.is_running) == ("n1", True)
    now = format_time(virtual_now())
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": now}
    await stage.finish("n1", "pre-drain", {"conditions": [complete]})
    await stage.patch_secret("n1", {"metadata": {"annotations": {"rke.cattle.io/drain-error": "cannot evict"}}})
    evacuation, drain = await waits(stage)
    assert isinstance(evacuation, EvacuationWait)
    assert not evacuation.is_running
    assert isinstance(drain, DrainWait)
    assert (drain.name, drain.node) == ("s-n1", "n1")
    assert (drain.detail, format_time(drain.since)) == ("cannot evict", now)
    assert not drain.is_drained
    done = {"rke.cattle.io/drain-options": OPTIONS, "rke.cattle.io/drain-done": OPTIONS}
    await stage.patch_secret("n1", {"metadata": {"annotations": done}})
    _, drain = await waits(stage)
    assert isinstance(drain, DrainWait)
    assert (drain.detail, drain.is_drained) == ("", True)
    await stage.request("n1", "post")
    await stage.finish("n1", "post-drain", {"conditions": [complete]})
    await stage.report("n1", os="Harvester v1.6.1", ready="False")
    (reboot,) = await waits(stage)
    assert isinstance(reboot, RebootWait)
    assert (reboot.name, reboot.is_ready) == ("n1", False)
    assert reboot.release_os == "Harvester v1.7.0"
    assert format_time(reboot.since) == now


@pytest.mark.rule("nodes: a node fell back only once it is Ready in another boot with the old OS")
async def test_reboot_ends_with_the_boot_that_the_job_records(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.report("n1", os="Harvester v1.6.1", boot="a")
    await stage.enter()
    await stage.run()
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": format_time(virtual_now())}
    await stage.finish("n1", "single-node-upgrade", {"conditions": [complete]})
    back = format_time(virtual_now() + timedelta(minutes=5))
    for boot, has_rebooted in (("a", False), ("b", True)):
        await stage.report("n1", os="Harvester v1.6.1", since=back, boot=boot)
        (reboot,) = await waits(stage)
        assert isinstance(reboot, RebootWait)
        assert reboot.has_rebooted is has_rebooted


async def test_evacuation_progresses_when_the_node_gets_its_taint(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    began = virtual_now()
    for taints in (None, [{"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}]):
        await stage.client.patch(NODES, "n1", MergePatch({"spec": {"taints": taints}}))
        changed = virtual_now()
        for _ in range(2):
            _, evacuation = await waits(stage)
            assert (evacuation.kind, evacuation.since) == (WaitKind.EVACUATION, began)
            assert evacuation.progressed == changed
            await asyncio.sleep(LONG)


@pytest.mark.rule("blockers: a VM that stays because another client removes the drain taint is named")
async def test_evacuation_progresses_by_the_step_of_the_job(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    (job,) = (await stage.client.list(JOBS)).items
    began = virtual_now()
    annotations = {ANNOTATION_PROGRESS: "6/9 wait-for-evacuation", ANNOTATION_PROGRESS_TIME: format_time(began)}
    progress = MergePatch({"metadata": {"annotations": annotations}})
    await stage.client.patch(JOBS, objects.name(job), progress, namespace=objects.namespace(job))
    for taints in ([{"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}], None):
        await asyncio.sleep(LONG)
        await stage.client.patch(NODES, "n1", MergePatch({"spec": {"taints": taints}}))
        _, evacuation = await waits(stage)
        assert isinstance(evacuation, EvacuationWait)
        assert (evacuation.is_evacuating, evacuation.released) == (True, began)


@pytest.mark.parametrize(
    ("step", "is_tainted", "is_at_gate"),
    [
        pytest.param(None, False, True, id="no step, before the taint"),
        pytest.param(None, True, False, id="no step, after it"),
        pytest.param("2/9 wait-for-volumes", True, True, id="later attempt"),
        pytest.param("4/9 stop-vms", False, False, id="between gate and taint"),
    ],
)
async def test_step_shows_whether_the_job_waits_for_volumes(
    stage: NodeUpgradeRun,
    step: str | None,
    is_tainted: bool,  # noqa: FBT001  # a case
    is_at_gate: bool,  # noqa: FBT001  # a case
) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    taints = [{"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}] if is_tainted else None
    await stage.client.patch(NODES, "n1", MergePatch({"spec": {"taints": taints}}))
    (job,) = (await stage.client.list(JOBS)).items
    progress = MergePatch({"metadata": {"annotations": {ANNOTATION_PROGRESS: step}}})
    await stage.client.patch(JOBS, objects.name(job), progress, namespace=objects.namespace(job))
    _, evacuation = await waits(stage)
    assert isinstance(evacuation, EvacuationWait)
    assert evacuation.is_at_gate is is_at_gate


async def test_jobs_of_slow_nodes_raise_the_usual_time_of_the_next(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T01:00:00Z"}
    await stage.finish("n1", "pre-drain", {"startTime": "2026-01-01T00:00:00Z", "conditions": [complete]})
    await stage.rancher("n1", pre=None)
    await stage.move(n1="PostDrained")
    await stage.request("n2", "pre")
    usual = {wait.name: wait.usual for wait in await waits(stage) if wait.kind is WaitKind.JOB}
    assert usual == {"up-node-upgrade-pre-drain-n2": 10_800}


async def test_node_that_is_lost_under_way_is_a_wait(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.report("n1", os="Harvester v1.6.1", ready="Unknown")
    kinds = [wait.kind for wait in await waits(stage)]
    assert kinds == [WaitKind.JOB, WaitKind.EVACUATION, WaitKind.LOST_NODE]


async def test_done_node_that_is_lost_is_a_wait(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained")
    await stage.report("n1", os="Harvester v1.6.1")
    (wait,) = await waits(stage)
    assert isinstance(wait, LostNodeWait)
    assert (wait.name, wait.is_ready) == ("n1", True)
    assert wait.release_os == "Harvester v1.7.0"


async def cordoned(stage: NodeUpgradeRun) -> None:
    await stage.client.patch(NODES, "n1", MergePatch({"spec": {"unschedulable": True}}))


async def held_by_others(stage: NodeUpgradeRun) -> None:
    await stage.rancher("n1", post=FOREIGN.replace("pre", "post"))


async def undrained(stage: NodeUpgradeRun) -> None:
    await stage.report("n2", os="Harvester v1.6.1", kubelet="v1.33.5+rke2r1")
    await stage.move(n2="ImagePreloaded")


@pytest.mark.rule("blockers: the progress and the blocker of a node give the same reason")
@pytest.mark.parametrize("change", [cordoned, held_by_others, undrained])
async def test_progress_and_wait_give_the_same_reason(
    stage: NodeUpgradeRun, change: Callable[[NodeUpgradeRun], Awaitable[None]]
) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2="PostDrained")
    await change(stage)
    result = await stage.run()
    assert isinstance(result, Waiting)
    (wait,) = result.waits
    assert wait.detail in result.message


async def test_each_reason_of_a_node_has_its_own_time(stage: NodeUpgradeRun) -> None:
    """Another blocker of the same Node may have been recorded long before."""
    await stage.begin("n1", "n2")
    missing = Blocker(
        reason=BlockerReason.NODE_MISSING,
        kind="Node",
        name="n1",
        message="",
        remedies=(),
        since=virtual_now() - timedelta(hours=1),
    )
    ctx = await stage.context()
    ctx.status["blockers"] = [missing.entry()]
    assert first_seen(ctx, MissingNodeWait, "n1") == missing.since
    assert first_seen(ctx, CordonedNodeWait, "n1") == virtual_now()


@pytest.mark.parametrize(
    ("paused", "left"), [(["n1"], "[]"), (["n0", "n1", "n2"], '["n0","n2"]')], ids=["alone", "beside others"]
)
async def test_paused_node_is_a_wait_with_the_patch(stage: NodeUpgradeRun, paused: list[str], left: str) -> None:
    await stage.begin("n1", "n2")
    patch = {"spec": {"nodeUpgradeOption": {"pauseNodes": paused}}}
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch(patch))
    await stage.request("n1", "pre")
    (wait,) = await waits(stage)
    assert isinstance(wait, PausedNodeWait)
    assert wait.name == "n1"
    assert remedy_text(wait.remedies) == (
        "Remove it from the list: kubectl patch upgradeplans.management.harvesterhci.io up --type=merge "
        f"""-p '{{"spec":{{"nodeUpgradeOption":{{"pauseNodes":{left}}}}}}}'"""
    )


async def test_missing_node_is_a_wait_with_what_to_do(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.client.delete(NODES, "n2")
    (wait,) = await waits(stage)
    assert isinstance(wait, MissingNodeWait)
    assert wait.name == "n2"
    assert wait.detail == "its Node does not exist, but Machine fleet-local/m-n2 does"
    assert remedy_text(wait.remedies) == "Start the node, or delete the Machine"


@pytest.mark.rule("blockers: an object that is being deleted is not to be deleted again, and its finalizers are named")
async def test_missing_node_of_a_deleted_machine_names_what_holds_it(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    held = MergePatch({"metadata": {"finalizers": ["machine.cluster.x-k8s.io"]}})
    await stage.client.patch(MACHINES, "m-n2", held, namespace="fleet-local")
    await stage.client.delete(MACHINES, "m-n2", namespace="fleet-local")
    await stage.client.delete(NODES, "n2")
    (wait,) = await waits(stage)
    assert isinstance(wait, MissingNodeWait)
    assert wait.detail == (
        "its Node does not exist, but Machine fleet-local/m-n2 does: it is being deleted, "
        "and its finalizer machine.cluster.x-k8s.io holds it"
    )
    assert "kubectl delete" not in remedy_text(wait.remedies)
    assert remedy_text(wait.remedies).startswith(
        "(1) Find out why the controller of machine.cluster.x-k8s.io does not end its work"
    )


async def test_hooks_of_other_controllers_are_a_wait(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.rancher("n1", pre=FOREIGN)
    await stage.run()
    await stage.finish("n1", "pre-drain")
    found = await waits(stage)
    assert (WaitKind.FOREIGN_HOOK, "s-n1") in named(found)
    assert WaitKind.DRAIN not in [wait.kind for wait in found]
    (wait,) = [wait for wait in found if isinstance(wait, ForeignHookWait)]
    assert "example.com/hook" in wait.detail
    assert "which is drained" not in remedy_text(wait.remedies)


async def test_foreign_hook_is_acknowledged_on_a_drained_node(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    await stage.rancher("n1", pre=None, post=FOREIGN.replace("pre", "post"))
    await stage.run()
    await stage.finish("n1", "post-drain")
    await stage.report("n1", os="Harvester v1.7.0")
    (wait,) = [wait for wait in await waits(stage) if isinstance(wait, ForeignHookWait)]
    assert "acknowledge it for this node, which is drained: kubectl annotate secret -n fleet-local s-n1" in remedy_text(
        wait.remedies
    )


async def test_wait_for_rancher_begins_when_the_last_job_ended(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    # By the API server's clock, which is ahead.
    ended = virtual_now() + timedelta(hours=1)
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": format_time(ended)}
    await stage.finish("n1", "pre-drain", {"conditions": [complete]})
    await stage.rancher("n1", pre=None)
    await stage.move(n1="PostDrained")
    (wait,) = await waits(stage)
    assert (wait.kind, format_time(wait.since)) == (WaitKind.RANCHER, format_time(ended))


async def test_delays_of_the_end_are_waits(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2", "n3", "n4")
    await stage.move(n1="PostDrained", n2="PostDrained", n3="PostDrained", n4="PostDrained")
    await stage.rancher("n1", post=OPTIONS)
    await stage.machine("joining")
    await stage.rancher("joining", pre=OPTIONS)
    await stage.cordon("n3", cordoned=True)
    assert sorted(named(await waits(stage)), key=str) == [
        (WaitKind.CORDONED_NODE, "n3"),
        (WaitKind.LEFTOVER_HOOK, "s-joining"),
        (WaitKind.RANCHER, "local"),
    ]
