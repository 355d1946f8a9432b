"""A Job answers one request of Rancher to drain a node."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import PLACE
from upgrade_manager.api.keys import ANNOTATION_ACKNOWLEDGED, LABEL_REQUEST
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, PROVISIONING_CLUSTERS, SECRETS, UPGRADE_PLANS
from upgrade_manager.pipeline.selections import MACHINE_PLANS

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun

OLD_OS = "Harvester v1.6.1"
JOB = "up-node-upgrade-pre-drain-n1"


async def job_uid(stage: NodeUpgradeRun) -> str:
    return objects.uid(await stage.client.get(JOBS, JOB, namespace=PLACE))


async def remove_acknowledgement(stage: NodeUpgradeRun) -> None:
    """Let Rancher remove the hooks and set an equal one again, between two looks of the manager."""
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: None}}})


async def change_options(stage: NodeUpgradeRun) -> None:
    await stage.rancher("n1", pre=OPTIONS.replace("true", "false"))


@pytest.mark.rule(
    "nodes: a hook that is pending after it was acknowledged is a new request, for which the Job runs again"
)
@pytest.mark.parametrize("ask_again", [remove_acknowledgement, change_options])
async def test_job_runs_again_for_a_new_request(stage: NodeUpgradeRun, ask_again: object) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    first = await job_uid(stage)
    assert PRE in await stage.acknowledgements("n1")
    await ask_again(stage)  # type: ignore[operator]  # a table
    for _ in range(2):
        await stage.run()
    assert await job_uid(stage) != first
    assert (await stage.acknowledgements("n1")).get(PRE) != objects.annotations_of(await stage.secret("n1"))[
        "rke.cattle.io/pre-drain"
    ]
    await stage.complete("n1", "pre-drain")
    secret = objects.annotations_of(await stage.secret("n1"))
    assert secret[PRE] == secret["rke.cattle.io/pre-drain"]


@pytest.mark.rule("nodes: a Job of an earlier request, or of a Secret that was created again, answers nothing")
async def test_job_of_an_earlier_secret_answers_nothing(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    first = await job_uid(stage)
    await stage.client.delete(SECRETS, "s-n1", namespace="fleet-local")
    labels = {"rke.cattle.io/machine-name": "m-n1"}
    metadata = {"name": "s-n1", "namespace": "fleet-local", "labels": labels}
    await stage.cluster.put(SECRETS, {"metadata": metadata, "type": "rke.cattle.io/machine-plan", "data": {}})
    await stage.request("n1", "pre")
    await stage.run()
    assert (await job_uid(stage) != first, await stage.acknowledgements("n1")) == (True, {})


@pytest.mark.rule("nodes: a Job of an earlier request, or of a Secret that was created again, answers nothing")
async def test_job_without_a_request_answers_the_first(stage: NodeUpgradeRun) -> None:
    """An earlier version of the manager created the Job."""
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    first = await job_uid(stage)
    await stage.client.patch(JOBS, JOB, MergePatch({"metadata": {"labels": {LABEL_REQUEST: None}}}), namespace=PLACE)
    await stage.complete("n1", "pre-drain")
    assert (await job_uid(stage), PRE in await stage.acknowledgements("n1")) == (first, True)


async def hold_complete(stage: NodeUpgradeRun) -> str:
    """Complete the pre-drain Job of n1 while n3 is down, so that the hook is not acknowledged; return the Job's uid."""
    await begin_old(stage, "n1", "n2", "n3")
    await stage.request("n1", "pre")
    await stage.report("n3", os=OLD_OS, ready="False")
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {}
    return await job_uid(stage)


async def begin_old(stage: NodeUpgradeRun, *nodes: str) -> None:
    await stage.begin(*nodes)
    for node in nodes:
        await stage.report(node, os=OLD_OS)


async def withdraw(stage: NodeUpgradeRun, *, seen: bool = True) -> None:
    """Let Rancher withdraw the drain of n1."""
    removed = dict.fromkeys((PRE, POST, "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"))
    await stage.patch_secret("n1", {"metadata": {"annotations": removed}})
    await stage.cordon("n1", cordoned=False)
    if seen:
        await stage.run()


async def raise_generation(stage: NodeUpgradeRun) -> None:
    raised = MergePatch({"spec": {"rkeConfig": {"provisionGeneration": 6}}})
    await stage.client.patch(PROVISIONING_CLUSTERS, "local", raised, namespace="fleet-local")


@pytest.mark.rule("nodes: a Job answers no hook after the one that it was created for")
@pytest.mark.parametrize("seen", [True, False], ids=["while the manager runs", "while no manager runs"])
async def test_withdrawn_hook_that_returns_is_a_new_request(stage: NodeUpgradeRun, *, seen: bool) -> None:
    """The node's VMs may have come back; the remedy of HookLost raises the generation."""
    first = await hold_complete(stage)
    await withdraw(stage, seen=seen)
    await raise_generation(stage)
    await stage.rancher("n1", pre=OPTIONS)
    await stage.report("n3", os=OLD_OS)
    for _ in range(2):
        await stage.run()
    assert (await job_uid(stage) != first, await stage.acknowledgements("n1")) == (True, {})
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@pytest.mark.rule("nodes: a Job answers no hook after the one that it was created for")
async def test_hook_on_a_restored_secret_is_a_new_request(stage: NodeUpgradeRun) -> None:
    await begin_old(stage, "n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    assert PRE in await stage.acknowledgements("n1")
    annotations = dict.fromkeys(objects.annotations_of(await stage.secret("n1")))
    await stage.patch_secret("n1", {"metadata": {"annotations": annotations}})
    await stage.cordon("n1", cordoned=False)
    await stage.run()
    await stage.request("n1", "pre")
    assert await stage.acknowledgements("n1") == {}


@pytest.mark.rule("nodes: a Job answers no hook after the one that it was created for")
async def test_hook_that_a_user_acknowledged_uses_the_job_up(stage: NodeUpgradeRun) -> None:
    await begin_old(stage, "n1", "n2")
    await stage.move(n1="PostDrained")
    for _ in range(2):
        await stage.request("n1", "pre")
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: OPTIONS}}})
    await stage.finish("n1", "pre-drain")
    await stage.run()
    await withdraw(stage)
    await stage.request("n1", "pre")
    assert await stage.acknowledgements("n1") == {}


@pytest.mark.rule("nodes: a Job answers no hook after the one that it was created for")
async def test_new_hook_of_a_rebooting_node_runs_all_jobs_again(stage: NodeUpgradeRun) -> None:
    """A user acknowledges the post-drain hook, Rancher uncordons the node, and drains it again later."""
    await begin_old(stage, "n1", "n2")
    for hook in ("pre", "post"):
        await stage.request("n1", hook)
        await stage.complete("n1", f"{hook}-drain")
    assert (await stage.states())["n1"] == "WaitingReboot"
    await withdraw(stage)
    first = await job_uid(stage)
    await stage.request("n1", "pre")
    await stage.run()
    assert (await job_uid(stage) != first, await stage.acknowledgements("n1")) == (True, {})
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}
    await stage.run()
    old = await stage.client.get(JOBS, JOB.replace("pre-drain", "post-drain"), namespace=PLACE)
    assert objects.labels(old)[LABEL_REQUEST].endswith(".1")
    for _ in range(2):
        await stage.request("n1", "post")
    job = await stage.client.get(JOBS, JOB.replace("pre-drain", "post-drain"), namespace=PLACE)
    assert objects.labels(job)[LABEL_REQUEST].endswith(".2")


@pytest.mark.rule("nodes: a Job answers no hook after the one that it was created for")
async def test_counted_hook_of_an_earlier_leader_is_not_answered_again(stage: NodeUpgradeRun) -> None:
    """The present leader has acknowledged request 1, and Rancher has set an equal hook again."""
    await begin_old(stage, "n1", "n2")
    await stage.request("n1", "pre")
    await stage.finish("n1", "pre-drain")
    await stage.cluster.observed.freeze(MACHINE_PLANS)
    counted = f"{objects.uid(await stage.plan())} 1"
    await stage.patch_secret("n1", {"metadata": {"annotations": {ANNOTATION_ACKNOWLEDGED: counted}}})
    await stage.run()
    assert await stage.acknowledgements("n1") == {}


@pytest.mark.rule("nodes: the acknowledgement of a request is recorded before it is written")
@pytest.mark.parametrize("changes", [False, True], ids=["Secret unchanged", "Secret changed"])
async def test_lost_acknowledgement_is_the_same_request(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch, *, changes: bool
) -> None:
    """The manager crashes between both writes: the Job runs again only if the Secret may have been restored."""
    await begin_old(stage, "n1", "n2")
    await stage.request("n1", "pre")
    await stage.finish("n1", "pre-drain")
    first = await job_uid(stage)
    with monkeypatch.context() as crashing:
        crashing.setattr(
            "upgrade_manager.pipeline.node_upgrade.effects.apply_effect", AsyncMock(side_effect=Conflict("a crash"))
        )
        with pytest.raises(Conflict):
            await stage.run()
    status = (await stage.status())["nodeUpgradeStatuses"]["n1"]
    assert (status["state"], status["drain"]["acknowledged"]) == ("PreDrained", 1)
    if changes:
        await stage.patch_secret("n1", {"metadata": {"annotations": {"other": "x"}}})
    await stage.run()
    assert (PRE in await stage.acknowledgements("n1")) is not changes
    if changes:
        await stage.run()
        assert await job_uid(stage) != first


@pytest.mark.rule("nodes: VMs that a repeated drain has stopped are started again before the node is uncordoned")
async def test_vms_of_a_repeated_drain_are_started_again(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"spec": {"restoreVM": True}}))
    await stage.enter()
    await stage.run()
    await stage.cluster.put(
        CONFIG_MAPS, {"metadata": {"name": "up-restore-vm", "namespace": PLACE}, "data": {"n1": "default/vm"}}
    )
    for hook in ("pre", "post"):
        await stage.request("n1", hook)
        await stage.complete("n1", f"{hook}-drain")
    await stage.reboot("n1")
    await stage.run()
    restored = objects.uid(await stage.client.get(JOBS, "up-node-upgrade-restore-vm-n1", namespace=PLACE))
    await stage.finish("n1", "restore-vm")
    await stage.rancher("n1", pre=None, post=None)
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: None, POST: None}}})
    await stage.request("n1", "pre")
    await stage.run()
    await stage.complete("n1", "pre-drain")
    await stage.rancher("n1", post=OPTIONS)
    while POST not in await stage.acknowledgements("n1"):
        before = await stage.jobs()
        await stage.run()
    assert "restore-vm-n1" in before + await stage.jobs()
    again = await stage.client.get(JOBS, "up-node-upgrade-restore-vm-n1", namespace=PLACE)
    assert objects.uid(again) != restored
