"""A simulated cluster and a manager as two processes, with a recorder between them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hack.bench.in_process import PLAN, BenchError, plan_manifest
from hack.bench.recorder import Recorder
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, server_context
from hack.control_plane.control_plane import free_port
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.demo.options import parse
from hack.demo.polling import until
from hack.demo.processes import process_group
from hack.demo.programs import READY_TIMEOUT as CLUSTER_READY_TIMEOUT
from hack.demo.programs import cluster_command, ready_line, repo_url
from upgrade_manager.kube import objects, resources
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.demo.processes import Child, ProcessGroup
    from upgrade_manager.kube.objects import Object

#: The environment variable that names another installation's `upgrade-manager`, without the tools of development.
PROGRAM = "BENCH_MANAGER"
UPGRADE_TIMEOUT = 300.0
READY_TIMEOUT = 30.0
#: Seconds between two polls of a probe.
INTERVAL = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProcesses:
    """The processes and how to reach the cluster."""

    processes: ProcessGroup
    #: Records the manager's requests.
    recorder: Recorder
    #: Bypasses the recorder.
    client: Client
    #: Leads through the recorder.
    kubeconfig: Path
    repo_url: str

    async def start_manager(self, *flags: str, probes: int = 0) -> Child:
        """Start a manager, without servers unless flags name them, and wait until it is ready."""
        program = os.environ.get(PROGRAM) or str(Path(sys.executable).with_name("upgrade-manager"))
        servers = flags or ("--metrics-bind-address=0", "--webhook-bind-address=0")
        command = (program, "run", f"--kubeconfig={self.kubeconfig}", f"--repo-url={self.repo_url}", *servers)
        return await start_program(self.processes, "manager", *command, probes=probes)

    async def refuse_plan(self) -> None:
        """Create a plan whose Version does not exist, and delete it once it has a status."""
        await self.client.create(resources.UPGRADE_PLANS, {**plan_manifest(), "spec": {"version": "v9.9.9"}})
        await until(self._has_status, within=READY_TIMEOUT, otherwise="the plan has no status")
        await self.client.delete(resources.UPGRADE_PLANS, PLAN)
        await until(self._is_deleted, within=READY_TIMEOUT, otherwise="the plan is not deleted")

    async def _has_status(self) -> bool:
        return bool(objects.status(await self.client.get(resources.UPGRADE_PLANS, PLAN)))

    async def _is_deleted(self) -> bool:
        return not (await self.client.list(resources.UPGRADE_PLANS)).items

    async def create_plan(self) -> Object:
        """Create the plan."""
        return await self.client.create(resources.UPGRADE_PLANS, plan_manifest())

    async def succeeded(self) -> None:
        """Wait until the plan has succeeded. Raises BenchError if it fails, DemoError if that takes too long."""
        await until(self._has_succeeded, within=UPGRADE_TIMEOUT, otherwise="the plan has not ended")

    async def _has_succeeded(self) -> bool:
        phase = objects.status(await self.client.get(resources.UPGRADE_PLANS, PLAN)).get("currentPhase")
        if phase == "Failed":
            raise BenchError("the upgrade failed")
        return bool(phase == "Succeeded")


@contextlib.asynccontextmanager
async def local_processes(
    *, scenario: str, time_scale: float, recorder: type[Recorder] = Recorder
) -> AsyncIterator[LocalProcesses]:
    """Start a cluster, and the gateway through which a manager reaches it."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        children = await stack.enter_async_context(process_group(folder))
        direct = folder / "kubeconfig"
        options = parse(["--scenario", scenario, *(["--time-scale", str(time_scale)] if time_scale else ["--instant"])])
        cluster = await children.start("cluster", cluster_command(options, direct))
        url = repo_url(await ready_line(cluster, within=CLUSTER_READY_TIMEOUT[options.api]))
        config = await load_config(environ={}, now=lambda: datetime.now(UTC), kubeconfig=str(direct))
        transport = await stack.enter_async_context(HttpTransport(config))
        recording = recorder(transport)
        authority = Authority(now=datetime.now(UTC))
        gateway = Gateway(recording, tls=server_context(authority.server(), folder))
        await stack.enter_async_context(gateway)
        yield LocalProcesses(
            processes=children,
            recorder=recording,
            client=Client(transport, user_agent="bench", random=random.Random(0)),
            kubeconfig=_redirected(direct, gateway.url, authority.certificate),
            repo_url=url,
        )


def _redirected(direct: Path, url: str, authority: bytes) -> Path:
    """Write a kubeconfig for the same user at the gateway."""
    user = yaml.safe_load(direct.read_text())["users"][0]["user"]
    path = direct.with_name("kubeconfig-gateway")
    write(path, kubeconfig(server=url, authority=authority, token=user["token"]))
    return path


async def start_program(children: ProcessGroup, name: str, *command: str, probes: int = 0) -> Child:
    """Start a program, and wait until its probes on that port, by default a free one, report that it is ready."""
    port = probes or free_port()
    child = await children.start(name, [*command, f"--health-probe-bind-address=127.0.0.1:{port}"])
    async with asyncio.timeout(READY_TIMEOUT):
        if not await child.is_ready(f"http://127.0.0.1:{port}/readyz", interval=INTERVAL):
            raise BenchError(f"{child.ending()}\n{child.tail(20)}")
    return child
