"""The informers of the plans.

A phase requests its informers in every run. An informer that was not requested during a reconcile is stopped, so each
kind is watched only during the phases that read it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.blockers.first_seen import FirstSeen
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.informer import version_number
from upgrade_manager.kube.objects import key, resource_version
from upgrade_manager.kube.pager import PAGE_SIZE, ListOptions, Selection, list_all_pages
from upgrade_manager.nodes.decided_nodes import DecidedNodes
from upgrade_manager.runtime.ttl_cache import TTLCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Store

#: Seconds for an informer's first list, after which the reconcile fails and the informer keeps retrying.
SYNC_TIMEOUT = 10.0
#: Seconds that a reconcile waits for the caches to show its writes.
WRITE_TIMEOUT = 5.0
#: Seconds in which a reopened watch sends the changes since its interruption.
CATCH_UP = 2.0
#: Seconds after which a comparison of stores is so old that the plan is compared, too.
CONFIRM_TIME = 1.0
#: Seconds in which a watch that has just been opened may not have sent the changes since its interruption.
JUST_OPENED = 0.5
#: Seconds for which the termination message of a failed attempt is cached: Pods are not watched.
FAILURE_TTL = 60.0
#: Seconds for which the running release is not read again, while a plan waits.
VERSION_TTL = 600.0
#: Seconds for which nodes outside the cache, and VMs, are not listed again.
UNSEEN_TTL = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerSpec(Selection):
    """The objects that an informer watches; equal specs share one informer."""

    #: True if the informer runs until the plan ends, even through phases that do not read the objects.
    permanent: bool = False
    #: True if the store keeps all fields of the objects; else it keeps the fields that decisions read.
    is_whole: bool = False

    def covers(self, resource: Resource, namespace: str) -> bool:
        """Return True if an object of that kind and namespace may be among the watched ones."""
        return self.resource == resource and self.namespace in {"", namespace}


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write of the manager that the caches must show before the next reconcile."""

    resource: Resource
    namespace: str
    resource_version: str


@dataclass(slots=True)
class _Running:
    informer: Informer
    task: asyncio.Task[None]


class PlanInformers:
    """The informers of one plan; their tasks run in the controller's TaskGroup."""

    def __init__(self, group: asyncio.TaskGroup, start: Callable[[InformerSpec], Informer], *, uid: str) -> None:
        self.uid = uid
        self._group = group
        self._start = start
        self._running: dict[InformerSpec, _Running] = {}
        self._used: set[InformerSpec] = set()
        #: The steps of a clean-up that have succeeded, by keep_failed_jobs, until the plan's finalizer is removed.
        self.cleaned_up: dict[bool, set[str]] = {True: set(), False: set()}
        #: True once this process has taken over the objects of an earlier version (ending/takeover.py).
        self.is_taken_over = False
        #: True once this process has taken over what earlier plans have left (ending/passing_on.py).
        self.has_released = False
        #: True once this process has seen that the cluster has more VMs than a page (node_upgrade/drain_entries.py).
        self.has_many_vms = False
        #: True if the takeover left SUC Plans, or their Jobs, without the uid label.
        self.has_unlabeled = False
        #: The termination messages of Jobs' failed attempts.
        self.last_failures = TTLCache(ttl=FAILURE_TTL)
        #: The nodes that the cache of managed nodes does not show (node_upgrade/missing_nodes.py).
        self.unseen_nodes = TTLCache(ttl=UNSEEN_TTL)
        #: The VMs that wait for a held node (node_upgrade/held_targets.py).
        self.waiting_vms = TTLCache(ttl=UNSEEN_TTL)
        #: The release that runs (vm_recovery.py).
        self.server_version = TTLCache(ttl=VERSION_TTL)
        self.first_seen = FirstSeen()
        #: The latest decisions about the nodes in these stores.
        self.decided_nodes = DecidedNodes()

    @property
    def specs(self) -> frozenset[InformerSpec]:
        """The specs of the running informers."""
        return frozenset(self._running)

    def running(self) -> Iterator[Informer]:
        """Yield the running informers."""
        for running in self._running.values():
            yield running.informer

    async def watch(self, spec: InformerSpec) -> Store:
        """Return a synced store of these objects; start their informer if necessary. Raises Transient."""
        running = self._started(spec)
        if running.informer.has_synced:
            return running.informer.store
        try:
            async with asyncio.timeout(SYNC_TIMEOUT):
                await running.informer.wait_for_sync()
        except TimeoutError as error:
            where = f" in namespace {spec.namespace}" if spec.namespace else ""
            why = running.informer.last_error or f"no response within {SYNC_TIMEOUT:.0f} s"
            raise Transient(f"cannot list {spec.resource.name}{where}: {why}") from error
        return running.informer.store

    def peek(self, spec: InformerSpec) -> Store | None:
        """Return the store of these objects, None until it is synced; start their informer if necessary."""
        informer = self._started(spec).informer
        return informer.store if informer.has_synced else None

    def problem(self, spec: InformerSpec) -> str:
        """Return the last error of the informer; empty without an error."""
        return self._started(spec).informer.last_error

    @property
    def are_current(self) -> bool:
        """True if the stores that decisions read show the present state.

        A reopened watch first sends the changes since its interruption.
        """
        decisive = (running.informer for spec, running in self._running.items() if not spec.is_whole)
        return all(informer.following_for >= CATCH_UP for informer in decisive)

    def interrupted(self, *specs: InformerSpec) -> list[InformerSpec]:
        """Return those whose watch is not open, or was opened so recently that changes may be missing."""
        running = [(spec, self._running[spec].informer) for spec in specs if spec in self._running]
        return [spec for spec, informer in running if informer.following_for < JUST_OPENED]

    async def confirm(self, client: Client, *specs: InformerSpec) -> bool:
        """Raise Transient unless the stores show what the API server returns now, for a step that nothing undoes.

        A watch may hang for IDLE_TIMEOUT before its informer notices. Versions are compared: of the objects, only the
        metadata are listed. A store that is behind has WRITE_TIMEOUT to catch up, and is listed again. Of more objects
        than a page has, one is listed, for the version of the list: a watch sends its events in order, and among many
        nodes the kubelets' reports soon show that it has reached that version. Return False if all that took so long
        that other objects may have changed.
        """
        began = loop_time()
        for spec in specs:
            await self._confirm(client, spec)
        return loop_time() - began < CONFIRM_TIME

    async def _confirm(self, client: Client, spec: InformerSpec) -> None:
        if await self._shows_latest(client, spec):
            return
        if spec in self._running:
            # The watch hangs, or has lost an event: a new informer lists the objects.
            await self._stop([spec])
        if not await self._shows_latest(client, spec):
            raise Transient(
                f"the watch of {spec.resource.name} is behind the API server; no node is started or drained before "
                "it has caught up"
            )

    async def _shows_latest(self, client: Client, spec: InformerSpec) -> bool:
        page = partial(client.list_page, replace(spec, metadata_only=True))
        if len(await self.watch(spec)) > PAGE_SIZE:
            latest = (await page(ListOptions(limit=1))).resource_version
            if await self._running[spec].informer.wait_for_version(latest, timeout=CATCH_UP):
                return True
        returned = _versions((await list_all_pages(page, resource_version="")).items)
        newest = str(max(returned.values(), default=0))
        await self.wait_for([Write(resource=spec.resource, namespace=spec.namespace, resource_version=newest)])
        stored = _versions((await self.watch(spec)).list())
        return stored.keys() == returned.keys() and all(stored[one] >= returned[one] for one in returned)

    async def watch_all(self, *specs: InformerSpec) -> list[Store]:
        """Return several stores, whose first lists run concurrently. Raises Transient."""
        for spec in specs:
            self._started(spec)
        return [await self.watch(spec) for spec in specs]

    def _started(self, spec: InformerSpec) -> _Running:
        self._used.add(spec)
        running = self._running.get(spec)
        if running is None:
            informer = self._start(spec)
            task = self._group.create_task(informer.run(), name=f"informer {spec.resource.name}")
            running = self._running[spec] = _Running(informer, task)
        return running

    async def wait_for(self, writes: Iterable[Write]) -> bool:
        """Wait until the stores show the writes; return False after a time-out."""
        newest: dict[InformerSpec, str] = {}
        # Concurrent writes are recorded in the order of their responses.
        for write in sorted(writes, key=lambda write: version_number(write.resource_version)):
            for spec in self._running:
                if spec.covers(write.resource, write.namespace):
                    newest[spec] = write.resource_version
        waits = [
            self._running[spec].informer.wait_for_version(version, timeout=WRITE_TIMEOUT)
            for spec, version in newest.items()
        ]
        return all(await asyncio.gather(*waits))

    async def prune(self) -> None:
        """Stop the informers that were not used since the last call, except permanent ones."""
        self.first_seen.prune()
        unused = {spec for spec in self._running if not spec.permanent} - self._used
        self._used = set()
        await self._stop(unused)

    async def stop(self) -> None:
        """Stop all informers."""
        self._used = set()
        await self._stop(set(self._running))

    async def _stop(self, specs: Iterable[InformerSpec]) -> None:
        tasks = [self._running.pop(spec).task for spec in list(specs)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Informers:
    """The informers of all plans; each plan has its own."""

    def __init__(self, group: asyncio.TaskGroup, start: Callable[[str, InformerSpec], Informer]) -> None:
        self._group = group
        self._start = start
        self._plans: dict[str, PlanInformers] = {}

    def of(self, plan: str, *, uid: str) -> PlanInformers:
        """Return the plan's informers, whose changes enqueue the plan."""
        if plan not in self._plans:
            self._plans[plan] = PlanInformers(self._group, partial(self._start, plan), uid=uid)
        return self._plans[plan]

    def running(self) -> Iterator[Informer]:
        """Yield the running informers of all plans."""
        for informers in self._plans.values():
            yield from informers.running()

    async def drop(self, plan: str, *, unless: str = "") -> None:
        """Stop the informers of a plan that has ended or is deleted, unless they belong to the plan of that uid."""
        informers = self._plans.get(plan)
        if informers is not None and informers.uid != unless:
            del self._plans[plan]
            await informers.stop()

    async def stop(self) -> None:
        """Stop all informers of all plans."""
        for plan in list(self._plans):
            await self.drop(plan)


def _versions(items: Iterable[Object]) -> dict[tuple[str, str], int]:
    return {key(one): version_number(resource_version(one)) for one in items}
