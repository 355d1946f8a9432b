"""Create, update, patch and delete: from a decoded body to a stored state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hack.apiserver import metadata
from hack.apiserver.deletion import check_preconditions, mark_deleted, settle
from hack.apiserver.namespaces import check_namespace
from hack.apiserver.status import already_exists, modified, not_found
from hack.apiserver.stored import Stored, stamped

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from hack.apiserver.admission import Chain, Object, Operation, WriteOptions
    from hack.apiserver.deletion import DeleteOptions
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage
    from hack.apiserver.webhooks import Webhooks

#: Retries of a write without a resourceVersion after a concurrent change.
MOST_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The result of a delete."""

    stored: Stored
    #: False when finalizers or a grace period hold the object.
    removed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Runs writes through the stages and stores the checked state."""

    storage: Storage
    chain: Chain
    webhooks: Webhooks
    now: Callable[[], datetime]
    random: Random

    async def create(self, route: Route, body: object, options: WriteOptions) -> Stored:
        """Store a new object. Raises StatusError."""
        row = route.row
        sent = metadata.decoded(body, route)
        if route.row.resource.namespaced:
            known = sent["metadata"].get("name") or sent["metadata"].get("generateName", "")
            check_namespace(self.storage, route, known)
        sent = await self._mutated(route, sent, None, options)
        new = metadata.initialized(row, sent, now=self.now(), random=self.random)
        key = (route.namespace, new["metadata"]["name"])
        new = self.chain.validate(row, new, None, "CREATE", options)
        await self.webhooks.admit(route, new=new, old=None, operation="CREATE", options=options)
        there = self.storage.get(row.storage, key)
        if there is not None:
            raise already_exists(row.resource, key[1], deleting="deletionTimestamp" in there.object["metadata"])
        if options.dry_run:
            return Stored(new, 0)
        return self.storage.write(row.storage, key, new)

    async def update(
        self, route: Route, make: Callable[[Object], object], options: WriteOptions, *, whole: bool
    ) -> Stored:
        """Replace an object by the result of `make`; `whole` for a PUT, whose preconditions are checked.

        Raises StatusError; a conflict only if the request named a resourceVersion or all attempts are used up.
        """
        row = route.row
        for _ in range(MOST_TRIES):
            current = self.storage.get(row.storage, route.key)
            if current is None:
                raise not_found(row.resource, route.name)
            old = current.object
            made = metadata.decoded(make(old), route)
            metadata.check_name(route, made["metadata"].get("name") or "")
            metadata.check_current(row, made, old, whole=whole)
            made = await self._mutated(route, made, old, options)
            new = metadata.with_immutable_fields(row, made, old, subresource=route.subresource)
            new = self.chain.validate(row, new, old, "UPDATE", options)
            if new == old:
                return current
            await self.webhooks.admit(route, new=new, old=old, operation="UPDATE", options=options)
            if self.storage.get(row.storage, route.key) is current:
                return self._commit(route, new, current, options)
        raise modified(row.resource, route.name)

    async def _mutated(self, route: Route, sent: Object, old: Object | None, options: WriteOptions) -> Object:
        """Run the mutating stages, then the mutating webhooks, whose patches are given defaults again."""
        operation: Operation = "UPDATE" if old is not None else "CREATE"
        quiet = replace(options, field_validation="Ignore")

        def default(patched: Object) -> Object:
            return self.chain.mutate(route.row, patched, old, operation, quiet)

        new = self.chain.mutate(route.row, sent, old, operation, options)
        return await self.webhooks.mutate(
            route, new=new, old=old, operation=operation, options=options, default=default
        )

    def _commit(self, route: Route, new: Object, current: Stored, options: WriteOptions) -> Stored:
        return Stored(new, current.revision) if options.dry_run else settle(self.storage, route.row, new)

    async def delete(self, route: Route, delete: DeleteOptions, options: WriteOptions) -> Deleted:
        """Delete an object, or start its deletion. Raises StatusError."""
        row = route.row
        for _ in range(MOST_TRIES):
            current = self.storage.get(row.storage, route.key)
            if current is None:
                raise not_found(row.resource, route.name)
            check_preconditions(row, current.object, delete)
            old = current.object
            await self.webhooks.admit(route, new=None, old=old, operation="DELETE", options=options)
            if self.storage.get(row.storage, route.key) is current:
                return self._remove(route, current, delete, dry_run=options.dry_run)
        raise modified(row.resource, route.name)

    def _remove(self, route: Route, current: Stored, delete: DeleteOptions, *, dry_run: bool) -> Deleted:
        marked, held = mark_deleted(route.row, current.object, delete, now=self.now())
        if dry_run:
            return Deleted(stored=Stored(marked, current.revision), removed=not held)
        if not held:
            removed = self.storage.remove(route.row.storage, route.key)
            return Deleted(stored=stamped(marked, removed.revision), removed=True)
        if marked == current.object:
            return Deleted(stored=current, removed=False)
        return Deleted(stored=self.storage.write(route.row.storage, route.key, marked), removed=False)
