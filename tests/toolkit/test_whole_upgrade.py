"""Whole upgrades in which our commands do the nodes' work: processes on trees of files."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.cluster import scenario as scenarios
from hack.cluster.options import Options
from hack.cluster.program import cluster
from hack.host.state import HostState
from tests.support.kubectl import manifest
from upgrade_manager.api.phases import SUCCEEDED, TERMINAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.resources import NODES, UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

pytestmark = [pytest.mark.full, pytest.mark.real_loop, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
INSTALLATION, REBOOT = "elemental upgrade --logfile", "systemd-run "
_POLL = 0.5
_SCALE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """The end of an upgrade."""

    plan: Object
    nodes: list[Object]
    hosts: Path

    def logs(self) -> str:
        """Return the logs of all containers, for a failed test."""
        return "\n".join(f"{log.name}:\n{log.read_text()[-2000:]}" for log in sorted(self.hosts.glob("logs/*.log")))

    def files(self, node: str, folder: str) -> list[str]:
        """Return the names of the files below a folder of a node's host."""
        root = self.hosts / node / "host" / folder
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def state(self, node: str) -> HostState:
        """Return what the services of a node's host know."""
        return HostState.load(self.hosts / node / "state.json")


async def upgrade(folder: Path, scenario: str) -> Upgraded:
    """Upgrade a simulated cluster to its end."""
    options = Options(
        api="embedded",
        scenario=scenario,
        kubeconfig=folder / "kubeconfig",
        scale=_SCALE,
        seed=1,
        port=0,
        install_crds=True,
        services={},
        real_toolkit=True,
        hosts=folder / "hosts",
    )
    async with cluster(options, scenarios.load(scenario)) as running:
        config = await load_config(environ={}, now=SystemClock().now, kubeconfig=str(options.kubeconfig))
        async with HttpTransport(config) as transport, _manager(folder, options.kubeconfig, running.repo_url):
            client = Client(transport, user_agent="test", random=Random(1))
            plan = await client.create(UPGRADE_PLANS, manifest("demo"))
            while objects.status(plan).get("currentPhase") not in TERMINAL:
                await asyncio.sleep(_POLL)
                plan = await client.get(UPGRADE_PLANS, "demo")
            nodes = (await client.list(NODES)).items
    return Upgraded(plan=plan, nodes=nodes, hosts=folder / "hosts")


@asynccontextmanager
async def _manager(folder: Path, kubeconfig: Path, repo_url: str) -> AsyncIterator[None]:
    """Run a manager as a process."""
    off = [f"--{name}-bind-address=0" for name in ("metrics", "health-probe", "webhook")]
    with (folder / "manager.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "upgrade_manager", "run", f"--kubeconfig={kubeconfig}", f"--repo-url={repo_url}"),
            *off,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            process.terminate()
            await process.wait()


async def test_three_nodes_are_upgraded_by_our_commands(tmp_path: Path) -> None:
    upgraded = await upgrade(tmp_path, "three-nodes")
    check(upgraded)
    for node in upgraded.nodes:
        calls = upgraded.state(objects.name(node)).calls
        restored = calls.index("systemctl restart rancher-system-agent.service")
        (installed,) = (index for index, call in enumerate(calls) if call.startswith(INSTALLATION))
        assert restored < installed


async def test_one_node_and_its_services_are_upgraded(tmp_path: Path) -> None:
    addon = {"name": "rancher-monitoring", "namespace": "cattle-monitoring-system", "enabled": True}
    scenario = {"services": True, "nodes": {"count": 1, "management": 1}, "addons": [addon]}
    file = tmp_path / "services.yaml"
    file.write_text(yaml.safe_dump(scenario))
    upgraded = await upgrade(tmp_path, str(file))
    check(upgraded)
    (log,) = (log.read_text() for log in upgraded.hosts.glob("logs/*cluster-upgrade*.log"))
    done = [line["step"] for line in map(json.loads, log.splitlines()) if line["event"] == "step done"]
    assert {"pause-charts", "upgrade-rancher", "upgrade-harvester", "upgrade-addons", "unpause-charts"} <= set(done)


def check(upgraded: Upgraded) -> None:
    """Check what every upgrade leaves on the hosts."""
    assert objects.status(upgraded.plan)["currentPhase"] == SUCCEEDED, upgraded.logs()
    for node in upgraded.nodes:
        assert objects.status(node)["nodeInfo"]["osImage"] == "Harvester v1.8.0"
        assert objects.spec(node).get("taints") is None
        name = objects.name(node)
        state = upgraded.state(name)
        assert "docker.io/rancher/harvester:v1.8.0" in state.images
        assert upgraded.files(name, "var/lib/rancher/agent/images") == [
            "rancherd-bootstrap-images-v1.8.0.tar.zst",
            "rancherd-bootstrap-images-v1.8.0.txt",
        ]
        assert upgraded.files(name, "var/lib/rancher/rke2/agent/images") == []
        kept = ["images.json", "os/elemental.log", "os/upgrade.json"]
        assert upgraded.files(name, "usr/local/harvester-upgrade") == kept
        for once in (INSTALLATION, REBOOT):
            assert len([call for call in state.calls if call.startswith(once)]) == 1
        assert "99-max-pods.yaml" in upgraded.files(name, "etc/rancher/rke2/config.yaml.d")
        assert state.mounts == {}
