"""Sees every effect of a toolkit command outside its host's files: host programs, and writes to the Kubernetes API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.patch import Patch
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.toolkit.host_programs import Call, HostPrograms, Output

_WRITES = {"create", "patch", "update", "delete"}


class Observer(Protocol):
    """Is called around each effect; what it raises replaces the effect or its result."""

    def before(self, effect: str) -> None:
        """See an effect before it happens."""
        ...

    def after(self, effect: str) -> None:
        """See an effect after it has happened."""
        ...


class ObservedPrograms:
    """Implements HostPrograms."""

    def __init__(self, programs: HostPrograms, observer: Observer) -> None:
        self._programs = programs
        self._observer = observer

    async def run(self, call: Call) -> Output:
        """See HostPrograms."""
        effect = f"host  {' '.join((call.program, *call.argv[1:]))}"
        self._observer.before(effect)
        output = await self._programs.run(call)
        self._observer.after(effect)
        return output


def observed_client(client: Client, observer: Observer) -> Client:
    """Return a client whose writes are observed."""
    return cast("Client", _ObservedClient(client, observer))


class _ObservedClient:
    def __init__(self, client: Client, observer: Observer) -> None:
        self._client = client
        self._observer = observer

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
