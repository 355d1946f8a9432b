"""Tokens of the manager's account that are good for a while, from whichever API server it is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from hack.apiserver.identity import User
from tests.support.polling import eventually
from tests.support.upgrade import ACCOUNT
from tests.support.wire import Wire
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.resources import SECRETS, Resource

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from hack.simulation import Simulation

_SERVICE_ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount", namespaced=True)
_, _, NAMESPACE, NAME = ACCOUNT.split(":")
_GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")
_PATH = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
_UNAUTHORIZED = 401
#: Seconds until kube-apiserver forgets that a token was good, ten, and between two looks.
_PATIENCE, _LOOK = 30.0, 0.2


class Tokens(Protocol):
    """Whoever gives them out."""

    async def issue(self) -> str:
        """A new one."""
        ...

    async def revoke(self, token: str) -> None:
        """Returns when it is good for nothing any more."""
        ...


class EmbeddedTokens:
    """The embedded server's, which have no inside."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._issued = 0

    async def issue(self) -> str:
        """See Tokens."""
        self._issued += 1
        token = f"secret-of-the-manager-{self._issued}"
        self._server.authenticator.register(token, User(name=ACCOUNT, groups=_GROUPS))
        return token

    async def revoke(self, token: str) -> None:
        """See Tokens."""
        self._server.authenticator.forget(token)


class BoundTokens:
    """The TokenRequest API's, each bound to a Secret: none can be had for less than ten minutes otherwise."""

    def __init__(self, simulation: Simulation) -> None:
        self._client = simulation.client()
        self._admin = Wire(simulation.backend.transport)
        self._front = simulation.backend.client_transport
        #: Names of the Secrets, by token.
        self._bound: dict[str, str] = {}

    async def issue(self) -> str:
        """See Tokens."""
        with suppress(AlreadyExists):
            await self._client.create(_SERVICE_ACCOUNTS, {"metadata": {"name": NAME, "namespace": NAMESPACE}})
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
        """See Tokens."""
        await self._client.delete(SECRETS, self._bound[token], namespace=NAMESPACE)
        asked = Wire(self._front, headers={"authorization": f"Bearer {token}"})

        async def is_refused() -> bool:
            return (await asked.get("/api")).status == _UNAUTHORIZED

        await eventually(is_refused, seconds=_PATIENCE, pause=_LOOK)


def tokens_of(simulation: Simulation) -> Tokens:
    """Whoever gives them out there."""
    return BoundTokens(simulation) if simulation.backend.has_controllers else EmbeddedTokens(simulation.server)
