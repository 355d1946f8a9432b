"""The node upgrade while nodes that are done fail, while Rancher does not reach the others, and at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.harvester import RELEASE
from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import entry_of
from tests.support.managers.phase_results import shown
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.blockers.known_wait import RefusedCordonWait
from upgrade_manager.blockers.wait import DrainWait
from upgrade_manager.pipeline.ending import held_nodes
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun
    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.pipeline.context import ReconcileContext

DRAIN_ERROR, DRAIN_OPTIONS = "rke.cattle.io/drain-error", "rke.cattle.io/drain-options"
NEXT = "waiting for Rancher to upgrade the next node"
UNCORDON = "it is cordoned after its upgrade. Uncordon it: kubectl uncordon"


@pytest.mark.rule(
    "nodes: a done node that is NotReady or runs another OS holds the phase, and is named",
    "nodes: a hook of a done node is acknowledged only while the node is Ready with the release's OS",
    "nodes: no node starts while a done node is NotReady, runs another OS or is missing",
)
async def test_done_node_that_is_not_ready_holds_the_phase(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained")
    await stage.rancher("n1", post=OPTIONS)
    await stage.rancher("n2", pre=OPTIONS)
    await stage.report("n1", ready="Unknown")
    problem = (
        f"it was upgraded, and the upgrade waits for it, because it is not Ready; it last reported {RELEASE['os']}. "
        "Check the console of node n1, and start it"
    )
    held = "n2: waiting for Node n1: it is not Ready"
    assert shown(await stage.run()) == Waiting(waits=(), message=f"n1: {problem}; {held} (0 of 2 nodes done)")
    assert entry_of(await stage.status(), "n1") == {"state": "PostDrained", "message": problem}
    assert (await stage.jobs(), await stage.acknowledgements("n1")) == ([], {})
    await stage.report("n1")
    await stage.run()
    assert (await stage.jobs(), await stage.acknowledgements("n1")) == (["pre-drain-n2"], {POST: OPTIONS})
    assert entry_of(await stage.status(), "n1") == {"state": "PostDrained"}


@pytest.mark.rule("nodes: a done node that is NotReady or runs another OS holds the phase, and is named")
@pytest.mark.parametrize("nodes", [("n1",), ("n1", "n2")], ids=["single", "multi"])
async def test_done_node_with_the_old_os_holds_the_end(stage: NodeUpgradeRun, nodes: tuple[str, ...]) -> None:
    await stage.begin(*nodes)
    await stage.move(**dict.fromkeys(nodes, "PostDrained" if len(nodes) > 1 else "SingleNodeUpgraded"))
    await stage.report("n1", os="Harvester v1.6.1")
    assert await stage.waiting() == (
        "n1: it was upgraded, and the upgrade waits for it, because it runs Harvester v1.6.1 instead of "
        f"{RELEASE['os']}. Find out on node n1 why it booted the fallback: journalctl -b -1 --no-pager -n 100 "
        f"({len(nodes) - 1} of {len(nodes)} nodes done)"
    )
    await stage.report("n1")
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: a done node that is cordoned holds the end of the phase, and blocks no other node")
@pytest.mark.parametrize("nodes", [("n1",), ("n1", "n2")], ids=["single", "multi"])
async def test_cordoned_node_holds_the_end(stage: NodeUpgradeRun, nodes: tuple[str, ...]) -> None:
    await stage.begin(*nodes)
    first, *others = nodes
    await stage.move(**{first: "PostDrained" if others else "SingleNodeUpgraded"})
    await stage.cordon(first, cordoned=True)
    for other in others:
        await stage.request(other, "pre")
        assert await stage.jobs() == [f"pre-drain-{other}"]
        await stage.rancher(other, pre=None)
        await stage.move(**{other: "PostDrained"})
    assert await stage.waiting() == f"{first}: {UNCORDON} {first} ({len(nodes)} of {len(nodes)} nodes done)"
    await stage.cordon(first, cordoned=False)
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: a node that runs the release's Kubernetes before its drain is named, with the next step")
async def test_undrained_nodes_with_the_release_are_named(stage: NodeUpgradeRun) -> None:
    nodes = ("n1", "n2", "n3")
    await stage.set_up(*nodes)
    old, release = "v1.32.4+rke2r1", "v1.33.5+rke2r1"
    for node, kubelet in zip(nodes, (release, release, old), strict=True):
        await stage.report(node, os="Harvester v1.6.1", kubelet=kubelet)
    await stage.enter()
    both = f"{NEXT}; n1, n2: they run Kubernetes {release} already, but Rancher has not drained them"
    assert await stage.waiting() == f"{both} (0 of 3 nodes done)"
    await stage.report("n1", kubelet=release)
    await stage.move(n1="PostDrained")
    one = f"{NEXT}; n2: it runs Kubernetes {release} already, but Rancher has not drained it"
    assert await stage.waiting() == f"{one} (1 of 3 nodes done)"
    await stage.request("n2", "pre")
    assert NEXT not in await stage.waiting()


async def test_outdated_nodes_are_waited_for_without_advice(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    for node in ("n1", "n2"):
        await stage.report(node, os="Harvester v1.6.1", kubelet="v1.32.4+rke2r1")
    await stage.enter()
    assert await stage.waiting() == f"{NEXT} (0 of 2 nodes done)"


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
    assert shown(result) == Waiting(waits=(), message=f"n1: pre-drain {job}, attempt 1 of 3 (1 of 2 nodes done)")
    assert ([entry["id"] for entry in ctx.status["ledger"]], await done.jobs()) == (["Taint.n1"], ["pre-drain-n1"])
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
    assert result.cause.startswith("Node n1: pre-drain failed 3 times: ")
    assert [entry["id"] for entry in ctx.status["ledger"]] == ["Taint.n1"]
    frozen = await held_nodes.find(ctx)
    assert frozen is not None
    [step] = held_nodes.steps(frozen)
    assert step.text.startswith(f"Node n1 stays cordoned, because Rancher waits for this manager ({HELD})")


async def clean(stage: NodeUpgradeRun, *, exits: bool) -> Waiting | Failed | Completed | None:
    """Reconcile in ImageCleanup, or leave it."""
    ctx = await stage.context()
    ctx.status.record("ImageCleaned" if exits else "ImageCleaning")
    for node in ctx.status.known_nodes():
        ctx.status.move_node(node, NodeState.IMAGE_CLEANED)
    result = await (ImageCleanup().exit(ctx) if exits else ImageCleanup().run(ctx))
    await ctx.persist()
    return result


@pytest.mark.rule("nodes: hooks are acknowledged until Succeeded is recorded")
@pytest.mark.parametrize("exits", [False, True], ids=["run", "exit"])
async def test_hook_in_image_cleanup_is_acknowledged(done: NodeUpgradeRun, *, exits: bool) -> None:
    await leave(done)
    await done.rancher("n1", pre=OPTIONS)
    first = await clean(done, exits=exits)
    assert isinstance(first, Waiting)
    job = "Job harvester-system/up-node-upgrade-pre-drain-n1"
    assert first.message == f"n1: pre-drain {job}, attempt 1 of 3 (1 of 2 nodes done)"
    assert await done.jobs() == ["pre-drain-n1"]
    await done.finish("n1", "pre-drain")
    await clean(done, exits=exits)
    assert await done.acknowledgements("n1") == {PRE: OPTIONS}
    await done.rancher("n1", post=OPTIONS)
    await clean(done, exits=exits)
    assert await done.acknowledgements("n1") == {PRE: OPTIONS, POST: OPTIONS}
    assert isinstance(await clean(done, exits=exits), Waiting)
    await done.rancher("n1", pre=None, post=None)
    after = await clean(done, exits=exits)
    assert "n1" not in (after.message if isinstance(after, Waiting) else "")
    assert (await done.states())["n1"] == "ImageCleaned"


@pytest.mark.rule("nodes: drain-options without a hook mean that the node is not done")
@pytest.mark.parametrize(
    ("annotations", "cordoned", "kind"),
    [
        pytest.param({DRAIN_OPTIONS: OPTIONS}, True, DrainWait, id="cordoned"),
        pytest.param({DRAIN_OPTIONS: OPTIONS}, False, DrainWait, id="begun"),
        pytest.param({DRAIN_OPTIONS: OPTIONS, DRAIN_ERROR: "no"}, False, RefusedCordonWait, id="cordon refused"),
    ],
)
@pytest.mark.parametrize("where", ["run", "leave", "clean", "end"])
async def test_begun_drain_holds_the_end(
    done: NodeUpgradeRun, where: str, annotations: dict[str, str], kind: type[Wait], *, cordoned: bool
) -> None:
    await done.cordon("n1", cordoned=cordoned)
    await done.patch_secret("n1", {"metadata": {"annotations": annotations}})
    result: object = None
    if where == "run":
        result = await done.run()
    elif where == "leave":
        result = (await leave(done))[1]
    else:
        result = await clean(done, exits=where == "end")
    assert isinstance(result, Waiting)
    is_refused = kind is RefusedCordonWait
    text = "Rancher cannot cordon it (no)" if is_refused else f"Rancher drains it ({DRAIN_OPTIONS} of {HELD})"
    assert result.message == f"n1: {text} ({1 if is_refused else 2} of 2 nodes done)"
    assert kind in {type(wait) for wait in result.waits}


@pytest.mark.rule("nodes: hooks are acknowledged until Succeeded is recorded")
async def test_failed_drain_in_image_cleanup_fails_the_plan(done: NodeUpgradeRun) -> None:
    await leave(done)
    await done.rancher("n1", pre=OPTIONS)
    await clean(done, exits=True)
    await done.fail("n1", "pre-drain", message="no space")
    result = await clean(done, exits=True)
    assert isinstance(result, Failed)
    assert result.cause.startswith("Node n1: pre-drain failed 3 times: ")
