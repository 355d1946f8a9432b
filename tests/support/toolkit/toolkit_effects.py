"""Sees every effect of a toolkit command outside its host's files: host programs, and writes to the Kubernetes API."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from upgrade_manager.toolkit.charts.helm import Helm

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hack.host.programs import SimulatedPrograms
    from tests.support.toolkit.toolkit import ToolkitWorld
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.patch import Patch
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.toolkit.host.host_programs import Call, HostPrograms, Output

#: Programs of the host with parts between which they can be killed.
_STEPWISE = {"ctr", "elemental"}
_WRITES = {"create", "patch", "update", "delete"}


class Observer(Protocol):
    """Is called around each effect; what it raises replaces the effect or its result."""

    def before(self, effect: str) -> None:
        """See an effect before it happens."""
        ...

    def within(self, effect: str) -> None:
        """See a part of an effect before it happens: some programs change the host step by step."""
        ...

    def after(self, effect: str) -> None:
        """See an effect after it has happened."""
        ...


class ObservedPrograms:
    """Implements HostPrograms."""

    def __init__(self, programs: HostPrograms, observer: Observer, *, where: str = "host") -> None:
        self._programs = programs
        self._observer = observer
        self._where = where

    async def run(self, call: Call) -> Output:
        effect = f"{self._where:<4}  {' '.join((call.program, *call.argv[1:]))}"
        self._observer.before(effect)
        output = await self._programs.run(call)
        self._observer.after(effect)
        return output


class _ObservedHost(ObservedPrograms):
    """The programs of the simulated host; those that change it step by step are observed so."""

    def __init__(self, host: SimulatedPrograms, observer: Observer) -> None:
        super().__init__(host, observer)
        self._host = host

    async def run(self, call: Call) -> Output:
        if call.program not in _STEPWISE:
            return await super().run(call)
        stage, self._host.stage = self._host.stage, partial(self._within, call.program)
        try:
            return await super().run(call)
        finally:
            self._host.stage = stage

    def _within(self, program: str, part: str) -> None:
        self._observer.within(f"{program}, before {part}")


def observed(world: ToolkitWorld, observer: Observer) -> dict[str, Any]:
    """Return the changes of a command's context by which all its effects are observed."""
    return {
        "programs": _ObservedHost(world.programs, observer),
        "client": observed_client(world.client, observer),
        "helm": Helm(ObservedPrograms(world.helm, observer, where="pod"), environment={}),
    }


def observed_client(client: Client, observer: Observer) -> Client:
    """Return a client whose writes are observed."""
    return cast("Client", _ObservedClient(client, observer))


class _ObservedClient:
    def __init__(self, client: Client, observer: Observer) -> None:
        self._client = client
        self._observer = observer

    async def raw(self, method: str, path: str, **options: Any) -> Any:
        if method == "GET":
            return await self._client.raw(method, path, **options)
        effect = f"api   {method.lower()} {path}"
        self._observer.before(effect)
        response = await self._client.raw(method, path, **options)
        self._observer.after(effect)
        return response

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return self._observed(name, method) if name in _WRITES else method

    def _observed(self, verb: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def write(resource: Resource, target: Any, *arguments: Any, **options: Any) -> Any:
            name = target if isinstance(target, str) else target["metadata"].get("name", "")
            path = resource.path(name, namespace=options.get("namespace", ""))
            effect = " ".join([f"api   {verb} {path}", *(_body(one) for one in arguments)])
            self._observer.before(effect)
            result = await method(resource, target, *arguments, **options)
            self._observer.after(effect)
            return result

        return write


def _body(patch: Patch) -> str:
    return patch.encode().decode()
