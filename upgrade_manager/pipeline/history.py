"""The history of plans: what has happened, in memory until it is written into the plan's ConfigMap.

pipeline/events.py adds a row for each event; pipeline/reconciler.py writes the history, rarely while the upgrade goes
well, and before the end is complete. A process that dies loses no row: a phase, a milestone or a blocker that is over
is read again from the status, the Jobs and the ledger, and rows are written before these are removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.conditions import PROGRESSING, REFUSED
from upgrade_manager.api.history import ENDED, NORMAL, VERSIONS, Row, counted_id, rows_of
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_PLAN_UID
from upgrade_manager.api.names import history_config_map
from upgrade_manager.api.phases import SUCCEEDED, TERMINAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Throttled, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, NODES, UPGRADE_PLANS
from upgrade_manager.pipeline import plan_objects
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.history_rows import blockers_over, data_of, derived, fitting, same, versions_of
from upgrade_manager.resources.history import history_map
from upgrade_manager.resources.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Rows wait so long at most: the API server keeps the events for an hour.
LONGEST = timedelta(minutes=40)
#: So long at least is between two writes because of warnings, and after a refusal.
SHORTEST = timedelta(minutes=1)
_NEVER = datetime.max.replace(tzinfo=UTC)
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Known:
    """One plan's history, as this process knows it."""

    rows: dict[str, Row] = field(default_factory=dict)
    #: The ids of rows that had to give way.
    left_out: set[str] = field(default_factory=set)
    #: The ConfigMap's data as this process has read or written them; None before.
    stored: dict[str, str] | None = None
    version: str = ""
    #: True once the rows of the ConfigMap are among these.
    is_merged: bool = False
    #: The time of the oldest row that is not written; None without one.
    since: datetime | None = None
    is_urgent: bool = False
    #: The time of the last attempt to write.
    tried: datetime | None = None

    @property
    def due(self) -> datetime:
        """The time at which the rows should be written: soon after a new warning, else once the oldest one is old."""
        if self.since is None:
            return _NEVER
        due = self.since if self.is_urgent else self.since + LONGEST
        return due if self.tried is None else max(due, self.tried + SHORTEST)


class History:
    """The history of all plans; one worker reconciles them."""

    def __init__(self, client: Client, *, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        self._plans: dict[str, _Known] = {}
        #: The time from which `write_due` finds something; an attribute, because every write of a status compares it.
        self.due = _NEVER

    def add(  # the fields of an event
        self,
        plan: Object,
        *,
        type_: str,
        reason: str,
        message: str,
        id_: str,
        at: datetime,
        node: str = "",
        is_known: bool = False,
    ) -> None:
        """Add what has happened; a row that exists is counted, unless its event has a name or was sent before."""
        if plan.get("kind") != UPGRADE_PLANS.kind:
            # An event of Rancher's Cluster.
            return
        uid = objects.uid(plan)
        known = self._plans.setdefault(uid, _Known())
        id_ = id_ or counted_id(uid, type_, reason, message)
        row = Row(id=id_, first=at, last=at, count=1, type=type_, reason=reason, message=message, node=node)
        found = known.rows.get(id_)
        if id_ in known.left_out or (found is not None and (is_known or not row.is_counted)):
            return
        known.rows[id_] = row if found is None else replace(found, last=at, count=found.count + 1)
        known.since = known.since or self._now()
        known.is_urgent |= found is None and type_ != NORMAL
        self.due = min(self.due, known.due)

    async def write_due(self, plan: Object) -> None:
        """Write the rows once the oldest one is old, and soon after a new warning."""
        known = self._plans.get(objects.uid(plan))
        if known is not None and known.due <= self._now():
            await self.write(plan)
        self.due = min((one.due for one in self._plans.values()), default=_NEVER)

    async def write(self, plan: Object) -> None:
        """Write the rows that are not written; an API that refuses them never stops an upgrade."""
        known = self._plans.get(objects.uid(plan))
        if known is None or known.since is None:
            return
        try:
            await self._write(plan, known, more={})
        except (KubeError, ForeignObject) as error:
            log.warning("history not written", error=str(error))

    async def finish(self, plan: Object) -> None:
        """Write all rows of a plan that has ended, once with what nodes run then. Raises Transient and Throttled."""
        known = self._plans.setdefault(objects.uid(plan), _Known())
        try:
            stored = await self._stored(plan, known)
            await self._write(plan, known, more={} if stored.get(ENDED) == _ended(plan) else await self._ending(plan))
        except (Transient, Throttled):
            raise
        except (KubeError, ForeignObject) as error:
            log.warning("history not written", error=str(error))

    async def finish_refusal(self, plan: Object) -> None:
        """Finish the history of a plan or an attempt that was refused: it ends without a clean-up, which would do so.

        The rows of a process that has died before are among those of this one, which its first reconcile adds.
        """
        if objects.uid(plan) in self._plans and objects.condition(plan, PROGRESSING).get("reason") == REFUSED:
            await self.finish(plan)

    def forget(self, plan: Object) -> None:
        """Forget the rows of a plan whose end is complete."""
        self._plans.pop(objects.uid(plan), None)

    def keep(self, uids: Container[str]) -> None:
        """Forget all other plans."""
        self._plans = {uid: known for uid, known in self._plans.items() if uid in uids}

    async def _ending(self, plan: Object) -> dict[str, str]:
        """Return what completes the history; the release's versions are those of nodes that are done."""
        nodes = [] if _phase(plan) == SUCCEEDED else (await self._client.list(NODES)).items
        return {ENDED: _ended(plan), VERSIONS: versions_of(plan, nodes)}

    async def _write(self, plan: Object, known: _Known, *, more: dict[str, str]) -> None:
        known.tried = self._now()
        await self._stored(plan, known)
        try:
            await self._store(plan, known, self._data(plan, known, more))
        except (AlreadyExists, Conflict, NotFound):
            # The response to an earlier write was lost, or a user has removed or changed the ConfigMap.
            await self._read(plan, known)
            await self._store(plan, known, self._data(plan, known, more))
        known.since, known.is_urgent = None, False

    @staticmethod
    def _data(plan: Object, known: _Known, more: dict[str, str]) -> dict[str, str]:
        known.rows |= {row.id: row for row in derived(plan, known.rows.values())}
        stored = known.stored or {}
        rows, blockers = fitting(known.rows, blockers_over(stored, plan))
        known.left_out |= known.rows.keys() - rows.keys()
        known.rows = rows
        # A history stays complete until the next attempt begins.
        kept = {key: stored.get(key, "") for key in (ENDED, VERSIONS)} if _phase(plan) in TERMINAL else {}
        return {key: text for key, text in {**data_of(rows.values(), blockers), **kept, **more}.items() if text}

    async def _stored(self, plan: Object, known: _Known) -> dict[str, str]:
        """Return the data of the ConfigMap, which is read once."""
        return known.stored if known.stored is not None else await self._read(plan, known)

    async def _read(self, plan: Object, known: _Known) -> dict[str, str]:
        """Read the ConfigMap, and remove that of an earlier plan of the name."""
        name = history_config_map(objects.name(plan))
        found = await self._client.find(CONFIG_MAPS, name, namespace=HARVESTER_SYSTEM)
        if found is not None and LABEL_PLAN_UID not in objects.labels(found):
            raise ForeignObject(f"ConfigMap {HARVESTER_SYSTEM}/{name} is not of an upgrade", found=found)
        if found is not None and not _owner(plan).owns(found):
            await plan_objects.remove(
                self._client, CONFIG_MAPS, name, namespace=HARVESTER_SYSTEM, uid=objects.uid(found)
            )
            found = None
        known.stored = dict(objects.mapping(found, "data")) if found is not None else {}
        known.version = objects.resource_version(found) if found is not None else ""
        for row in rows_of(known.stored):
            self._merge(known, row)
        known.is_merged = True
        return known.stored

    @staticmethod
    def _merge(known: _Known, row: Row) -> None:
        twin = known.rows.get(row.id) or next((one for one in known.rows.values() if same(one, row)), None)
        if twin is None:
            known.rows[row.id or row.line() + row.node] = row
        elif row.is_counted:
            count = max(row.count, twin.count) if known.is_merged else row.count + twin.count
            known.rows[row.id] = replace(row, last=max(row.last, twin.last), count=count)
        else:
            known.rows[twin.id or row.id] = replace(row, id=row.id or twin.id)

    async def _store(self, plan: Object, known: _Known, data: dict[str, str]) -> None:
        stored, name = known.stored or {}, history_config_map(objects.name(plan))
        known.stored = None  # until the response
        if not known.version:
            manifest = history_map(_owner(plan), data)
            written = await self._client.create(CONFIG_MAPS, manifest, namespace=HARVESTER_SYSTEM)
        else:
            changed: dict[str, str | None] = {key: text for key, text in data.items() if stored.get(key) != text}
            changed.update(dict.fromkeys(stored.keys() - data.keys()))
            if not changed:
                known.stored = stored
                return
            patch = MergePatch({"data": changed}).at(known.version)
            written = await self._client.patch(CONFIG_MAPS, name, patch, namespace=HARVESTER_SYSTEM)
        known.stored, known.version = data, objects.resource_version(written)
        log.info("history written", kind=CONFIG_MAPS.kind, object=f"{HARVESTER_SYSTEM}/{name}", rows=len(known.rows))


def _phase(plan: Object) -> str:
    return objects.text(plan, "status", "currentPhase")


def _ended(plan: Object) -> str:
    """Return the time of the plan's end."""
    times = objects.items(plan, "status", "phaseTransitionTimestamps")
    return next((objects.text(one, "phaseTransitionTimestamp") for one in times if one.get("phase") in TERMINAL), "")


def _owner(plan: Object) -> Owner:
    return Owner.of(plan, has_unlabeled=False)
