"""kubectl against an API server: the embedded one behind the HTTPS gateway, or the real one."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from hack.apiserver.http_poster import HttpPoster
from hack.apiserver.identity import ADMIN, User
from hack.apiserver.server import ApiServer
from hack.cluster.gateway import Gateway
from hack.control_plane import control_plane as kube
from hack.control_plane.assets import Assets
from hack.control_plane.backend import direct
from hack.control_plane.certificates import Authority, server_context
from hack.control_plane.control_plane import ControlPlane
from tests.support.programs.polling import eventually
from tests.support.programs.process_result import ProcessResult
from tests.support.server.accounts import ACCOUNTS
from tests.support.server.cluster_reset import reset
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.crd import crd_manifest
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.transport import Transport

#: Permissions of users on UpgradePlans.
ROLES = Path(__file__).parents[3] / "deploy" / "rbac" / "upgradeplan-roles.yaml"
PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

#: Seconds until a running kubectl is killed; more than the 120 that a test lets it wait for the real garbage collector.
TIMEOUT = 150.0

#: The kind that a test may define.
WIDGETS = f"{CRDS}/widgets.example.com"
_CREATED, _EXISTS, _NOT_FOUND = 201, 409, 404
#: Seconds until a kind is served or deleted.
_DISCOVERY_TIMEOUT = 20.0


class Cluster:
    """An API server with the UpgradePlan's definition, and kubectl set up to reach it."""

    def __init__(self, transport: Transport, *, program: Path, kubeconfig: Path, home: Path) -> None:
        #: The same server without kubectl.
        self.wire = RawClient(transport)
        self._program = program
        self._kubeconfig = kubeconfig
        self._home = home

    async def kubectl(self, *arguments: str, stdin: str | dict[str, Any] = "", **environment: str) -> ProcessResult:
        """Run kubectl to its end."""
        process = await self._start(arguments, environment)
        given = stdin if isinstance(stdin, str) else json.dumps(stdin)
        try:
            async with asyncio.timeout(TIMEOUT):
                out, err = await process.communicate(given.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return ProcessResult(process.returncode or 0, out.decode(), err.decode())

    async def succeed(self, *arguments: str, stdin: str | dict[str, Any] = "", **environment: str) -> ProcessResult:
        """Run kubectl and check that it succeeds."""
        outcome = await self.kubectl(*arguments, stdin=stdin, **environment)
        assert outcome.code == 0, outcome.err
        return outcome

    async def fail(self, *arguments: str, stdin: str | dict[str, Any] = "", **environment: str) -> str:
        """Run kubectl, check that it fails without output, and return its error."""
        outcome = await self.kubectl(*arguments, stdin=stdin, **environment)
        assert (outcome.code, outcome.out) == (1, ""), outcome
        return outcome.err

    async def plan(self, name: str = "demo", *, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        """Create an UpgradePlan without kubectl, with a status if one is given."""
        answer = await self.wire.post(PLANS, manifest(name, **spec))
        assert answer.status == 201, answer.body
        if status is not None:
            answer = await self.wire.patch(f"{PLANS}/{name}/status", {"status": status})
        body: dict[str, Any] = answer.body
        return body

    @asynccontextmanager
    async def running(self, *arguments: str) -> AsyncIterator[asyncio.StreamReader]:
        """Run kubectl until the context ends, and yield its output."""
        process = await self._start(arguments, {})
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def _start(self, arguments: tuple[str, ...], environment: dict[str, str]) -> asyncio.subprocess.Process:
        clean = {"PATH": os.environ["PATH"], "HOME": str(self._home), "KUBECACHEDIR": str(self._home / "cache")}
        clean["TMPDIR"] = str(self._home)
        return await asyncio.create_subprocess_exec(
            str(self._program),
            f"--kubeconfig={self._kubeconfig}",
            *arguments,
            env=clean | environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


def installed() -> Path:
    """Return the kubectl on the PATH; else the one beside the interpreter, where `make test` installs it."""
    beside = Path(sys.executable).with_name("kubectl")
    return Path(shutil.which("kubectl") or beside)


def manifest(name: str = "demo", **spec: Any) -> dict[str, Any]:
    """Return an UpgradePlan; its default version is v1.8.0."""
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": name},
        "spec": spec or {"version": "v1.8.0"},
    }


@asynccontextmanager
async def embedded_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Run a server behind the gateway, with its files in the folder."""
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1), poster=HttpPoster(services={}))
    tokens = {"admin": "admin"} | {account.name: account.token for account in ACCOUNTS}
    server.authenticator.register("admin", ADMIN)
    for account in ACCOUNTS:
        user = User(name=account.name, groups=(*account.groups, "system:authenticated"))
        server.authenticator.register(account.token, user)
    authority = Authority(now=datetime.now(UTC))
    tls = server_context(authority.server(), folder)
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(Gateway(server, tls=tls))
        controllers = asyncio.ensure_future(server.run())
        stack.push_async_callback(_stopped, controllers)
        kubeconfig = _kubeconfig(folder, gateway.url, authority.certificate, tokens)
        found = Cluster(server, program=installed(), kubeconfig=kubeconfig, home=folder)
        await _define(found)
        yield found


@asynccontextmanager
async def real_cluster(folder: Path, plane: ControlPlane, assets: Assets) -> AsyncIterator[Cluster]:
    """Reset the worker's control plane and use its kubectl."""
    tokens = {"admin": kube.ADMIN.token} | {account.name: account.token for account in ACCOUNTS}
    async with direct(plane, token=kube.ADMIN.token) as transport:
        client = Client(transport, user_agent="kubectl-tests", random=Random(1))
        await reset(plane, transport, client)
        kubeconfig = _kubeconfig(folder, plane.url, plane.certificate, tokens)
        found = Cluster(transport, program=assets.folder / "kubectl", kubeconfig=kubeconfig, home=folder)
        await _define(found)
        try:
            yield found
        finally:
            await _undefine(found)


async def _define(cluster: Cluster) -> None:
    """Create the UpgradePlan definition and wait until it is served."""
    answer = await cluster.wire.post(CRDS, crd_manifest())
    assert answer.status in {_CREATED, _EXISTS}, answer.body

    async def is_served() -> bool:
        return (await cluster.wire.get(PLANS)).status != _NOT_FOUND

    await eventually(is_served, seconds=_DISCOVERY_TIMEOUT)


async def _undefine(cluster: Cluster) -> None:
    """Delete the test's kind and wait until it is deleted."""

    async def is_deleted() -> bool:
        return (await cluster.wire.delete(WIDGETS)).status == _NOT_FOUND

    await eventually(is_deleted, seconds=_DISCOVERY_TIMEOUT)


async def _stopped(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _kubeconfig(folder: Path, url: str, authority: bytes, tokens: dict[str, str]) -> Path:
    """Write a kubeconfig with a context for each user and for an unknown one."""
    encoded = base64.b64encode(authority).decode()
    users = tokens | {"stranger": "stranger"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": encoded}}],
        "users": [{"name": user, "user": {"token": token}} for user, token in users.items()],
        "contexts": [{"name": user, "context": {"cluster": "test", "user": user}} for user in users],
        "current-context": "admin",
    }
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return path
