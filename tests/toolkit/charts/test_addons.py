from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS
from upgrade_manager.toolkit.charts.addons import addons_missing, upgrade_addons, with_event_router

ROUTER = "rancher/harvester-eventrouter:v0.5.0"
MONITORING, MONITORING_SYSTEM = "rancher-monitoring", "cattle-monitoring-system"
ABOUT = f"Addon {MONITORING_SYSTEM}/{MONITORING}"


@pytest.mark.parametrize(
    ("content", "changed"),
    [
        pytest.param("image: rancher/harvester-eventrouter:v0.3.3\n", f"image: {ROUTER}\n", id="plain"),
        pytest.param(
            'image: "registry.example.com:5000/rancher/harvester-eventrouter:v0.3.3" # mirror',
            f'image: "registry.example.com:5000/{ROUTER}" # mirror',
            id="registry-stays",
        ),
        pytest.param("image: rancher/other:v1\n", "image: rancher/other:v1\n", id="other-image"),
        pytest.param("", "", id="empty"),
    ],
)
def test_event_router_in_values(content: str, changed: str) -> None:
    assert with_event_router(content, ROUTER) == changed
    assert with_event_router(content, "") == content


async def test_enabled_addon_must_be_deployed(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()

        async def change(status: str, *, message: str = "") -> None:
            failed = {"type": "OperationFailed", "status": "True", "message": message}
            patch = MergePatch({"status": {"status": status, "conditions": [failed]}})
            await world.client.patch(ADDONS, MONITORING, patch, namespace=MONITORING_SYSTEM, subresource="status")

        old = f"{ABOUT} has chart version 1.0.0 instead of 109.0.1+up80.9.1"
        assert await addons_missing(context) == old
        await upgrade_addons(context)
        # The status is that of the previous chart until the controller has seen the change.
        assert (await addons_missing(context)).startswith(f"Helm release {MONITORING_SYSTEM}/{MONITORING} has chart")
        await change("AddonUpdating", message="image cannot be pulled")
        assert await addons_missing(context) == f"{ABOUT} 109.0.1+up80.9.1 is AddonUpdating: image cannot be pulled"
        await world.client.patch(
            ADDONS, MONITORING, MergePatch({"spec": {"enabled": False}}), namespace=MONITORING_SYSTEM
        )
        assert await addons_missing(context) == ""


async def test_absent_addons_are_skipped(tmp_path: Path) -> None:
    async with services_world(tmp_path, addons=()) as world:
        await upgrade_addons(world.context())
        assert await addons_missing(world.context()) == ""
