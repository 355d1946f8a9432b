"""The end of the node upgrade, while Rancher sets hooks again and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.nodes import OPTIONS, PRE
from upgrade_manager.pipeline.ending import held_nodes
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun
    from upgrade_manager.pipeline.context import ReconcileContext

HELD = "Secret fleet-local/s-n1"


@pytest.fixture
async def done(stage: NodeUpgradeRun) -> NodeUpgradeRun:
    """Upgrade two nodes, so that the phase is complete."""
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2="PostDrained")
    assert await stage.run() == Completed()
    return stage


async def leave(stage: NodeUpgradeRun) -> tuple[ReconcileContext, Waiting | Failed | None]:
    """Leave the phase in a new reconcile; return its context and result."""
    ctx = await stage.context()
    ctx.status.record("NodeUpgraded")
    result = await stage.phase.exit(ctx)
    await ctx.persist()
    return ctx, result


@pytest.mark.rule(
    "nodes: a hook that Rancher sets while its strategy cannot be restored is handled before ImageCleanup"
)
async def test_hook_that_is_set_again_holds_the_exit(done: NodeUpgradeRun) -> None:
    await done.rancher("n1", pre=OPTIONS)
    ctx, result = await leave(done)
    job = "Job harvester-system/up-node-upgrade-pre-drain-n1"
    assert result == Waiting(message=f"n1: pre-drain {job}, attempt 1 of 3 (1 of 2 nodes done)")
    assert (ctx.status["originals"], await done.jobs()) == (None, ["pre-drain-n1"])
    await done.finish("n1", "pre-drain")
    await leave(done)
    assert await done.acknowledgements("n1") == {PRE: OPTIONS}
    await done.rancher("n1", pre=None)
    assert isinstance((await leave(done))[1], Waiting)
    assert (await leave(done))[1] is None
    assert await done.jobs() == []


@pytest.mark.rule("nodes: a failure after the strategy was restored names the nodes that Rancher drains again")
async def test_failed_drain_after_the_restore_names_the_node(done: NodeUpgradeRun) -> None:
    await done.rancher("n1", pre=OPTIONS)
    await leave(done)
    await done.fail("n1", "pre-drain", message="no space")
    ctx, result = await leave(done)
    assert isinstance(result, Failed)
    assert result.cause.startswith("node n1 upgrade failed: ")
    assert ctx.status["originals"] is None
    remedy = await held_nodes.remedy(ctx)
    assert remedy.startswith(f"Node n1 is cordoned and waits on {HELD}. Create a new UpgradePlan")


@pytest.mark.rule("nodes: a hook that Rancher sets after the node upgrade is a Warning event")
async def test_late_hook_is_a_warning(done: NodeUpgradeRun) -> None:
    assert (await leave(done))[1] is None
    await done.rancher("n1", pre=OPTIONS)
    await ImageCleanup().run(await done.context())
    ((_, message),) = [event for event in done.cluster.recorder.recorded if event[0] == "UpgradeFrozen"]
    assert message.startswith(
        f"Node n1: upgraded, but Rancher drains it again and waits on {HELD}. Let Rancher continue"
    )
