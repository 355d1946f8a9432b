"""A Pod's connection to the API server: tokens, sockets, TLS and a gateway that a test can block."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from hack.apiserver.identity import User
from hack.apiserver.server import ApiServer
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, server_context
from hack.faults.breakable_transport import BreakableTransport
from hack.simulation import Simulation
from tests.support.managers.upgrade import ACCOUNT
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import RawClient
from upgrade_manager.kube.config import InCluster
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.resources import SECRETS, SERVICE_ACCOUNTS
from upgrade_manager.kube.transport import Transport


class ResponseCounter:
    """Counts responses by status."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()

    def on_response(self, _method: str, _host: str, code: str, _seconds: float) -> None:
        """Count it by its status."""
        self.codes[code] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PodConnection:
    """A manager's connection with its Pod's service account."""

    transport: HttpTransport
    #: Behind the gateway.
    line: BreakableTransport
    answers: ResponseCounter
    folder: Path

    def write_token(self, token: str) -> None:
        """Replace the token atomically, as the kubelet does."""
        write_token(self.folder, token)


def write_token(folder: Path, token: str) -> None:
    """Replace the token file atomically."""
    (folder / "..token").write_text(token)
    (folder / "..token").replace(folder / "token")


@asynccontextmanager
async def gated(inner: Transport, folder: Path, *, token: str) -> AsyncIterator[PodConnection]:
    """Run a gateway before the server, and connect through it with the token."""
    authority, line, answers = Authority(now=datetime.now(UTC)), BreakableTransport(inner), ResponseCounter()
    (folder / "ca.crt").write_bytes(authority.certificate)
    write_token(folder, token)
    async with Gateway(line, tls=server_context(authority.server(), folder)) as gateway:
        connection = await InCluster(host="127.0.0.1", port=str(gateway.port), folder=folder).load()
        async with HttpTransport(connection, on_response=answers.on_response) as transport:
            yield PodConnection(transport=transport, line=line, answers=answers, folder=folder)
            # A blocked gateway would not close.
            line.mend()


_, _, NAMESPACE, NAME = ACCOUNT.split(":")
_GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")
_PATH = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
_UNAUTHORIZED = 401
#: Seconds; kube-apiserver caches a token for ten.
_REVOKE_TIMEOUT, _POLL_INTERVAL = 30.0, 0.2


class EmbeddedTokens:
    """Tokens of the embedded server, which are opaque."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._issued = 0

    async def issue(self) -> str:
        self._issued += 1
        token = f"secret-of-the-manager-{self._issued}"
        self._server.authenticator.register(token, User(name=ACCOUNT, groups=_GROUPS))
        return token

    async def revoke(self, token: str) -> None:
        """Reject the token from now on."""
        self._server.authenticator.forget(token)


class BoundTokens:
    """Tokens of the TokenRequest API, bound to a Secret, so that they can be revoked within ten minutes."""

    def __init__(self, simulation: Simulation) -> None:
        self._client = simulation.client()
        self._admin = RawClient(simulation.backend.transport)
        self._front = simulation.backend.client_transport
        #: Names of the Secrets, by token.
        self._bound: dict[str, str] = {}

    async def issue(self) -> str:
        with suppress(AlreadyExists):
            await self._client.create(SERVICE_ACCOUNTS, {"metadata": {"name": NAME, "namespace": NAMESPACE}})
        name = f"manager-{len(self._bound)}"
        secret = await self._client.create(SECRETS, {"metadata": {"name": name, "namespace": NAMESPACE}})
        bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
        answer = await self._admin.post(
            _PATH,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"audiences": [], "expirationSeconds": 3600, "boundObjectRef": bound},
            },
        )
        assert answer.status == 201, answer.body
        token = str(answer.body["status"]["token"])
        self._bound[token] = name
        return token

    async def revoke(self, token: str) -> None:
        """Wait until the token is rejected."""
        await self._client.delete(SECRETS, self._bound[token], namespace=NAMESPACE)
        caller = RawClient(self._front, headers={"authorization": f"Bearer {token}"})

        async def is_refused() -> bool:
            return (await caller.get("/api")).status == _UNAUTHORIZED

        await eventually(is_refused, seconds=_REVOKE_TIMEOUT, pause=_POLL_INTERVAL)


Tokens: TypeAlias = EmbeddedTokens | BoundTokens


def tokens_of(simulation: Simulation) -> Tokens:
    """Return the issuer of the simulation's API server."""
    return BoundTokens(simulation) if simulation.backend.has_controllers else EmbeddedTokens(simulation.server)
