"""The demo's two programs, a simulated cluster and a manager, started as a user starts them."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.demo.ports import HOST
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from webhook.certificates.rotation import SERVICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.demo.options import Options
    from hack.demo.ports import Ports
    from hack.demo.processes import Child, ProcessGroup
    from hack.fast_time import FastTime

#: Seconds in which the simulated cluster has to be ready.
READY_TIMEOUT = {"embedded": 60.0, "real": 300.0}

#: Seconds in which the manager has to be ready.
MANAGER_TIMEOUT = 120.0

#: Restarts of a manager that was killed.
MAX_RESTARTS = 20

_REPO_URL = re.compile(r"repo-url[= ](\S+)")


class DemoError(Exception):
    """The demo failed; the log of `child` has more."""

    def __init__(self, message: str, *, child: Child | None = None) -> None:
        super().__init__(message)
        self.child = child


@dataclass(slots=True)
class Programs:
    """A cluster and its manager."""

    kubeconfig: Path
    processes: ProcessGroup
    cluster: Child
    manager: Child
    manager_command: Sequence[str]
    restarts: int = 0

    async def check(self) -> str:
        """Restart a manager that was killed, and return a message about it. Raises DemoError when a program has ended.

        A Deployment restarts a container that an operator or the kernel has killed. Any other exit is an error.
        """
        if self.cluster.process.returncode is not None:
            raise DemoError(self.cluster.ending(), child=self.cluster)
        if self.manager.process.returncode is None:
            return ""
        if self.manager.process.returncode != -signal.SIGKILL or self.restarts == MAX_RESTARTS:
            raise DemoError(self.manager.ending(), child=self.manager)
        self.restarts += 1
        self.manager = await self.processes.start("manager", self.manager_command)
        return f"the manager was killed; restarted as process {self.manager.process.pid}"


async def start_cluster(
    options: Options, processes: ProcessGroup, *, kubeconfig: Path, ports: Ports
) -> tuple[Child, str]:
    """Start the cluster and wait until it is ready; return it and the upgrade repository's URL. Raises DemoError."""
    # A real API server ignores the flag: it resolves the Service itself.
    service = f"--service={HARVESTER_SYSTEM}/{SERVICE}=https://{HOST}:{ports.webhook}"
    cluster = await processes.start("cluster", [*cluster_command(options, kubeconfig), service])
    ready = await ready_line(cluster, within=READY_TIMEOUT[options.api])
    return cluster, repo_url(ready)


async def start_manager(
    cluster: Child, processes: ProcessGroup, *, kubeconfig: Path, repo: str, ports: Ports, time: FastTime
) -> Programs:
    """Start the manager and wait until it is ready. Raises DemoError."""
    command = manager_command(kubeconfig, repo, ports, time=time)
    manager = await processes.start("manager", command)
    await _ready(manager, ports.probes)
    return Programs(
        kubeconfig=kubeconfig, processes=processes, cluster=cluster, manager=manager, manager_command=command
    )


def cluster_command(options: Options, kubeconfig: Path) -> list[str]:
    """Return the simulated cluster's command line."""
    command = [sys.executable, "-m", "hack.cluster", "--install-crds", "--api", options.api]
    command += ["--scenario", options.scenario, "--kubeconfig", str(kubeconfig), "--toolkit", options.toolkit]
    command += ["--instant"] if options.instant else ["--time-scale", str(options.time_scale)]
    if options.time.rate != 1:
        command += ["--fast-time", *options.time.arguments()]
    return command


def manager_command(kubeconfig: Path, repo_url: str, ports: Ports, *, time: FastTime) -> list[str]:
    """Return the manager's command line."""
    program = [str(Path(sys.executable).with_name("upgrade-manager"))]
    if time.rate != 1:
        program = [sys.executable, "-m", "hack.fast_time", *time.arguments()]
    # The user's shell may have other values, for a manager outside a cluster.
    environment = ["ENABLE_WEBHOOKS=true", f"POD_NAMESPACE={HARVESTER_SYSTEM}"]
    command = [*program, "run", "--kubeconfig", str(kubeconfig), "--repo-url", repo_url]
    return [
        "env",
        *environment,
        *command,
        "--metrics-bind-address=0",
        f"--health-probe-bind-address={HOST}:{ports.probes}",
        f"--webhook-bind-address={HOST}:{ports.webhook}",
    ]


def repo_url(ready: str) -> str:
    """Return the upgrade repository's URL from the cluster's ready line. Raises DemoError."""
    found = _REPO_URL.search(ready)
    if found is None:
        raise DemoError(f"the cluster's ready line has no repo-url: {ready}")
    return found.group(1)


async def ready_line(cluster: Child, *, within: float) -> str:
    """Wait for the cluster's ready line. Raises DemoError."""
    try:
        async with asyncio.timeout(within):
            while cluster.process.returncode is None:
                for line in cluster.log.read_text(errors="replace").splitlines(keepends=True):
                    if line.startswith("ready") and line.endswith("\n"):
                        return line.rstrip()
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise DemoError(f"the cluster was not ready within {within:.0f} s", child=cluster) from None
    raise DemoError(cluster.ending(), child=cluster)


async def _ready(manager: Child, port: int) -> None:
    """Wait for /readyz, which includes the webhook's certificate. Raises DemoError."""
    try:
        async with asyncio.timeout(MANAGER_TIMEOUT):
            is_ready = await manager.is_ready(f"http://{HOST}:{port}/readyz", interval=0.05)
    except TimeoutError:
        raise DemoError(f"the manager was not ready within {MANAGER_TIMEOUT:.0f} s", child=manager) from None
    if not is_ready:
        raise DemoError(manager.ending(), child=manager)
