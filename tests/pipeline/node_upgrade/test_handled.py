"""An unchanged state is handled once, and one that may have been lost is handled again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, Mock

from hack.virtual_time import virtual_now
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.nodes import estimate
from upgrade_manager.nodes.anomalies import AnomalyLog
from upgrade_manager.pipeline.node_upgrade import report
from upgrade_manager.pipeline.settings import overrides, rancher

if TYPE_CHECKING:
    import pytest

    from tests.support.managers.node_upgrade import NodeUpgradeRun


def spied(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Mock:
    """Count the calls of a function, which runs as before."""
    spy = Mock(wraps=getattr(owner, name))
    monkeypatch.setattr(owner, name, spy)
    return spy


async def test_unchanged_nodes_are_reported_once(stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    milestones = spied(monkeypatch, report, "report_milestones")
    settings = spied(monkeypatch, overrides, "report_changed")
    await stage.begin("n1", "n2")
    for _ in range(2):
        await stage.run()
    reported = milestones.call_count
    for _ in range(3):
        await stage.run()
    assert milestones.call_count == reported
    await stage.request("n1", "pre")
    assert milestones.call_count == reported + 1
    # By the start of Rancher, and by the first reconcile.
    assert settings.call_count == 2


async def test_another_plan_is_reported_again(stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    await stage.begin("n1", "n2")
    await stage.run()
    settings = spied(monkeypatch, overrides, "report_changed")
    await stage.run()
    assert settings.call_count == 0
    stage.phase._handled_of(Mock(owner=Mock(uid="another")))
    await stage.run()
    assert settings.call_count == 1


async def test_estimate_is_made_again_until_the_move_is_written(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "SAMPLES", 1)
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    started = {"startTime": format_time(virtual_now()), "conditions": [{"type": "Complete", "status": "True"}]}
    await stage.finish("n1", "pre-drain", started)
    await stage.run()
    await stage.request("n1", "post")
    await stage.finish("n1", "post-drain", started)
    await stage.run()
    await stage.report("n1")
    for _ in range(2):
        # The write is delayed or fails.
        ctx = await stage.context()
        await stage.phase.run(ctx)
        assert ctx.status["estimatedCompletion"]
        assert "estimatedCompletion" not in await stage.status()
    await stage.run()
    assert (await stage.status())["estimatedCompletion"]
    # Of a node that does not move again there is no new one.
    await stage.run()
    assert (await stage.states())["n1"] == "PostDrained"


async def test_hooks_are_checked_once_for_spec_and_annotations(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.begin("n1", "n2")
    await stage.run()
    checks = spied(monkeypatch, overrides, "changed_strategy")
    await stage.run()
    assert checks.call_count == 0
    for member in ("labels", "annotations"):
        change = MergePatch({"metadata": {member: {"some": "text"}}})
        await stage.client.patch(PROVISIONING_CLUSTERS, "local", change, namespace="fleet-local")
    for _ in range(2):
        await stage.run()
    assert checks.call_count == 1


async def test_missing_annotation_is_tried_at_each_reconcile(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.begin("n1", "n2")
    refused = AsyncMock(return_value=False)
    monkeypatch.setattr(rancher, "keep_original", refused)
    for _ in range(2):
        await stage.run()
    assert refused.call_count == 2


async def test_anomalies_are_sought_when_their_objects_change(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.begin("n1", "n2")
    await stage.run()
    sought = Mock()
    monkeypatch.setattr(AnomalyLog, "record", sought)
    await stage.run()
    unchanged = sought.call_count
    await stage.rancher("n1", pre="{}")
    await stage.run()
    assert (unchanged, sought.call_count) == (0, 1)
