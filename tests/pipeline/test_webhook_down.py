"""An upgrade while the API server cannot call the admission webhook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cluster.simulate import Simulate
from tests.support.managers.upgrade import UpgradeRun, node_states, started
from upgrade_manager.api.keys import ANNOTATION_ALLOW_DELETION, ANNOTATION_SKIP_WEBHOOK
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import SERVICES, UPGRADE_PLANS, VALIDATING_WEBHOOK_CONFIGURATIONS

MANIFEST = Path(__file__).parents[2] / "deploy/webhook/webhook.yaml"
SKIPPED: dict[str, Any] = {"annotations": {ANNOTATION_SKIP_WEBHOOK: "true"}}
FAILED_CALL = 'failed calling webhook "upgradeplans.management.harvesterhci.io"'


async def register(run: UpgradeRun) -> None:
    """Register the webhook, which no Pod of its Deployment serves."""
    service, configuration = yaml.safe_load_all(MANIFEST.read_text())
    await run.client.create(SERVICES, service)
    await run.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration)


@pytest.mark.full
@pytest.mark.rule(
    "admission: a webhook that is down blocks neither the manager nor ended plans",
    "admission: while no Pod serves the webhook, requests fail with its name, and pauses can be removed",
)
async def test_pauses_are_removed_and_not_added_without_the_webhook(simulate: Simulate) -> None:
    """No Pod of its Deployment is ready; the managers are those of another one."""
    spec = {"nodeUpgradeOption": {"pauseNodes": ["node-0", "node-1"]}}
    async with simulate() as simulation, started(simulation, spec={"version": "v1.8.0", **spec}, **SKIPPED) as run:
        await register(run)
        with pytest.raises(KubeError, match=FAILED_CALL):
            await run.client.create(UPGRADE_PLANS, await run.plan() | {"metadata": {"name": "other"}})
        await run.until_plan(lambda plan: "UpgradePaused" in node_states(plan).values())
        with pytest.raises(KubeError, match=FAILED_CALL):
            await run.patch(spec={"nodeUpgradeOption": {"pauseNodes": ["node-0", "node-1", "node-2"]}})
        with pytest.raises(KubeError, match=FAILED_CALL):
            await run.client.delete(UPGRADE_PLANS, run.name)
        await run.patch(spec={"nodeUpgradeOption": {"pauseNodes": ["node-1"]}})
        await run.patch(spec={"nodeUpgradeOption": {"pauseNodes": []}})
        await run.succeed()
        await run.delete()


@pytest.mark.rule("admission: a webhook that is down blocks neither the manager nor ended plans")
async def test_deleted_plan_is_cleaned_up_without_the_webhook(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation, **SKIPPED) as run:
        await run.until("ImagePreloading")
        await run.patch(metadata={"annotations": {ANNOTATION_ALLOW_DELETION: "true"}})
        await run.client.delete(UPGRADE_PLANS, run.name)
        await register(run)
        assert await run.until("deleted") == "deleted"
        await run.settle()
