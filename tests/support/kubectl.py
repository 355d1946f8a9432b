"""The real kubectl against an API server behind the HTTPS gateway: what its users would see."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from hack.apiserver.identity import ADMIN, User
from hack.apiserver.server import ApiServer
from hack.certificates import Authority, server_context
from hack.gateway import Gateway
from tests.support.apiserver import NoPoster
from tests.support.wire import Wire
from upgrade_manager.api.crd import crd_manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

#: Seconds after which a program counts as hung.
PATIENCE = 40.0

#: Tokens of the users that every cluster knows.
USERS = {
    "admin": ADMIN,
    "bob": User(name="bob", groups=("developers", "system:authenticated")),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program printed, and its exit status."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The output line by line."""
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The output as a table: cells of each line, without the spaces between them."""
        return [line.split() for line in self.lines]

    @property
    def json(self) -> Any:
        """The output parsed."""
        return json.loads(self.out)


class Cluster:
    """An API server with the UpgradePlan's definition, and kubectl set up to reach it."""

    def __init__(self, server: ApiServer, *, kubeconfig: Path, home: Path) -> None:
        self.server = server
        #: The same server without the detour.
        self.wire = Wire(server)
        self._kubeconfig = kubeconfig
        self._home = home

    async def kubectl(self, *arguments: str, stdin: str | dict[str, Any] = "", **environment: str) -> Outcome:
        """Run it to its end."""
        process = await self._start(arguments, environment)
        given = stdin if isinstance(stdin, str) else json.dumps(stdin)
        try:
            async with asyncio.timeout(PATIENCE):
                out, err = await process.communicate(given.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Outcome(process.returncode or 0, out.decode(), err.decode())

    async def succeed(self, *arguments: str, stdin: str | dict[str, Any] = "", **environment: str) -> Outcome:
        """Run it and insist that it succeeds."""
        outcome = await self.kubectl(*arguments, stdin=stdin, **environment)
        assert outcome.code == 0, outcome.err
        return outcome

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
        """The output of a kubectl that goes on until the context is left."""
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
            program(),
            f"--kubeconfig={self._kubeconfig}",
            *arguments,
            env=clean | environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


def program() -> str:
    """The kubectl on the PATH; else the one beside the interpreter, where `make test` installs it."""
    beside = Path(sys.executable).with_name("kubectl")
    return shutil.which("kubectl") or str(beside)


def manifest(name: str = "demo", **spec: Any) -> dict[str, Any]:
    """An UpgradePlan to version v1.8.0, unless the spec says otherwise."""
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": name},
        "spec": spec or {"version": "v1.8.0"},
    }


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """A running cluster whose files are in the folder."""
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1), poster=NoPoster())
    for token, user in USERS.items():
        server.authenticator.register(token, user)
    authority = Authority(now=datetime.now(UTC))
    tls = server_context(authority.server(), folder)
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(Gateway(server, tls=tls))
        controllers = asyncio.ensure_future(server.run())
        stack.push_async_callback(_stopped, controllers)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(gateway.url, authority.certificate)))
        found = Cluster(server, kubeconfig=kubeconfig, home=folder)
        answer = await found.wire.post(CRDS, crd_manifest())
        assert answer.status == 201, answer.body
        yield found


async def _stopped(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _kubeconfig(url: str, authority: bytes) -> dict[str, Any]:
    """One context for each user, and one for nobody."""
    encoded = base64.b64encode(authority).decode()
    users = [*USERS, "stranger"]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": encoded}}],
        "users": [{"name": user, "user": {"token": user}} for user in users],
        "contexts": [{"name": user, "context": {"cluster": "test", "user": user}} for user in users],
        "current-context": "admin",
    }
