"""The system-upgrade-controller: Plans in cattle-system create one Job per node and label the nodes.

It has two loops, as the real one: Plans select nodes and write Jobs; Jobs report to their Plan and are deleted while
their node is not in status.applying. The loops do not wait for each other, so a Job that is created paused is mostly
deleted and created again, as observed with the real controller. A node that loses its label is selected again, but its
complete Job stays as it is and is not run again (v0.20.1, pkg/upgrade/handle_upgrade.go: Jobs are written once for each
resourceVersion of the Plan, and the Job does not differ). When the Job expires, its deletion sets the label again
(handle_batch.go), and the Plan completes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack.actors import suc_job, suc_plan
from hack.actors.conditions import with_condition
from hack.apiserver.selectors import SelectorError, selects
from upgrade_manager.api.keys import CATTLE_SYSTEM, suc_node_label
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SUC_PLANS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import ControllerLoop, RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

#: The most seconds between deciding on a Job and writing it; the reason why the two loops interfere.
_PREPARATION = 0.015
#: The interval for an invalid node selector.
_SELECTOR_INTERVAL = 5.0


class UpgradeController:
    """Reconciles the Plans of one namespace."""

    def __init__(self, context: ActorContext, *, namespace: str = CATTLE_SYSTEM) -> None:
        self._context = context
        self._settings = context.scenario.upgrade_controller
        self._namespace = namespace
        self._client = context.client(suc_job.NAME)
        self._events = EventRecorder(self._client, component=suc_job.NAME, now=context.now, random=context.random)
        self._plans_cache = context.caches.of(SUC_PLANS)
        self._jobs_cache = context.caches.of(JOBS)
        self._nodes_cache = context.caches.of(NODES)
        self._plans: ControllerLoop[str] = context.loop("SUC plan", self._sync, workers=2)
        self._jobs: ControllerLoop[str] = context.loop("SUC job", self._follow, workers=2)
        #: The resourceVersion of each Plan for which its Jobs were last written.
        self._applied: dict[str, str] = {}
        #: Held while a Job is checked or written: the real controller is slow enough
        #: never to delete a Job that it just started, and the simulated one must not either.
        self._held: dict[str, asyncio.Lock] = {}
        #: Complete Jobs that were deleted in the foreground, as expired ones are.
        self._expired: dict[str, Object] = {}
        self._plans_cache.subscribe(self._plan_changed)
        self._jobs_cache.subscribe(self._job_changed)
        self._nodes_cache.subscribe(self._node_changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.caches.synced()
        self._applied.clear()
        for plan in self._plans_cache.store.list():
            self._enqueue(plan)
        for job in self._jobs_cache.store.list():
            self._enqueue_job(job)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run(), name="SUC events")
            group.create_task(self._plans.run(), name="SUC plans")
            group.create_task(self._jobs.run(), name="SUC jobs")

    # Event handlers

    def _plan_changed(self, change: Change) -> None:
        self._enqueue(change.obj)

    def _job_changed(self, change: Change) -> None:
        job = change.obj
        if not self._is_managed(job):
            return
        if change.kind.value != "deleted" and _is_expired(job):
            self._expired[objects.name(job)] = job
        self._enqueue_job(job)
        self._plans.add(objects.labels(job)[suc_job.LABEL_PLAN])

    def _node_changed(self, change: Change) -> None:
        """Enqueue Plans when a node's labels change; a deletion is ignored."""
        if change.kind.value == "deleted" or _same_labels(change):
            return
        for plan in self._plans_cache.store.list():
            if self._is_served(plan) and _fits(plan, change.obj):
                self._enqueue(plan)

    def _enqueue(self, plan: Object) -> None:
        if self._is_served(plan):
            self._plans.add(objects.name(plan))

    def _enqueue_job(self, job: Object) -> None:
        if self._is_managed(job):
            self._jobs.add(objects.name(job))

    def _is_served(self, plan: Object) -> bool:
        return objects.namespace(plan) == self._namespace

    def _is_managed(self, job: Object) -> bool:
        labels = objects.labels(job)
        return (
            objects.namespace(job) == self._namespace
            and labels.get(suc_job.LABEL_CONTROLLER) == suc_job.NAME
            and suc_job.LABEL_PLAN in labels
        )

    # Plans

    async def _sync(self, name: str) -> RequeueAfter:
        plan = self._plans_cache.store.get(name, self._namespace)
        if plan is None:
            self._applied.pop(name, None)
            return None
        if objects.is_deleting(plan):
            return None
        plan = await self._resolve(plan)
        if not suc_plan.is_ready(objects.status(plan)):
            return None
        return await self._serve(plan)

    async def _resolve(self, plan: Object) -> Object:
        old = objects.status(plan)
        new = suc_plan.resolved(plan, at=self._context.timestamp())
        if new == old:
            return plan
        self._record_resolution(plan, new)
        return await self._write(plan, new)

    def _record_resolution(self, plan: Object, status: Object) -> None:
        for type_, good, bad in (
            ("Validated", "Validated", "ValidateFailed"),
            ("LatestResolved", "Resolved", "ResolveFailed"),
        ):
            old, new = objects.condition(plan, type_), objects.condition({"status": status}, type_)
            if not new or (old == new and objects.status(plan).get("latestVersion") == status.get("latestVersion")):
                continue
            if new["status"] != "True":
                self._record(plan, "Warning", bad, new.get("message") or "")
            elif type_ == "Validated":
                self._record(plan, "Normal", good, "Plan is valid")
            else:
                version = status["latestVersion"]
                self._record(plan, "Normal", good, f"Resolved latest version from Spec.Version: {version}")

    async def _serve(self, plan: Object) -> RequeueAfter:
        status = objects.status(plan)
        try:
            chosen = suc_plan.select(plan, status, self._nodes_cache.store.list())
        except SelectorError as error:
            self._record(plan, "Warning", "SelectNodesFailed", str(error))
            return _SELECTOR_INTERVAL
        new = suc_plan.served(status, [suc_plan.hostname(node) for node in chosen], at=self._context.timestamp())
        if new != status:
            self._record_serving(plan, new, chosen)
        if self._applied.get(objects.name(plan)) != objects.resource_version(plan):
            for node in chosen:
                async with self._hold(suc_job.name_of(plan, status, node)):
                    await self._apply(plan, status, node)
            self._applied[objects.name(plan)] = objects.resource_version(plan)
        if new != status:
            await self._write(plan, new)
        return None

    def _record_serving(self, plan: Object, new: Object, chosen: list[Object]) -> None:
        version, digest = new["latestVersion"], new["latestHash"]
        if not chosen:
            self._record(plan, "Normal", "Complete", f"Jobs complete for version {version}. Hash: {digest}")
            return
        hosts = ",".join(suc_plan.hostname(node) for node in chosen)
        self._record(plan, "Normal", "SyncJob", f"Jobs synced for version {version} on Nodes {hosts}. Hash: {digest}")

    async def _apply(self, plan: Object, status: Object, node: Object) -> None:
        await asyncio.sleep(self._context.random.uniform(0, _PREPARATION) * self._context.scale)
        turn = suc_plan.hostname(node) in (status.get("applying") or ())
        wanted = suc_job.build(plan, status, node, self._settings, parallelism=1 if turn else 0)
        name = objects.name(wanted)
        existing = self._jobs_cache.store.get(name, self._namespace)
        if existing is None:
            await self._client.create(JOBS, wanted)
        elif _has_other_template(existing, wanted):
            await self._delete(existing)
            await self._client.create(JOBS, wanted)
        else:
            changed = _changes(objects.spec(existing), objects.spec(wanted))
            if changed:
                await self._client.patch(JOBS, name, MergePatch({"spec": changed}), namespace=self._namespace)

    async def _write(self, plan: Object, status: Object) -> Object:
        written = await self._client.update(SUC_PLANS, {**plan, "status": status}, subresource="status")
        await self._plans_cache.seen(written)
        return written

    # Jobs

    def _hold(self, job: str) -> asyncio.Lock:
        return self._held.setdefault(job, asyncio.Lock())

    async def _follow(self, name: str) -> RequeueAfter:
        async with self._hold(name):
            return await self._sync_job(name)

    async def _sync_job(self, name: str) -> RequeueAfter:
        job = self._jobs_cache.store.get(name, self._namespace)
        if job is None:
            self._held.pop(name, None)
        expired = self._expired.pop(name, None)
        job = job or expired
        if job is None or (objects.is_deleting(job) and not _is_expired(job)):
            return None
        plan = await self._plan_of(job)
        node = self._nodes_cache.store.get(objects.labels(job).get(suc_job.LABEL_NODE) or "")
        if plan is None or node is None:
            await self._delete(job)
            return None
        if objects.is_condition_true(job, "Complete"):
            return await self._finish(plan, job, node)
        failed = objects.condition(job, "Failed")
        if failed.get("status") == "True":
            await self._report_failure(plan, job, node, failed)
        elif self._is_out_of_turn(plan, job, node):
            await self._delete(job)
        return None

    async def _plan_of(self, job: Object) -> Object | None:
        return await self._client.find(SUC_PLANS, objects.labels(job)[suc_job.LABEL_PLAN], namespace=self._namespace)

    def _is_out_of_turn(self, plan: Object, job: Object, node: Object) -> bool:
        """Report whether the Job is not in status.applying; a node whose host name differs is never found there."""
        status = objects.status(plan)
        version = objects.labels(job).get(suc_job.LABEL_VERSION)
        return version != status.get("latestVersion") or objects.name(node) not in (status.get("applying") or ())

    async def _finish(self, plan: Object, job: Object, node: Object) -> RequeueAfter:
        label = suc_node_label(objects.name(plan))
        digest = objects.labels(job).get(label) or ""
        if objects.labels(node).get(label) == digest:
            self._plans.add(objects.name(plan))
            return None
        labels = {**objects.labels(node), label: digest}
        new = {**node, "metadata": {**node["metadata"], "labels": labels}}
        written = await self._client.update(NODES, new)
        self._record(plan, "Normal", "JobComplete", f"Job completed on Node {objects.name(node)}")
        await self._nodes_cache.seen(written)
        self._plans.add(objects.name(plan))
        return None

    async def _report_failure(self, plan: Object, job: Object, node: Object, failed: Object) -> None:
        where = f"{objects.namespace(job)}/{objects.name(job)} failed on Node {objects.name(node)}"
        message = f"Job {where}: {failed.get('reason') or ''}: {failed.get('message') or ''}"
        status = objects.status(plan)
        conditions = with_condition(
            status.get("conditions") or [],
            "Complete",
            "False",
            reason="JobFailed",
            message=message,
            at=self._context.timestamp(),
        )
        if conditions != status.get("conditions"):
            self._record(plan, "Warning", "JobFailed", message)
            await self._write(plan, {**status, "conditions": conditions})
        self._plans.add(objects.name(plan))

    async def _delete(self, job: Object) -> None:
        try:
            await self._client.delete(JOBS, objects.name(job), namespace=self._namespace)
        except NotFound:
            return

    def _record(self, plan: Object, type_: str, reason: str, message: str) -> None:
        self._events.record(plan, type_=type_, reason=reason, message=message)


def _is_expired(job: Object) -> bool:
    return objects.is_deleting(job) and objects.is_condition_true(job, "Complete")


def _same_labels(change: Change) -> bool:
    return change.old is not None and objects.labels(change.old) == objects.labels(change.obj)


def _fits(plan: Object, node: Object) -> bool:
    try:
        return selects(objects.spec(plan).get("nodeSelector"), objects.labels(node))
    except SelectorError:
        return False


def _has_other_template(existing: Object, wanted: Object) -> bool:
    """Report whether the Pod template differs, which cannot be changed in place."""
    return bool(suc_job.template_of(existing) != objects.spec(wanted)["template"])


def _changes(old: Object, new: Object) -> Object:
    mutable = ("parallelism", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    return {key: new.get(key) for key in mutable if old.get(key) != new.get(key)}
