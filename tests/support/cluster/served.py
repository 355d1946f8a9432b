"""A simulated cluster behind HTTPS, and commands of the manager as processes that read it."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hack import scenario as scenarios
from hack.cluster.options import Options
from hack.cluster.program import cluster
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a user's shell."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"}


async def manager(*arguments: str, home: Path, stdout: int = PIPE) -> asyncio.subprocess.Process:
    """Start the manager's command line."""
    program = (sys.executable, "-m", "upgrade_manager", *arguments)
    variables = environment(home)
    return await asyncio.create_subprocess_exec(*program, env=variables, stdin=PIPE, stdout=stdout, stderr=PIPE)


def kubeconfig_of(server: str) -> str:
    """Return a kubeconfig whose server's certificate is not verified."""
    cluster = f'server: "{server}", insecure-skip-tls-verify: true'
    return f"""\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters: [{{name: k, cluster: {{{cluster}}}}}]
users: [{{name: u, user: {{token: a-secret-token}}}}]
"""


async def result(process: asyncio.subprocess.Process, *, given: str = "") -> ProcessResult:
    """Wait for the end of a process, whose standard input is what is given."""
    out, err = await process.communicate(given.encode())
    return ProcessResult(process.returncode or 0, out.decode(), err.decode())


@dataclass(frozen=True)
class Served:
    """A cluster without actors, and without a manager."""

    kubeconfig: Path
    client: Client

    async def set(self, **status: Any) -> None:
        await self.client.patch(UPGRADE_PLANS, "demo", MergePatch({"status": status}), subresource="status")

    async def run(self, command: str, *others: str) -> ProcessResult:
        """Run a command of the manager with the cluster's kubeconfig, until its end."""
        line = (command, f"--kubeconfig={self.kubeconfig}", *others)
        return await result(await manager(*line, home=self.kubeconfig.parent))


@asynccontextmanager
async def served(
    folder: Path,
    *,
    scenario: str = "three-nodes",
    scale: float = 1.0,
    services: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Served]:
    """Serve a simulated cluster over HTTPS; `services` are the URLs of webhooks, by namespace/name."""
    kubeconfig = folder / "kubeconfig"
    options = Options(
        api="embedded",
        scenario=scenario,
        kubeconfig=kubeconfig,
        scale=scale,
        seed=0,
        port=0,
        install_crds=True,
        services=services,
    )
    async with cluster(options, scenarios.load(scenario)):
        config = await load_config(environ={}, now=lambda: datetime.now(UTC), kubeconfig=str(kubeconfig))
        async with HttpTransport(config) as transport:
            client = Client(transport, user_agent="test", random=random.Random(0))
            yield Served(kubeconfig=kubeconfig, client=client)
