"""The API servers on which the controllers run: a real one, and the embedded one behind a socket."""

from __future__ import annotations

import os
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from hack.apiserver.identity import ADMIN as EMBEDDED_ADMIN
from hack.apiserver.posting import NoPoster
from hack.apiserver.server import ApiServer
from hack.bench.peers.discovery import Discovery
from hack.bench.peers.report import GROUP, KIND, NAMESPACE, PLURAL, VERSION
from hack.bench.peers.requests import BENCH, CONTROLLER, AuditLog, RecordedRequests
from hack.bench.recorder import Recorder
from hack.cluster.gateway import Gateway
from hack.control_plane.assets import find_assets
from hack.control_plane.backend import direct
from hack.control_plane.certificates import Authority, server_context
from hack.control_plane.control_plane import ADMIN, Account, ControlPlane
from hack.control_plane.definitions import define
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import Resource
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.bench.peers.requests import Received
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

SIZE = 5_000
TOKEN = "controller-token"  # noqa: S105  # of a server on loopback
WIDGETS = Resource(group=GROUP, version=VERSION, plural=PLURAL, kind=KIND)


class Requests(Protocol):
    """The requests that a server received."""

    def clear(self) -> None:
        """Forget the requests so far."""
        ...

    def received(self) -> list[Received]:
        """Return the requests since `clear`, in the order of their responses."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server with objects, and what a controller needs to reach it."""

    url: str
    #: The folder of the controllers' service account.
    account: Path
    #: The benchmark's own.
    client: Client
    requests: Requests

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which a controller finds the server."""
        parts = urlsplit(self.url)
        return {
            "KUBERNETES_SERVICE_HOST": str(parts.hostname),
            "KUBERNETES_SERVICE_PORT": str(parts.port),
            "PEER_ACCOUNT": str(self.account),
        }

    async def fill(self, count: int) -> None:
        """Create the objects."""
        await run_all(*(self.client.create(WIDGETS, widget(number)) for number in range(count)))

    async def change(self, number: int, value: int) -> Object:
        """Give an object a new value, which its status has to show; return its metadata."""
        patch = MergePatch({"spec": {"value": value}})
        return await self.client.patch(WIDGETS, name(number), patch, namespace=NAMESPACE, metadata_only=True)


def name(number: int) -> str:
    """Return the name of an object."""
    return f"widget-{number:05d}"


def widget(number: int) -> Object:
    """Return an object whose status need not be written."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name(number), "namespace": NAMESPACE},
        "spec": {"value": 0, "settings": "x" * SIZE},
    }


@asynccontextmanager
async def real() -> AsyncIterator[Server]:
    """Run etcd and kube-apiserver. Raises AssetsError."""
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as temporary:
        folder = Path(temporary)
        audit = AuditLog(folder)
        account = Account(token=TOKEN, name=CONTROLLER, groups=("system:masters",))
        with ControlPlane(find_assets(os.environ), accounts=(account,), api_flags=audit.flags) as plane:
            async with direct(plane, token=ADMIN.token) as transport:
                client = _client(transport)
                await define(client, [_definition()])
                write_account(folder, authority=plane.certificate)
                yield Server(url=plane.url, account=folder, client=client, requests=audit)


@asynccontextmanager
async def embedded() -> AsyncIterator[Server]:
    """Serve the embedded server from this process."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        recorder = Recorder(Discovery(embedded_server()))
        authority = Authority(now=datetime.now(UTC))
        gateway = Gateway(recorder, tls=server_context(authority.server(), folder))
        await stack.enter_async_context(gateway)
        write_account(folder, authority=authority.certificate)
        requests = RecordedRequests(recorder)
        yield Server(url=gateway.url, account=folder, client=_client(recorder), requests=requests)


def embedded_server() -> ApiServer:
    """Return an embedded server that knows the resource and the controllers' token."""
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(0), poster=NoPoster())
    server.define([_definition()])
    server.authenticator.register(TOKEN, EMBEDDED_ADMIN)
    return server


def write_account(folder: Path, *, authority: bytes) -> None:
    """Write a service account as the kubelet mounts it into a Pod."""
    (folder / "ca.crt").write_bytes(authority)
    (folder / "token").write_text(TOKEN)
    (folder / "namespace").write_text(NAMESPACE)


def _client(transport: Transport) -> Client:
    return Client(transport, user_agent=BENCH, random=Random(0))


def _definition() -> Object:
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": any_object, "status": any_object}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": KIND.lower(), "kind": KIND, "listKind": f"{KIND}List"},
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
