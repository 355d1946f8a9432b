"""The node upgrade with caches that lag behind the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import PLACE, NodeUpgradeRun
from upgrade_manager.api.keys import ANNOTATION_ACKNOWLEDGED, JobType
from upgrade_manager.facts.machine_plan import request_count
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid
from upgrade_manager.kube.resources import JOBS, SECRETS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.selections import MACHINE_PLANS, UPGRADE_JOBS
from upgrade_manager.resources.jobs import node_job

if TYPE_CHECKING:
    from upgrade_manager.kube.resources import Resource

CHANGED = OPTIONS.replace("true", "false", 1)


async def pre_drained(stage: NodeUpgradeRun) -> None:
    """Complete the pre-drain Job; the cache shows the hook from now on."""
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.finish("n1", "pre-drain")
    await stage.cluster.observed.freeze(MACHINE_PLANS)


@pytest.mark.rule("nodes: a hook that Rancher has changed or removed meanwhile is not acknowledged")
@pytest.mark.parametrize("value", [CHANGED, None], ids=["changed", "removed"])
async def test_outdated_hook_is_not_acknowledged(stage: NodeUpgradeRun, value: str | None) -> None:
    await pre_drained(stage)
    await stage.rancher("n1", pre=value)
    await stage.run()
    assert await stage.acknowledgements("n1") == {}
    stage.cluster.observed.thaw()
    await stage.run()
    assert await stage.acknowledgements("n1") == ({PRE: value} if value else {})


@pytest.mark.rule("nodes: a hook that Rancher has changed or removed meanwhile is not acknowledged")
async def test_post_drain_hook_of_another_request_is_not_acknowledged(stage: NodeUpgradeRun) -> None:
    """A user ended the drain that the cache shows, another leader acknowledged the next one, with an equal hook."""
    await stage.begin("n1", "n2")
    for hook in ("pre", "post"):
        await stage.request("n1", hook)
        await stage.complete("n1", f"{hook}-drain")
    await stage.cluster.observed.freeze(MACHINE_PLANS)
    counted = request_count(objects.uid(await stage.plan()), 2)
    await stage.patch_secret("n1", {"metadata": {"annotations": {ANNOTATION_ACKNOWLEDGED: counted}}})
    await stage.reboot("n1")
    await stage.run()
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


async def test_hook_of_a_deleted_secret_is_not_acknowledged(stage: NodeUpgradeRun) -> None:
    await pre_drained(stage)
    await stage.client.delete(SECRETS, "s-n1", namespace="fleet-local")
    assert await stage.waiting()


async def test_refused_acknowledgement_is_an_error(stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    await pre_drained(stage)
    patch = ReconcileContext.patch

    async def refuse(ctx: ReconcileContext, resource: Resource, *args: Any, **more: Any) -> None:
        if resource == SECRETS:
            raise Invalid("refused")
        await patch(ctx, resource, *args, **more)

    monkeypatch.setattr(ReconcileContext, "patch", refuse)
    with pytest.raises(Invalid, match="refused"):
        await stage.run()


async def drained_again(stage: NodeUpgradeRun) -> None:
    """Upgrade a node, and let Rancher drain it again until its repeated Job is complete."""
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    await stage.reboot("n1")
    await stage.move(n1="PostDrained")
    await undrained(stage)
    for _ in range(2):
        await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


async def undrained(stage: NodeUpgradeRun) -> None:
    """Remove all annotations of hooks, as Rancher does."""
    await stage.rancher("n1", pre=None, post=None)
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: None, POST: None}}})


@pytest.mark.rule("nodes: a hook that is set again is not acknowledged for a Job that was removed")
async def test_removed_job_does_not_acknowledge_the_next_hook(stage: NodeUpgradeRun) -> None:
    await drained_again(stage)
    await stage.cluster.observed.freeze(UPGRADE_JOBS)
    await stage.request("n1", "post")
    assert await stage.jobs() == []
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS, POST: OPTIONS}
    await undrained(stage)
    await stage.request("n1", "pre")
    assert await stage.acknowledgements("n1") == {}
    stage.cluster.observed.thaw()
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n1"]
    assert await stage.acknowledgements("n1") == {}
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@pytest.mark.rule("nodes: a Job that took the place of the one to remove stays")
async def test_job_that_replaced_the_observed_one_stays(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    await stage.move(n1="PostDrained")
    await undrained(stage)
    await stage.cluster.observed.freeze(UPGRADE_JOBS)
    await stage.client.delete(JOBS, "up-node-upgrade-pre-drain-n1", namespace=PLACE)
    ctx = await stage.context()
    job = node_job(ctx.owner, ctx.job_settings, node="n1", job_type=JobType.PRE_DRAIN, repeated=True)
    await stage.cluster.put(JOBS, job)
    await stage.request("n1", "pre")
    assert await stage.jobs() == ["pre-drain-n1"]
