"""A real control plane as the backend of a simulated cluster."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, Self

from hack.apiserver.handlers import Handlers
from hack.control_plane import flags
from hack.control_plane.assets import AssetsError
from hack.control_plane.authorized_handlers import AuthorizedHandlers
from hack.control_plane.control_plane import ADMIN, API_SERVER, CONTROLLERS, SCHEDULER, UPGRADE_CONTROLLER
from hack.control_plane.definitions import define
from hack.crds.foreign import foreign_crds
from hack.scenario import UpgradeController
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.config import ClientConfig, TlsConfig
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

    from hack.actors.freezer import Freezer
    from hack.apiserver.admission import Stage
    from hack.control_plane.assets import Assets
    from hack.control_plane.control_plane import ControlPlane
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

#: The processes of actors that are simulated on the embedded API server.
_PROCESSES = {"Scheduler": SCHEDULER, "UpgradeController": UPGRADE_CONTROLLER}
#: Seconds between two checks of the processes.
_CHECK_INTERVAL = 1.0
_RESPONSE_TIMEOUT = 10.0
_USER_AGENT = "simulated-cluster"
#: In etcd, each followed by plural and group.
DEFINITION_KEYS = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
_AGGREGATED_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class RealBackend:
    """The real controllers run: kube-controller-manager, kube-scheduler and the system-upgrade-controller.

    Raises ControlPlaneError, in a group, when a process ends unexpectedly.
    """

    has_controllers = True
    concurrency = 16
    #: The processes beside the API server, and the controllers of kube-controller-manager.
    _processes: tuple[str, ...] = CONTROLLERS
    _controllers: tuple[str, ...] = flags.CONTROLLERS

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        plane.controllers = self._controllers
        self.token = ADMIN.token
        self.handlers = Handlers()
        self._admin, self._as_caller = direct(plane, token=ADMIN.token), direct(plane)
        self.transport: Transport = AuthorizedHandlers(self._admin, handlers=self.handlers)
        self.client_transport: Transport = AuthorizedHandlers(self._as_caller, handlers=self.handlers)
        self._settings = UpgradeController()
        #: Processes that hang.
        self._paused: set[str] = set()
        self._stack = AsyncExitStack()

    def configure(self, scenario: Scenario, freezer: Freezer) -> None:
        """Take the scenario's settings for the real controllers, which hang while their actors are frozen."""
        self._settings = scenario.upgrade_controller
        freezer.subscribe(lambda _: self._follow(freezer))

    def _follow(self, freezer: Freezer) -> None:
        for actor, process in _PROCESSES.items():
            if freezer.is_frozen(actor) and process not in self._paused:
                self._paused.add(process)
                self._plane.pause(process)
            elif not freezer.is_frozen(actor) and process in self._paused:
                self._paused.remove(process)
                self._plane.resume(process)

    def now(self) -> datetime:
        """Return the wall time."""
        return datetime.now(UTC)

    def actor_transport(self) -> Transport:
        """Return the transport as it is: it has a latency already."""
        return self.transport

    def admit(self, stage: Stage) -> None:
        """Leave it out: the API server has no such stages."""

    async def define(self, further: list[Object]) -> None:
        """Install the other projects' own definitions and further ones. Raises AssetsError and TimeoutError."""
        client = Client(self.transport, user_agent=_USER_AGENT, random=Random(), field_validation="Strict")
        await define(client, [*real_crds(self._plane.assets), *further])
        await self.on_crds_established()

    async def on_crds_established(self) -> None:
        """Start the controllers: the garbage collector discovers later kinds only after half a minute.

        The system-upgrade-controller replaces the definition of its kind by its own.
        """
        await asyncio.to_thread(self._start_controllers)

    def _start_controllers(self) -> None:
        self._plane.configure(UPGRADE_CONTROLLER, **flags.upgrade_controller(self._settings))
        for name in self._processes:
            self._plane.start(name)
            (self._plane.pause if name in self._paused else self._plane.resume)(name)

    async def stop_api_server(self) -> None:
        """Kill it, and the controllers with it: they would retry ever more rarely."""
        for name in (API_SERVER, *self._processes):
            await asyncio.to_thread(self._plane.kill, name)

    async def start_api_server(self) -> None:
        """Start what was killed."""
        await asyncio.to_thread(self._plane.start, API_SERVER)
        await asyncio.to_thread(self._start_controllers)

    async def objects(self) -> list[Object]:
        """Return every object of every kind."""
        client = Client(self.transport, user_agent="inventory", random=Random())
        keys = await asyncio.to_thread(self._plane.keys)
        return await objects_of(may_have_objects(await kinds(client), keys), client)

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._admin)
        await self._stack.enter_async_context(self._as_caller)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.callback(group.create_task(self._check(), name="control plane").cancel)
        return self

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            await asyncio.to_thread(self._plane.check)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)


@dataclass(frozen=True, slots=True)
class _Static:
    """A source whose credentials never expire."""

    plane: ControlPlane
    authorization: str

    async def load(self) -> ClientConfig:
        """See ConfigSource."""
        return self.snapshot()

    def snapshot(self) -> ClientConfig:
        tls = TlsConfig(ca_data=self.plane.certificate.decode())
        return ClientConfig(server=self.plane.url, tls=tls, source=self, authorization=self.authorization)


def direct(plane: ControlPlane, *, token: str = "") -> HttpTransport:
    """Return a transport to be entered; without a token, each request's own Authorization header counts."""
    source = _Static(plane, f"Bearer {token}" if token else "")
    return HttpTransport(source.snapshot())


def real_crds(assets: Assets) -> list[Object]:
    """Return a copy of the definition of each kind in hack/crds, the project's own if there is one.

    Raises AssetsError when the projects' definitions were not built.
    """
    if not assets.crds.is_dir():
        raise AssetsError(f"CustomResourceDefinitions not found in {assets.crds}: run `make real-kube`")
    return deepcopy(_read_crds(assets.crds))


@cache
def _read_crds(folder: Path) -> list[Object]:
    found = []
    for crd in foreign_crds():
        path = folder / f"{crd['metadata']['name']}.json"
        real: Any = json.loads(path.read_text(encoding="utf-8")) if path.exists() else crd
        found.append(real)
    return found


async def kinds(client: Client) -> list[Resource]:
    """Return all kinds whose objects can be listed and deleted, each in its preferred version."""
    return [kind for root in ("/api", "/apis") for group in await _groups(client, root) for kind in _kinds_of(group)]


async def _groups(client: Client, root: str) -> Any:
    """Return groups with the kinds of each version: all in one request."""
    response = await client.raw("GET", root, accept=_AGGREGATED_DISCOVERY, timeout=_RESPONSE_TIMEOUT)
    return json.loads(response.body)["items"]


def _kinds_of(group: Any) -> Iterator[Resource]:
    preferred = group["versions"][0]
    for one in preferred["resources"]:
        if {"list", "delete"} <= set(one["verbs"]):
            yield Resource(
                group=objects.metadata(group).get("name", ""),
                version=preferred["version"],
                plural=one["resource"],
                kind=one["responseKind"]["kind"],
                namespaced=one["scope"] == "Namespaced",
            )


async def inventory(client: Client) -> list[Object]:
    """Return every object of every kind, each once: Events are served in two groups."""
    return await objects_of(await kinds(client), client)


def may_have_objects(resources: Iterable[Resource], keys: Collection[str]) -> list[Resource]:
    """Leave out custom kinds without an object among etcd's keys; those of built-in kinds have other names."""
    custom = {key.removeprefix(DEFINITION_KEYS) for key in keys if key.startswith(DEFINITION_KEYS)}
    populated = {tuple(key.split("/")[2:4]) for key in keys}
    return [each for each in resources if each.name not in custom or (each.group, each.plural) in populated]


async def objects_of(resources: Iterable[Resource], client: Client) -> list[Object]:
    """Return every object of these kinds, each once."""
    found: dict[str, Object] = {}
    for resource in resources:
        # A definition may be deleted meanwhile.
        with suppress(NotFound):
            for obj in (await client.list(resource)).items:
                found.setdefault(objects.uid(obj), obj)
    return list(found.values())
