"""The two programs that a demo consists of, started and watched as a user would start and watch them."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.demo.options import Options
    from hack.demo.processes import Child, Family

#: Seconds until the simulated cluster has to be ready; the real API server may have to be built first.
READY_WITHIN = {"embedded": 60.0, "real": 1200.0}

#: So many times a manager that was killed is started again.
RESTARTS = 20

_REPO_URL = re.compile(r"repo-url[= ](\S+)")


class DemoError(Exception):
    """The upgrade cannot be shown to its end; the text says why, and `child` whose log tells more."""

    def __init__(self, message: str, *, child: Child | None = None) -> None:
        super().__init__(message)
        self.child = child


@dataclass(slots=True)
class Stage:
    """A cluster and a manager that works on it."""

    kubeconfig: Path
    family: Family
    cluster: Child
    manager: Child
    manager_command: Sequence[str]
    restarts: int = 0

    async def check(self) -> str:
        """See that both still run. Returns a remark where a killed manager was started again; raises DemoError.

        SIGKILL is what an operator tries out and what the kernel does to a program that needs too much memory; a
        Deployment would start the manager again, and so does the demo. An exit of its own accord is an error.
        """
        if self.cluster.process.returncode is not None:
            raise DemoError(self.cluster.ending(), child=self.cluster)
        if self.manager.process.returncode is None:
            return ""
        if self.manager.process.returncode != -signal.SIGKILL or self.restarts == RESTARTS:
            raise DemoError(self.manager.ending(), child=self.manager)
        self.restarts += 1
        self.manager = await self.family.start("manager", self.manager_command)
        return f"the manager was killed; started again, process {self.manager.process.pid}"


async def prepare(options: Options, family: Family) -> Stage:
    """Start the cluster, wait until it is ready, and start the manager on it; raises DemoError."""
    kubeconfig = family.folder / "kubeconfig"
    cluster = await family.start("cluster", cluster_command(options, kubeconfig))
    ready = await ready_line(cluster, within=READY_WITHIN[options.api])
    command = manager_command(kubeconfig, repo_url(ready))
    manager = await family.start("manager", command)
    return Stage(kubeconfig=kubeconfig, family=family, cluster=cluster, manager=manager, manager_command=command)


def cluster_command(options: Options, kubeconfig: Path) -> list[str]:
    """Build the simulated cluster's command line."""
    command = [sys.executable, "-m", "hack.cluster", "--install-crds", "--api", options.api]
    command += ["--scenario", options.scenario, "--kubeconfig", str(kubeconfig)]
    if options.instant:
        command.append("--instant")
    if options.time_scale is not None:
        command += ["--time-scale", str(options.time_scale)]
    return command


def manager_command(kubeconfig: Path, repo_url: str) -> list[str]:
    """Build the manager's command line; its endpoints are off, so that two demos never fight over a port."""
    program = Path(sys.executable).with_name("upgrade-manager")
    command = [str(program), "run", "--kubeconfig", str(kubeconfig), "--repo-url", repo_url]
    return [*command, "--metrics-secure=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"]


def repo_url(ready: str) -> str:
    """Find the upgrade repository's address in the cluster's ready line; raises DemoError."""
    found = _REPO_URL.search(ready)
    if found is None:
        raise DemoError(f"the cluster's ready line names no repo-url: {ready}")
    return found.group(1)


async def ready_line(cluster: Child, *, within: float) -> str:
    """Wait for the line in which the cluster says that all is set up; raises DemoError."""
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
