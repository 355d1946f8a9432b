"""An API server without objects, embedded or real, for tests of the API itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

from hack.apiserver.http_poster import HttpPoster
from hack.apiserver.identity import User
from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ADMIN, ControlPlane
from tests.support.server.accounts import ACCOUNTS
from tests.support.server.apiserver import make_server
from tests.support.server.raw_client import RawClient
from tests.support.tiers import EMBEDDED, REAL
from upgrade_manager.kube.transport import Transport


class Compactable(Protocol):
    """Storage that can be compacted."""

    def compact(self) -> None:
        """Compact the history: older watches and continue tokens get 410."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BareApi:
    """The server as one test sees it.

    The real one is shared by a worker's tests: use `namespace`, and `word` in the names of cluster-scoped objects.
    """

    #: embedded or real.
    server: str
    #: As an administrator.
    transport: Transport
    #: As the user of each request's Authorization header.
    open: Transport
    #: Exists, empty.
    namespace: str
    #: Unique to the test, for names of cluster-scoped objects and API groups.
    word: str
    storage: Compactable = field(repr=False)

    @property
    def admin(self) -> RawClient:
        return RawClient(self.transport)

    def acting_as(self, user: str) -> RawClient:
        """Return a client that impersonates a user in system:authenticated."""
        return RawClient(self.transport, headers={"impersonate-user": user})

    def holding(self, token: str) -> RawClient:
        """Return a client with a token (tests/support/server/accounts.py), anonymous without one."""
        return RawClient(self.open, headers={"authorization": f"Bearer {token}" if token else ""})

    def path(self, plural: str, name: str = "", *, group: str = "", version: str = "v1") -> str:
        """Return the path of a collection or an object in the test's namespace."""
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        whole = f"{root}/namespaces/{self.namespace}/{plural}"
        return f"{whole}/{name}" if name else whole


@asynccontextmanager
async def embedded_api(group: asyncio.TaskGroup) -> AsyncIterator[BareApi]:
    """Run a server with its controllers."""
    server = make_server(poster=HttpPoster(services={}))
    for account in ACCOUNTS:
        groups = (*account.groups, "system:authenticated")
        server.authenticator.register(account.token, User(name=account.name, uid=account.name, groups=groups))
    task = group.create_task(server.run())
    try:
        yield await _furnished(EMBEDDED, server, server, server)
    finally:
        task.cancel()
        server.close()


@asynccontextmanager
async def real_api(plane: ControlPlane) -> AsyncIterator[BareApi]:
    """Use the worker's server, with the real controllers."""
    async with AsyncExitStack() as stack:
        transport = await stack.enter_async_context(direct(plane, token=ADMIN.token))
        unsigned = await stack.enter_async_context(direct(plane))
        yield await _furnished(REAL, transport, unsigned, plane)


async def _furnished(server: str, transport: Transport, unsigned: Transport, storage: Compactable) -> BareApi:
    word = f"t{uuid4().hex[:10]}"
    api = BareApi(server=server, transport=transport, open=unsigned, namespace=word, word=word, storage=storage)
    answer = await api.admin.post("/api/v1/namespaces", {"metadata": {"name": word}})
    assert answer.status == 201, answer.body
    return api
