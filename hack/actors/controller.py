"""The bases of most actors: a loop over the objects of one kind, and one over the machine-plan Secrets of Rancher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from hack.actors.controller_loop import WORKERS, Timers
from hack.actors.machine_plan import SECRET_SELECTOR
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES, SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import ControllerLoop, RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Change


K = TypeVar("K")
#: Namespace and name.
Key: TypeAlias = tuple[str, str]


class Controller(Generic[K]):
    """Reconciles the objects of one kind, of which `key_of` returns the loop's keys.

    The loop begins with the cached objects, and continues with every change of one.
    """

    def __init__(
        self,
        context: ActorContext,
        kind: Resource,
        *,
        user_agent: str,
        loop: str,
        key_of: Callable[[Object], K],
        field_selector: str = "",
        workers: int = WORKERS,
    ) -> None:
        self._context = context
        self._client = context.client(user_agent)
        self._cache = context.caches.of(kind, field_selector=field_selector)
        self._key_of = key_of
        self._loop: ControllerLoop[K] = context.loop(loop, self._reconcile, workers=workers)
        self._timers = Timers()
        self._cache.subscribe(self._changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.run_loop(self._loop, self._cache, self._key_of)

    def _changed(self, change: Change) -> None:
        self._loop.add(self._key_of(change.obj))

    async def _reconcile(self, key: K) -> RequeueAfter:
        raise NotImplementedError(key)


class NamespacedController(Controller[Key]):
    """Reconciles objects by namespace and name."""

    def __init__(self, context: ActorContext, kind: Resource, *, user_agent: str, loop: str) -> None:
        super().__init__(context, kind, user_agent=user_agent, loop=loop, key_of=objects.key)

    def _cached(self, key: Key) -> Object | None:
        """Return the cached object, None if it does not exist."""
        return self._cache.store.get(key[1], key[0])


class PlanController(Controller[str]):
    """Reconciles the machine-plan Secrets in fleet-local by name; the Machines are cached, too."""

    def __init__(self, context: ActorContext, *, user_agent: str, loop: str) -> None:
        super().__init__(
            context, SECRETS, user_agent=user_agent, loop=loop, key_of=objects.name, field_selector=SECRET_SELECTOR
        )
        self._machines = context.caches.of(MACHINES)

    def _changed(self, change: Change) -> None:
        if objects.namespace(change.obj) == FLEET_LOCAL:
            super()._changed(change)

    def _cached(self, key: str) -> Object | None:
        """Return the cached Secret, None if it does not exist."""
        return self._cache.store.get(key, FLEET_LOCAL)
