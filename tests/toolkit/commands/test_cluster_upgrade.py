from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.managers.sweep import Sweep, shares
from tests.support.toolkit.cluster_upgrade import (
    COMMAND,
    NVIDIA_VALUES,
    cluster_upgrade,
    end_state,
    finished,
    iso_of,
    services,
)
from tests.support.toolkit.toolkit import toolkit_world
from tests.support.toolkit.toolkit_interrupts import Killed
from tests.support.toolkit.toolkit_transcript import golden, transcript

SHARES = 4
FEATURES = "multi-cluster-management=false,multi-cluster-management-agent=false,managed-system-upgrade-controller=false"


@pytest.mark.parametrize(
    ("name", "nodes"),
    [(COMMAND, {"count": 1}), (f"{COMMAND}-witness", {"count": 3, "witness": (2,)})],
    ids=["one-node", "witness"],
)
async def test_listing_is_golden(tmp_path: Path, name: str, nodes: dict[str, Any]) -> None:
    # Slower than the polls, so that each wait is seen.
    scenario = services(nodes=nodes, durations={"chart": 60, "addon": 80, "repository_start": 60})
    async with toolkit_world(tmp_path, iso_of(scenario), scenario=scenario, actors=True) as world:
        listing = await transcript(world, COMMAND, node="", pod="")
    assert listing == golden(name, listing)


async def test_everything_has_the_releases_version_and_users_values(tmp_path: Path) -> None:
    state = json.loads((await finished(tmp_path))[0])
    charts = {name.removeprefix("ManagedChart "): one for name, one in state.items() if name.startswith("Managed")}
    assert {name: chart["version"] for name, chart in charts.items()} == {
        "harvester": "1.8.0",
        "harvester-crd": "1.8.0",
        "rancher-monitoring-crd": "109.0.1+up80.9.1",
        "rancher-logging-crd": "109.0.0+up6.0.2",
        "kubeovn-operator-crd": "1.15.4",
    }
    assert {(chart["paused"], chart["missing"], str(chart["records"])) for chart in charts.values()} == {
        (False, "", "{}")
    }
    assert {chart["timeoutSeconds"] for chart in charts.values()} == {601}
    assert state["Helm rancher"]["chart"]["metadata"]["version"] == "2.14.0"
    assert state["Helm fleet"]["chart"]["metadata"]["version"] == "109.0.0+up0.15.0"
    assert state["Helm rancher-webhook"]["chart"]["metadata"]["appVersion"] == "0.10.0"
    assert state["KubeVirt"] == {
        "version": "1.7.0",
        "workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]},
    }
    assert state["Addon rancher-monitoring"]["version"] == "109.0.1+up80.9.1"
    assert state["Addon rancher-logging"]["version"] == "109.0.0+up6.0.2"
    assert state["Deployment harvester-cluster-repo"][0]["image"] == "rancher/harvester-cluster-repo:v1.8.0"
    assert [json.loads(one)["cpu"] for one in state["Setting overcommit-config"]] == [1600, 1000]
    values = state["Helm rancher"]["config"]
    assert (values["rancherImageTag"], values["replicas"]) == ("v2.14.0", -3)
    assert values["features"] == FEATURES
    assert state["Feature multi-cluster-management"]["default"] is False
    assert values["extraEnv"] == [{"name": "HTTP_PROXY", "value": ""}]


async def test_addons_and_cdi_are_the_releases(tmp_path: Path) -> None:
    state = json.loads((await finished(tmp_path))[0])
    assert {
        name.removeprefix("Addon "): [one["enabled"], one["version"], one["valuesContent"]]
        for name, one in state.items()
        if name.startswith("Addon ") and not name.startswith("Addon rancher-")
    } == {
        "vm-import-controller": [
            True,
            "1.8.0",
            "image:\n  tag: v1.8.0\nfullnameOverride: harvester-vm-import-controller\n",
        ],
        "pcidevices-controller": [
            False,
            "1.8.0",
            "# mirrored\nimage: {repository: mirror.example.com/rancher/harvester-pcidevices, tag: 'v1.8.0'}\n",
        ],
        "harvester-seeder": [False, "1.8.0", "image:\n  tag: v1.8.0\nfullnameOverride: harvester-seeder\n"],
        "nvidia-driver-toolkit": [
            False,
            "1.8.0",
            NVIDIA_VALUES.replace("v1.7-20251222", "v1.8-20260424"),
        ],
        "descheduler": [False, "0.33.0", "replicas: 1\n"],
        "kubeovn-operator": [False, "1.15.4", "enableConfiguration: true\n"],
    }
    assert state["CustomResourceDefinition cdis.cdi.kubevirt.io"]["labels"] == {"app.kubernetes.io/managed-by": "Helm"}
    assert "priorityClass" in state["CustomResourceDefinition cdis.cdi.kubevirt.io"]["fields"]


async def test_second_run_changes_nothing(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await upgrade.run()
        (values,) = upgrade.folder.glob("*/rancher-values.yaml")
        assert values.stat().st_mode & 0o777 == 0o600
        before = await end_state(upgrade.world.client)
        upgrade.kills.writes.clear()
        await upgrade.run()
        assert upgrade.kills.writes == []
        assert await end_state(upgrade.world.client) == before


@pytest.mark.parametrize("share", shares(SHARES))
async def test_killed_at_every_write(tmp_path: Path, pytestconfig: pytest.Config, share: int) -> None:
    wanted, writes = await finished(tmp_path / "whole")
    sweep = Sweep(tier=pytestconfig.getoption("tier"))
    for at in sweep.points(1, writes, share=share, shares=SHARES):
        for after in (False, True):
            folder = tmp_path / f"{at}-{after}"
            async with cluster_upgrade(folder) as upgrade:
                upgrade.kills.at, upgrade.kills.after_effect = at, after
                with pytest.raises(Killed):
                    await upgrade.run()
                upgrade.kills.at = 0
                await upgrade.run()
                assert await end_state(upgrade.world.client) == wanted, f"killed at write {at}, after={after}"
