from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.cluster import chart_proxy
from tests.support.toolkit.cluster_upgrade import services_world
from tests.support.toolkit.toolkit import ToolkitWorld
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, EVENTS
from upgrade_manager.release.migrations.addons import is_older_nvidia, nvidia_tag
from upgrade_manager.toolkit.charts.addons import (
    addons_not_deployed,
    addons_outdated,
    report_not_deployed,
    upgrade_addons,
)
from upgrade_manager.toolkit.charts.chart_repository import upgrade_repository
from upgrade_manager.toolkit.run.errors import StepFailed

MONITORING, MONITORING_SYSTEM = "rancher-monitoring", "cattle-monitoring-system"
ABOUT = f"Addon {MONITORING_SYSTEM}/{MONITORING}"
NVIDIA = "nvidia-driver-toolkit"


@asynccontextmanager
async def upgraded_repository(folder: Path, **changes: Any) -> AsyncIterator[ToolkitWorld]:
    """Create a cluster whose chart repository has the new release."""
    async with services_world(folder, **changes) as world:
        await upgrade_repository(world.context())
        yield world


async def spec_of(world: ToolkitWorld, name: str, *, namespace: str = "harvester-system") -> Object:
    """Return the add-on's spec."""
    return objects.spec(await world.client.get(ADDONS, name, namespace=namespace))


async def change(world: ToolkitWorld, name: str, *, namespace: str = "harvester-system", **spec: Any) -> None:
    """Patch the add-on, as a user does."""
    await world.client.patch(ADDONS, name, MergePatch({"spec": spec}), namespace=namespace)


async def test_enabled_addon_must_be_deployed(tmp_path: Path) -> None:
    async with upgraded_repository(tmp_path) as world:
        context = world.context()
        await change(world, "vm-import-controller", enabled=False)

        async def report(status: str, *, message: str = "") -> None:
            failed = {"type": "OperationFailed", "status": "True", "message": message}
            patch = MergePatch({"status": {"status": status, "conditions": [failed]}})
            await world.client.patch(ADDONS, MONITORING, patch, namespace=MONITORING_SYSTEM, subresource="status")

        old = f"{ABOUT} has chart version 1.0.0 instead of 109.0.1+up80.9.1"
        assert await addons_outdated(context) == old
        await upgrade_addons(context)
        # The status is that of the previous chart until the controller has seen the change.
        assert await addons_outdated(context) == ""
        release = f"Helm release {MONITORING_SYSTEM}/{MONITORING}"
        assert (await addons_not_deployed(context)).startswith(f"{release} has chart")
        await report("AddonUpdating", message="image cannot be pulled")
        updating = f"{ABOUT} 109.0.1+up80.9.1 is AddonUpdating: image cannot be pulled"
        assert await addons_not_deployed(context) == updating
        await change(world, MONITORING, namespace=MONITORING_SYSTEM, enabled=False)
        assert await addons_not_deployed(context) == ""


async def test_addon_that_is_not_deployed_is_an_event(tmp_path: Path) -> None:
    async with upgraded_repository(tmp_path) as world:
        await report_not_deployed(world.context(), f"wait-for-addons: not done after 20 min: {ABOUT} is AddonUpdating")
        (event,) = (await world.client.list(EVENTS, namespace="default")).items
        assert (event["type"], event["reason"]) == ("Warning", "AddonNotDeployed")
        assert event["message"].endswith("is AddonUpdating. The upgrade goes on; the add-on needs repair")


async def test_absent_addons_are_created_disabled(tmp_path: Path) -> None:
    async with upgraded_repository(tmp_path, addons=()) as world:
        context = world.context()
        assert await addons_outdated(context) == "Addon harvester-system/vm-import-controller does not exist"
        await upgrade_addons(context)
        assert await addons_outdated(context) == ""
        found = {objects.name(one): one for one in (await world.client.list(ADDONS)).items}
        assert sorted(found) == ["harvester-seeder", NVIDIA, "pcidevices-controller", "vm-import-controller"]
        assert {objects.spec(one)["enabled"] for one in found.values()} == {False}
        assert objects.spec(found[NVIDIA]) == {
            "enabled": False,
            "repo": "http://harvester-cluster-repo.cattle-system.svc/charts",
            "chart": "nvidia-driver-runtime",
            "version": "1.8.0",
            "valuesContent": "image:\n  tag: v1.8-20260424\n"
            'driverLocation: "HTTPENDPOINT/NVIDIA-Linux-x86_64-vgpu-kvm.run"\n'
            "fullnameOverride: nvidia-driver-runtime\n",
        }
        assert objects.labels(found["harvester-seeder"]) == {"addon.harvesterhci.io/experimental": "true"}


@pytest.mark.parametrize(
    ("values", "changed"),
    [
        pytest.param("image: {tag: v1.7-20251222}", "image: {tag: v1.8-20260424}", id="previous-release"),
        pytest.param("image: {tag: v1.5-20250625}", "image: {tag: v1.8-20260424}", id="earlier-release"),
        pytest.param("image: {tag: v1.8-20260424}", "image: {tag: v1.8-20260424}", id="equal"),
        pytest.param("image: {tag: v1.8-20260629}", "image: {tag: v1.8-20260629}", id="later"),
        pytest.param("image: {tag: our-driver}", "image: {tag: our-driver}", id="own-tag"),
        pytest.param(
            "image: {repo: own/driver, tag: v1.7-20251222}",
            "image: {repo: own/driver, tag: v1.7-20251222}",
            id="own-image",
        ),
        pytest.param("driverLocation: https://x", "driverLocation: https://x", id="no-tag"),
        pytest.param("image: [", "image: [", id="no-yaml"),
        pytest.param("", "", id="empty"),
    ],
)
async def test_tag_of_nvidias_toolkit(tmp_path: Path, values: str, changed: str) -> None:
    async with upgraded_repository(tmp_path) as world:
        await change(world, NVIDIA, valuesContent=values)
        await upgrade_addons(world.context())
        spec = await spec_of(world, NVIDIA)
        assert (spec["version"], spec["valuesContent"]) == ("1.8.0", changed)


async def test_tag_alone_is_missing_too(tmp_path: Path) -> None:
    async with upgraded_repository(tmp_path) as world:
        await upgrade_addons(world.context())
        await change(world, "vm-import-controller", enabled=False)
        await change(world, MONITORING, namespace=MONITORING_SYSTEM, enabled=False)
        await change(world, NVIDIA, valuesContent="image: {tag: v1.7-20251222}")
        about = f"Addon harvester-system/{NVIDIA} has the previous release's image"
        assert await addons_outdated(world.context()) == about
        await upgrade_addons(world.context())
        assert await addons_outdated(world.context()) == ""


async def test_addon_with_a_users_chart_stays(tmp_path: Path) -> None:
    async with upgraded_repository(tmp_path) as world:
        await change(world, NVIDIA, chart="our-driver")
        await upgrade_addons(world.context())
        assert (await spec_of(world, NVIDIA))["version"] == "1.7.1"


async def test_tag_that_cannot_be_replaced_alone_is_named(tmp_path: Path) -> None:
    async with upgraded_repository(tmp_path) as world:
        await change(world, "pcidevices-controller", valuesContent="a: &t v1.7.1\nimage: {tag: *t}\n")
        text = (
            "Addon harvester-system/pcidevices-controller: image.tag in its values has an anchor, an alias or a type; "
            "set it to v1.8.0"
        )
        with pytest.raises(StepFailed, match=f"^{text}$"):
            await upgrade_addons(world.context())


async def test_iso_without_an_addons_image_is_refused(tmp_path: Path) -> None:
    async with upgraded_repository(tmp_path) as world:
        world.iso.files["/bundle/common.txt"] = b"docker.io/rancher/harvester-cluster-repo:v1.8.0\n"
        text = "no image list of the ISO names harvester-vm-import-controller; disable the Addon vm-import-controller"
        with pytest.raises(StepFailed, match=f"^{text}$"):
            await upgrade_addons(world.context())


async def test_addons_that_the_release_lacks_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_proxy, "_NEW", {"kubeovn-operator-crd": "1.15.4"})
    async with upgraded_repository(tmp_path) as world:
        world.iso.files["/bundle/common.txt"] = b"docker.io/rancher/harvester-cluster-repo:v1.8.0\n"
        await change(world, "vm-import-controller", enabled=False)
        await upgrade_addons(world.context())
        assert (await spec_of(world, "pcidevices-controller"))["version"] == "1.7.1"
        assert (await spec_of(world, "vm-import-controller"))["version"] == "1.7.1"
        assert (await spec_of(world, NVIDIA))["version"] == "1.8.0"
        assert (await spec_of(world, "kubeovn-operator", namespace="kube-system"))["version"] == "1.14.10"
        found = {objects.name(one) for one in (await world.client.list(ADDONS)).items}
        assert "harvester-seeder" not in found
        await change(world, "descheduler", namespace="kube-system", enabled=True)
        with pytest.raises(StepFailed, match=r"has no chart descheduler$"):
            await upgrade_addons(world.context())


@pytest.mark.parametrize(
    ("release", "tag"),
    [
        ("v1.8.0", "v1.8-20260424"),
        ("v1.8.1", "v1.8-20260629"),
        ("v1.8.2-rc1", "v1.8-20260706"),
        ("v1.9.0", "v1.9-20260722"),
        ("v1.8.9", ""),
        ("master-1234-head", ""),
        ("", ""),
    ],
)
def test_tag_of_a_release(release: str, tag: str) -> None:
    assert nvidia_tag(release) == tag


def test_tag_of_an_unknown_release_replaces_none() -> None:
    assert not is_older_nvidia("v1.7-20251222", than="")
