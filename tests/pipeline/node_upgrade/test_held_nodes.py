"""Nodes that an earlier upgrade has drained: their reboot passes the gate, and a node that is back is finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipeline.node_upgrade.test_gate import RELEASE_KUBERNETES
from tests.support.cluster.nodes import OPTIONS, POST, PRE
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun

OLD_OS = "Harvester v1.6.1"
POST_ONLY, BOTH = {"post": OPTIONS}, {"pre": OPTIONS, "post": OPTIONS}
HOOKS = pytest.mark.parametrize("hooks", [POST_ONLY, BOTH], ids=["post", "both"])


async def away(stage: NodeUpgradeRun, node: str, *, ready: str = "False") -> None:
    await stage.report(node, os=OLD_OS, kubelet=RELEASE_KUBERNETES, ready=ready)


async def pre_draining(stage: NodeUpgradeRun, hooks: dict[str, str]) -> None:
    """Start n2, which an earlier upgrade has left with these hooks."""
    await stage.set_up("n1", "n2", "n3")
    for node in ("n1", "n2", "n3"):
        await away(stage, node, ready="True")
    await stage.rancher("n2", **hooks)
    await stage.cordon("n2", cordoned=True)
    await stage.enter()
    await stage.run()
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n2"]


@pytest.mark.rule("nodes: the reboot of a node that an earlier upgrade has drained passes the gate")
@HOOKS
async def test_held_node_does_not_reboot_while_another_is_away(stage: NodeUpgradeRun, hooks: dict[str, str]) -> None:
    await pre_draining(stage, hooks)
    await away(stage, "n1")
    await stage.complete("n2", "pre-drain")
    result = await stage.run()
    assert "post-drain-n2" not in await stage.jobs()
    assert isinstance(result, Waiting)
    assert WaitKind.UNAVAILABLE_NODE in {wait.kind for wait in result.waits}
    await away(stage, "n1", ready="True")
    for _ in range(2):
        await stage.run()
    assert "post-drain-n2" in await stage.jobs()


@pytest.mark.rule("nodes: a node that is back is finished, whatever happens to other nodes")
@HOOKS
async def test_held_node_that_is_back_is_finished(stage: NodeUpgradeRun, hooks: dict[str, str]) -> None:
    await pre_draining(stage, hooks)
    await stage.complete("n2", "pre-drain")
    await stage.run()
    await away(stage, "n1")
    await stage.complete("n2", "post-drain")
    await stage.report("n2", kubelet=RELEASE_KUBERNETES)
    for _ in range(3):
        await stage.run()
    assert (await stage.acknowledgements("n2")).get(POST) == OPTIONS


@pytest.mark.rule("nodes: a drain is not acknowledged while another node is drained, reboots or is NotReady")
async def test_node_that_an_earlier_upgrade_has_drained_is_under_way(stage: NodeUpgradeRun) -> None:
    """Rancher upgrades its Kubernetes, and waits for no pre-drain hook of it."""
    await stage.set_up("n1", "n2", "n3")
    for node in ("n1", "n2", "n3"):
        await away(stage, node, ready="True")
        if node != "n3":
            await stage.rancher(node, pre=OPTIONS)
    drained = dict.fromkeys((PRE, "rke.cattle.io/drain-options", "rke.cattle.io/drain-done"), OPTIONS)
    await stage.patch_secret("n2", {"metadata": {"annotations": drained}})
    await stage.enter()
    for _ in range(2):
        await stage.run()
    assert (await stage.acknowledgements("n2"), await stage.jobs()) == ({PRE: OPTIONS}, [])
    await stage.patch_secret("n2", {"metadata": {"annotations": dict.fromkeys(drained)}})
    await stage.rancher("n2", pre=None)
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n1"]
