"""A Job answers one request of Rancher to drain a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import PLACE
from upgrade_manager.api.keys import LABEL_REQUEST
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, SECRETS, UPGRADE_PLANS

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun

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
