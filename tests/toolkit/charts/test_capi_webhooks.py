from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services, services_world
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from upgrade_manager.toolkit.charts.capi_webhooks import remove_webhooks, webhooks_left

MUTATING, VALIDATING = "mutating-webhook-configuration", "validating-webhook-configuration"
BOTH = f"MutatingWebhookConfiguration {MUTATING}, ValidatingWebhookConfiguration {VALIDATING}"


async def test_configurations_of_the_embedded_api_are_deleted(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        assert (await webhooks_left(context)).startswith(f"{BOTH}: ")
        await world.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING)
        assert (await webhooks_left(context)).startswith(f"ValidatingWebhookConfiguration {VALIDATING}: ")
        await remove_webhooks(context)
        assert await webhooks_left(context) == ""
        assert await world.client.find(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING) is None


def _webhook(place: str) -> dict[str, Any]:
    return {
        "name": f"{place}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": "capi-webhook-service", "namespace": place}}
        if place
        else {"url": "https://a"},
    }


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([], id="none"),
        pytest.param(["capi-system"], id="other"),
        pytest.param(["cattle-provisioning-capi-system", "capi-system"], id="mixed"),
        pytest.param([""], id="url"),
    ],
)
async def test_configurations_of_other_software_stay(tmp_path: Path, places: list[str]) -> None:
    async with services_world(tmp_path) as world:
        patch = MergePatch({"webhooks": [_webhook(place) for place in places]})
        await world.client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING, patch)
        await remove_webhooks(world.context())
        assert await webhooks_left(world.context()) == ""
        assert await world.client.find(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING) is not None
        assert await world.client.find(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING) is None


async def test_they_stay_in_an_upgrade_of_other_releases(tmp_path: Path) -> None:
    before = {"harvester": "v1.8.0-rc1", "rancher": "v2.14.0"}
    async with cluster_upgrade(tmp_path, services(software=before)) as upgrade:
        await upgrade.run()
        assert (await webhooks_left(upgrade.world.context())).startswith(BOTH)
