"""Removes objects whose plan does not exist, when this process becomes the leader and after each deletion of a plan.

Most objects have no ownerReference to the plan, so that the garbage collector leaves them. The clean-up removes the
objects before it removes the finalizer (cleanup.py); objects are left if a webhook refuses their removal, if a user
removes the finalizer, or if a write arrives late. `controller.py` runs this as a controller of one key, which retries
with backoff.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_PLAN_UID
from upgrade_manager.facts.job_state import can_run
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, UPGRADE_PLANS
from upgrade_manager.pipeline import plan_objects, write_log
from upgrade_manager.resources.repository import REPOSITORY_KINDS
from upgrade_manager.runtime.concurrency import run_all
from upgrade_manager.runtime.late_import import import_outside_loop
from upgrade_manager.runtime.result import Done
from upgrade_manager.runtime.time_limit import RECONCILE_TIMEOUT, time_limit

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.runtime.result import Result

#: The only key.
KEY = "leftovers"
#: The kinds of the repository and of the Jobs of a plan.
_KINDS = (JOBS, *REPOSITORY_KINDS, CONFIG_MAPS)


class Leftovers:
    """Finds and removes the objects whose plan does not exist."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def reconcile(self, _: str) -> Result:
        """Remove the objects of plans that do not exist; objects that a running Job reads are deleted with the Job."""
        async with time_limit(RECONCILE_TIMEOUT):
            uids = await self._deleted()
            if uids:
                # With all that it imports, which a leader without a plan does not need.
                await import_outside_loop("upgrade_manager.pipeline.ending.repository_handover")
            await run_all(*(self._remove(uid) for uid in uids))
        return Done()

    async def _deleted(self) -> list[str]:
        """Return the uids of objects without plan.

        The plans are listed from the API server after the objects, because a plan exists before its objects.
        """
        uids = {
            objects.labels(one)[LABEL_PLAN_UID] for kind in _KINDS for one in await self._list(kind, LABEL_PLAN_UID)
        }
        if not uids:
            return []
        plans = await self._client.list(UPGRADE_PLANS, metadata_only=True)
        return sorted(uids - {objects.uid(plan) for plan in plans.items})

    async def _remove(self, uid: str) -> None:
        from upgrade_manager.pipeline.ending import orphaned_jobs  # noqa: PLC0415  # imported by now

        selector = f"{LABEL_PLAN_UID}={uid}"
        jobs = await self._list(JOBS, selector, metadata_only=False)
        running = [job for job in jobs if can_run(job)]
        stopped = [job for job in jobs if not can_run(job)]
        await run_all(
            *(self._delete(JOBS, job) for job in stopped),
            *(orphaned_jobs.orphan(self._client, job) for job in running),
            self._remove_read(selector, running),
        )

    async def _remove_read(self, selector: str, running: list[Object]) -> None:
        from upgrade_manager.pipeline.ending import repository_handover  # noqa: PLC0415  # imported by now

        if running:
            kinds = (*REPOSITORY_KINDS, CONFIG_MAPS)
            await repository_handover.hand_over(self._client, selector, running, kinds=kinds)
            return
        lists = await self._list(CONFIG_MAPS, selector)
        await run_all(
            *(self._delete(CONFIG_MAPS, one) for one in lists),
            *(self._delete_all(kind, selector) for kind in REPOSITORY_KINDS),
        )

    async def _list(self, resource: Resource, selector: str, *, metadata_only: bool = True) -> list[Object]:
        try:
            listed = self._client.list(
                resource, namespace=HARVESTER_SYSTEM, label_selector=selector, metadata_only=metadata_only
            )
            return (await listed).items
        except NotFound:
            # The kind does not exist.
            return []

    async def _delete(self, resource: Resource, found: Object) -> None:
        name, uid = objects.name(found), objects.uid(found)
        await plan_objects.remove(self._client, resource, name, namespace=HARVESTER_SYSTEM, uid=uid)

    async def _delete_all(self, resource: Resource, selector: str) -> None:
        if await self._list(resource, selector):
            await self._client.delete_collection(resource, namespace=HARVESTER_SYSTEM, label_selector=selector)
            write_log.removed_all(resource, namespace=HARVESTER_SYSTEM, selector=selector)
