"""Whole upgrades in which our commands do the nodes' work, and that of restore-vm: processes on trees of files."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from hack import scenario as scenarios
from hack.cluster.options import Options
from hack.cluster.program import cluster
from hack.host.iso import ROOTFS
from hack.host.state import HostState
from hack.scenario import Scenario
from tests.support.cluster.kubectl import manifest
from upgrade_manager.api.phases import SUCCEEDED, TERMINAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import (
    EVENTS,
    NODES,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)

pytestmark = [pytest.mark.full, pytest.mark.long, pytest.mark.real_loop, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
INSTALLATION, REBOOT = "elemental upgrade --logfile", "systemd-run "
OS = "Harvester v1.8.0"
#: Two VMs that cannot be migrated: one runs, the user has stopped the other.
VMS = (
    {"name": "fixed", "node": "node-0", "migratable": False},
    {"name": "off", "node": "node-0", "migratable": False, "run_strategy": "Halted"},
)
_SHUTDOWN = re.compile(
    r"Shutdown completed for (?P<count>\d+) VM\(s\) on node (?P<node>\S+), success: (?P=count), failed: 0"
)
_POLL = 0.5
_SCALE = 0.05


@dataclass(slots=True)
class Instances:
    """The instances of the VMs since the beginning."""

    #: By VM: uids, in order.
    uids: dict[str, list[str]] = field(default_factory=dict)
    #: Starts of VMs: the VM, and the operating system of the node on which it ran before.
    starts: list[tuple[str, str]] = field(default_factory=list)
    #: Nodes by VM.
    _places: dict[str, str] = field(default_factory=dict)

    async def observe(self, client: Client) -> None:
        """Read the nodes, and then the instances: what started meanwhile counts for the earlier system."""
        systems = {objects.name(one): objects.status(one)["nodeInfo"]["osImage"] for one in await _nodes(client)}
        for one in (await client.list(VIRTUAL_MACHINE_INSTANCES)).items:
            name, uids = objects.name(one), self.uids.setdefault(objects.name(one), [])
            if objects.uid(one) not in uids:
                uids.append(objects.uid(one))
                if name in self._places:
                    self.starts.append((name, systems[self._places[name]]))
            self._places[name] = objects.status(one).get("nodeName") or self._places[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """The end of an upgrade."""

    plan: Object
    nodes: list[Object]
    hosts: Path
    instances: Instances
    #: Run strategies of the VMs, by name.
    strategies: dict[str, str]
    #: The messages of the events about the plan, by reason.
    events: dict[str, list[str]]

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


async def upgrade(folder: Path, scenario: Scenario) -> Upgraded:
    """Upgrade a simulated cluster to its end, with spec.restoreVM."""
    options = Options(
        api="embedded",
        scenario=scenario.name,
        kubeconfig=_as_given(folder / "kubeconfig"),
        scale=_SCALE,
        seed=1,
        port=0,
        install_crds=True,
        services={},
        real_toolkit=True,
        hosts=_as_given(folder / "hosts"),
    )
    async with cluster(options, scenario) as running:
        config = await load_config(environ={}, now=SystemClock().now, kubeconfig=str(options.kubeconfig))
        async with HttpTransport(config) as transport, _manager(folder, running.repo_url):
            client = Client(transport, user_agent="test", random=Random(1))
            plan = await client.create(UPGRADE_PLANS, manifest("demo", version="v1.8.0", restoreVM=True))
            instances = Instances()
            await instances.observe(client)
            while objects.status(plan).get("currentPhase") not in TERMINAL:
                await asyncio.sleep(_POLL)
                await instances.observe(client)
                plan = await client.get(UPGRADE_PLANS, "demo")
            await instances.observe(client)
            return Upgraded(
                plan=plan,
                nodes=await _nodes(client),
                hosts=folder / "hosts",
                instances=instances,
                strategies=await _strategies(client),
                events=await _events(client),
            )


def _as_given(path: Path) -> Path:
    """Return the path as users give it, relative to their working directory."""
    return Path(os.path.relpath(path))


async def _nodes(client: Client) -> list[Object]:
    return list((await client.list(NODES)).items)


async def _strategies(client: Client) -> dict[str, str]:
    machines = (await client.list(VIRTUAL_MACHINES)).items
    return {objects.name(machine): objects.spec(machine)["runStrategy"] for machine in machines}


async def _events(client: Client) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event in (await client.list(EVENTS)).items:
        if event["involvedObject"]["name"] == "demo":
            found.setdefault(event["reason"], []).append(event["message"])
    return found


@asynccontextmanager
async def _manager(folder: Path, repo_url: str) -> AsyncIterator[None]:
    """Run a manager as a process."""
    kubeconfig = folder / "kubeconfig"
    off = [f"--{name}-bind-address=0" for name in ("metrics", "health-probe", "webhook")]
    with (folder / "manager.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "upgrade_manager", "run", f"--kubeconfig={kubeconfig}", f"--repo-url={repo_url}"),
            *("--toolkit-kind=own", "--toolkit-image=example/toolkit"),
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
    scenario = scenarios.load("three-nodes")
    upgraded = await upgrade(tmp_path, scenario.changed(vms={"machines": VMS}))
    check(upgraded)
    check_vms(upgraded, "fixed")
    for node in upgraded.nodes:
        calls = upgraded.state(objects.name(node)).calls
        restored = calls.index("systemctl restart rancher-system-agent.service")
        (installed,) = (index for index, call in enumerate(calls) if call.startswith(INSTALLATION))
        assert restored < installed


async def test_one_node_and_its_services_are_upgraded(tmp_path: Path) -> None:
    addon = {"name": "rancher-monitoring", "namespace": "cattle-monitoring-system", "enabled": True}
    document = {
        "name": "services",
        "services": True,
        "nodes": {"count": 1, "management": 1},
        "vms": {"machines": [*VMS, {"name": "free", "node": "node-0"}]},
        "addons": [addon],
    }
    upgraded = await upgrade(tmp_path, scenarios.parse(document, origin="services"))
    check(upgraded)
    check_vms(upgraded, "fixed", "free")
    (log,) = (log.read_text() for log in upgraded.hosts.glob("logs/*cluster-upgrade*.log"))
    done = [line["step"] for line in map(json.loads, log.splitlines()) if line["event"] == "step done"]
    assert {"pause-charts", "upgrade-rancher", "upgrade-harvester", "upgrade-addons", "unpause-charts"} <= set(done)


def check_vms(upgraded: Upgraded, *stopped: str) -> None:
    """Check that these VMs were stopped and, once their nodes were upgraded, started again; the user's stays off."""
    assert {name for name, strategy in upgraded.strategies.items() if strategy == "Halted"} == {"off"}, upgraded.logs()
    assert "off" not in upgraded.instances.uids
    assert {name for name, uids in upgraded.instances.uids.items() if len(uids) > 1} == set(stopped)
    assert set(upgraded.instances.starts) == {(name, OS) for name in stopped}
    assert {"RestoreVMConfigMapFailed", "VMShutdownFailed", "RestoreVMFailed"}.isdisjoint(upgraded.events)
    shutdowns = map(_SHUTDOWN.fullmatch, upgraded.events["VMShutdownCompleted"])
    counts = {match["node"]: int(match["count"]) for match in shutdowns if match is not None}
    assert len(counts) == len(upgraded.events["VMShutdownCompleted"])
    assert sum(counts.values()) == len(upgraded.instances.starts)
    assert sorted(upgraded.events["RestoreVMCompleted"]) == [
        f"Restored {count} VMs for node {node} during upgrade demo, success: {count}, failed: 0"
        for node, count in sorted(counts.items())
        if count
    ]


def check(upgraded: Upgraded) -> None:
    """Check what every upgrade leaves on the hosts."""
    assert objects.status(upgraded.plan)["currentPhase"] == SUCCEEDED, upgraded.logs()
    checksums = objects.status(upgraded.plan)["checksums"]
    assert (checksums["checked"], f"/{ROOTFS}" in checksums["files"]) == (True, True)
    assert [path for pod in upgraded.hosts.glob("pods/*") for path in pod.iterdir()] == []
    for node in upgraded.nodes:
        assert objects.status(node)["nodeInfo"]["osImage"] == OS
        assert objects.spec(node).get("taints") is None
        name = objects.name(node)
        state = upgraded.state(name)
        assert "docker.io/rancher/harvester:v1.8.0" in state.images
        assert upgraded.files(name, "var/lib/rancher/agent/images") == [
            "rancherd-bootstrap-images-v1.8.0.tar.zst",
            "rancherd-bootstrap-images-v1.8.0.txt",
        ]
        assert upgraded.files(name, "var/lib/rancher/rke2/agent/images") == []
        kept = ["images.json", "os/elemental.log", "os/kernel-arguments.json", "os/upgrade.json"]
        assert upgraded.files(name, "usr/local/harvester-upgrade") == kept
        for once in (INSTALLATION, REBOOT):
            assert len([call for call in state.calls if call.startswith(once)]) == 1
        assert "99-max-pods.yaml" in upgraded.files(name, "etc/rancher/rke2/config.yaml.d")
        assert state.mounts == {}
