from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import KUBEVIRTS, SETTINGS
from upgrade_manager.toolkit.charts.cluster_resources import DAEMON_SETS
from upgrade_manager.toolkit.charts.system_services import harvester_missing, kubevirt_missing, longhorn_missing

ABOUT = "KubeVirt harvester-system/kubevirt"


def conditions(**statuses: str) -> list[dict[str, str]]:
    healthy = {"Available": "True", "Progressing": "False", "Degraded": "False"}
    return [{"type": name, "status": status, "message": "why"} for name, status in (healthy | statuses).items()]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param({}, "", id="deployed"),
        pytest.param({"observedKubeVirtVersion": "v1.7.0"}, "", id="version-with-v"),
        pytest.param({"observedKubeVirtVersion": "1.5.2"}, " has version 1.5.2 instead of 1.7.0", id="old-version"),
        pytest.param({"phase": "Deploying"}, " is not deployed; its phase is Deploying", id="deploying"),
        pytest.param({"conditions": conditions(Available="False")}, ": Available is False: why", id="not-available"),
        pytest.param({"conditions": conditions(Progressing="True")}, ": Progressing is True: why", id="progressing"),
        pytest.param({"conditions": conditions(Degraded="True")}, ": Degraded is True: why", id="degraded"),
        pytest.param({"conditions": []}, ": Available is Unknown: no reason is reported", id="conditions-not-reported"),
    ],
)
async def test_kubevirt(tmp_path: Path, status: dict[str, Any], words: str) -> None:
    deployed = {"phase": "Deployed", "observedKubeVirtVersion": "1.7.0", "conditions": conditions()}
    async with services_world(tmp_path) as world:
        patch = MergePatch({"status": deployed | status})
        await world.client.patch(KUBEVIRTS, "kubevirt", patch, namespace="harvester-system", subresource="status")
        assert await kubevirt_missing(world.context()) == (words and ABOUT + words)
        await world.client.delete(KUBEVIRTS, "kubevirt", namespace="harvester-system")
        assert await kubevirt_missing(world.context()) == f"{ABOUT} does not exist"


async def test_longhorns_manager_runs_on_each_node(tmp_path: Path) -> None:
    async with services_world(tmp_path, nodes={"count": 3, "witness": (2,)}) as world:
        context = world.context()
        assert await longhorn_missing(context) == ""
        patch = MergePatch({"status": {"numberReady": 1}})
        await world.client.patch(
            DAEMON_SETS, "longhorn-manager", patch, namespace="longhorn-system", subresource="status"
        )
        about = "DaemonSet longhorn-system/longhorn-manager: 1 Pods are ready on 2 nodes"
        assert await longhorn_missing(context) == about


async def test_harvester_reports_its_version_itself(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        assert await harvester_missing(context) == "Harvester reports version v1.7.1 instead of v1.8.0"
        await world.client.patch(SETTINGS, "server-version", MergePatch({"value": "", "default": "v1.8.0"}))
        assert await harvester_missing(context) == ""
