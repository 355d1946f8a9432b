"""The job controller: creates and counts Pods, finishes Jobs, and removes them after their TTL."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hack.actors import job_status
from hack.actors.caches import BY_OWNER
from hack.actors.controller_loop import ControllerLoop, Timers
from hack.actors.job_status import TRACKING, Tally
from hack.actors.kinds import controller_reference
from hack.actors.pod_status import finished_at, is_ready
from upgrade_manager.kube import objects
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import JOBS, PODS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_USER_AGENT = "job-controller"
#: The length at which the API server cuts a generateName.
_NAME_BASE = 58
#: Seconds until a Pod that the API server has refused is created again.
_ADMISSION_RETRY = 1.0


class JobController:
    """Reconciles all namespaces; not started where a real kube-controller-manager runs."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client(_USER_AGENT)
        self._events = EventRecorder(self._client, component=_USER_AGENT, now=context.now, random=context.random)
        self._jobs = context.caches.of(JOBS)
        self._pods = context.caches.of(PODS)
        self._loop: ControllerLoop[tuple[str, str]] = context.loop("jobs", self._sync)
        self._orphans: ControllerLoop[tuple[str, str]] = context.loop("job pods", self._release)
        self._timers = Timers()
        self._accounts = context.caches.of(SERVICE_ACCOUNTS)
        self._jobs.subscribe(self._job_changed)
        self._pods.subscribe(self._pod_changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.caches.synced()
        for job in self._jobs.store.list():
            self._loop.add(objects.key(job))
        for pod in self._pods.store.list():
            self._orphans.add(objects.key(pod))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run(), name="job events")
            group.create_task(self._loop.run(), name="jobs")
            group.create_task(self._orphans.run(), name="job pods")

    def _job_changed(self, change: Change) -> None:
        self._loop.add(objects.key(change.obj))
        if change.kind.value == "deleted":
            self._timers.forget(objects.uid(change.obj))
            for pod in self._pods.by_index(BY_OWNER, objects.uid(change.obj)):
                self._orphans.add(objects.key(pod))

    def _pod_changed(self, change: Change) -> None:
        job = _job_of(change.obj)
        if job:
            self._loop.add((objects.namespace(change.obj), job))
            self._orphans.add(objects.key(change.obj))

    async def _release(self, key: tuple[str, str]) -> RequeueAfter:
        """Remove the tracking finalizer from a Pod whose Job does not exist."""
        pod = self._pods.store.get(key[1], key[0])
        if pod is None or TRACKING not in objects.finalizers(pod):
            return None
        job = self._jobs.store.get(_job_of(pod), key[0])
        orphaned = job is None or objects.uid(job) != objects.owner_uid(pod) or objects.is_deleting(job)
        never_ran = objects.is_deleting(pod) and not objects.spec(pod).get("nodeName")
        if orphaned or never_ran:
            await self._untrack(pod)
        return None

    async def _untrack(self, pod: Object) -> None:
        left = [one for one in objects.finalizers(pod) if one != TRACKING]
        patch = MergePatch({"metadata": {"uid": objects.uid(pod), "finalizers": left}})
        await self._pods.patch(self._client, pod, patch, subresource="")

    async def _sync(self, key: tuple[str, str]) -> RequeueAfter:
        job = self._jobs.store.get(key[1], key[0])
        if job is None or objects.is_deleting(job):
            return None
        tally = Tally.of(job, self._pods.by_index(BY_OWNER, objects.uid(job)))
        if tally.recorded or _has_uncounted(tally):
            return await self._count(tally)
        if job_status.is_finished(job):
            return await self._expire(job)
        if tally.fresh and (left := self._notice(tally)) > 0:
            return left
        if tally.fresh:
            return await self._record(tally)
        return await self._proceed(tally)

    def _notice(self, tally: Tally) -> float:
        """Return the seconds until changes of Pods are synced; the controller batches them."""
        seconds = self._context.seconds(self._context.scenario.durations.job_sync)
        uids = [objects.uid(pod) for pod in tally.fresh]
        return max(self._timers.left(objects.uid(tally.job), ("ended", uid), seconds) for uid in uids)

    async def _record(self, tally: Tally) -> RequeueAfter:
        status = job_status.with_recorded(tally)
        recorded = Tally.of({**tally.job, "status": status}, [*tally.active, *tally.terminating, *tally.fresh])
        status = job_status.with_verdict(status, recorded.verdict(), at=self._context.timestamp())
        await self._write(tally.job, status)
        return 0.0

    async def _count(self, tally: Tally) -> RequeueAfter:
        for pod in tally.recorded:
            if TRACKING in objects.finalizers(pod):
                await self._untrack(pod)
        status = job_status.with_counted(tally)
        if not tally.active and not tally.terminating:
            status = job_status.with_end(status, at=self._context.timestamp())
        await self._write(tally.job, status)
        self._record_end({**tally.job, "status": status})
        return 0.0

    async def _proceed(self, tally: Tally) -> RequeueAfter:
        """Suspend, stop, finish or start when no Pod ended since the last sync."""
        job, at = tally.job, self._context.timestamp()
        status = job_status.with_suspension(
            job_status.with_counts(tally, tally.status), suspended=tally.suspended, at=at
        )
        if self._deadline_passed({**job, "status": status}):
            status = job_status.with_verdict(status, ("FailureTarget", *job_status.DEADLINE_EXCEEDED), at=at)
        has_outcome = _has_outcome(status)
        if has_outcome and not tally.active and not tally.terminating:
            status = job_status.with_end(status, at=at)
        if await self._report(tally, status):
            return 0.0
        wanted = 0 if has_outcome or tally.suspended else self._wanted(tally)
        for pod in tally.active[wanted:]:
            if not has_outcome:
                await self._untrack(pod)
            await self._client.delete(PODS, objects.name(pod), namespace=objects.namespace(pod))
        if len(tally.active) < wanted:
            return await self._start(tally)
        return None if has_outcome else self._until_deadline(job)

    async def _report(self, tally: Tally, status: Object) -> bool:
        """Write the status if it differs and report whether it was written. Readiness is reported with a delay."""
        difference = merge_diff(tally.status, status)
        if not difference.keys() - {"startTime"}:
            return False
        ready_only = {**tally.status, "ready": status.get("ready")} == {**status, "ready": status.get("ready")}
        if ready_only and status.get("ready"):
            seconds = self._context.seconds(self._context.scenario.durations.job_sync)
            uids = [objects.uid(pod) for pod in tally.active if is_ready(pod)]
            left = max(self._timers.left(objects.uid(tally.job), ("ready", uid), seconds) for uid in uids)
            if left > 0:
                self._loop.add(objects.key(tally.job), after=left)
                return False
        await self._write(tally.job, status)
        self._record_end({**tally.job, "status": status})
        self._record_suspension(tally, status)
        return True

    def _wanted(self, tally: Tally) -> int:
        open_ = max(0, tally.completions - tally.count("succeeded"))
        held = len(tally.terminating) if tally.waits_for_terminating else 0
        return max(0, min(tally.parallelism, open_) - held)

    async def _start(self, tally: Tally) -> RequeueAfter:
        left = self._backoff_left(tally)
        if left > 0:
            return left
        forbidden = self._forbidden(tally.job)
        if forbidden:
            self._events.record(tally.job, type_="Warning", reason="FailedCreate", message=forbidden)
            return _ADMISSION_RETRY
        pod = await self._client.create(PODS, _pod_of(tally.job))
        message = f"Created pod: {objects.name(pod)}"
        self._events.record(tally.job, type_="Normal", reason="SuccessfulCreate", message=message)
        await self._pods.seen(pod)
        return 0.0

    def _forbidden(self, job: Object) -> str:
        """Return why the API server refuses the Pod; empty if its ServiceAccount exists."""
        spec = objects.spec(objects.spec(job).get("template") or {})
        account, namespace = spec.get("serviceAccountName") or "default", objects.namespace(job)
        if account == "default" or self._accounts.store.get(account, namespace) is not None:
            return ""
        return (
            f'Error creating: pods "{objects.name(job)}-" is forbidden: error looking up service account '
            f'{namespace}/{account}: serviceaccount "{account}" not found'
        )

    def _backoff_left(self, tally: Tally) -> float:
        failures = tally.count("failed")
        if not failures:
            return 0
        first = self._context.scenario.durations.job_backoff * self._context.scale
        pods = self._pods.by_index(BY_OWNER, objects.uid(tally.job))
        last = max((finished_at(pod) for pod in pods), default="")
        passed = (self._context.now() - _time(last)).total_seconds() if last else 0.0
        wait = max(0.0, job_status.backoff_of(failures, first) - passed)
        return self._timers.left(objects.uid(tally.job), ("backoff", failures), wait)

    def _deadline_passed(self, job: Object) -> bool:
        left = self._until_deadline(job)
        return left is not None and left <= 0

    def _until_deadline(self, job: Object) -> float | None:
        seconds = objects.spec(job).get("activeDeadlineSeconds")
        start = objects.status(job).get("startTime")
        if seconds is None or not start or job_status.is_finished(job):
            return None
        return (_time(start) + timedelta(seconds=seconds) - self._context.now()).total_seconds()

    async def _expire(self, job: Object) -> RequeueAfter:
        """Delete a finished Job after its TTL, as the TTL-after-finished controller does."""
        ttl = objects.spec(job).get("ttlSecondsAfterFinished")
        ended = _end_of(job)
        if ttl is None or not ended:
            return None
        left = (_time(ended) + timedelta(seconds=ttl) - self._context.now()).total_seconds()
        if left > 0:
            return left
        await self._client.delete(
            JOBS, objects.name(job), namespace=objects.namespace(job), uid=objects.uid(job), propagation="Foreground"
        )
        return None

    async def _write(self, job: Object, status: Object) -> None:
        difference = merge_diff(objects.status(job), status)
        patch = MergePatch({"status": difference}).at(objects.resource_version(job))
        await self._jobs.patch(self._client, job, patch)

    def _record_end(self, job: Object) -> None:
        if objects.is_condition_true(job, "Complete"):
            self._events.record(job, type_="Normal", reason="Completed", message="Job completed")
        failed = objects.condition(job, "Failed")
        if failed:
            reason, message = failed.get("reason") or "", failed.get("message") or ""
            self._events.record(job, type_="Warning", reason=reason, message=message)

    def _record_suspension(self, tally: Tally, status: Object) -> None:
        old, new = objects.condition(tally.job, "Suspended"), objects.condition({"status": status}, "Suspended")
        if new and old.get("status") != new["status"]:
            reason = "Suspended" if new["status"] == "True" else "Resumed"
            self._events.record(tally.job, type_="Normal", reason=reason, message=new.get("message") or "")


def _job_of(pod: Object) -> str:
    for owner in objects.metadata(pod).get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == "Job":
            return str(owner["name"])
    return ""


def _pod_of(job: Object) -> Object:
    template = objects.spec(job).get("template") or {}
    name, uid = objects.name(job), objects.uid(job)
    labels = {
        **objects.labels(template),
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    owner = controller_reference(JOBS, job)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{name}-"[:_NAME_BASE],
            "namespace": objects.namespace(job),
            "labels": {key: value for key, value in labels.items() if len(value) <= 63},  # noqa: PLR2004
            "annotations": objects.annotations_of(template),
            "finalizers": [TRACKING],
            "ownerReferences": [owner],
        },
        "spec": objects.spec(template),
        "status": {"phase": "Pending"},
    }


def _has_uncounted(tally: Tally) -> bool:
    return bool(tally.uncounted("succeeded") or tally.uncounted("failed"))


def _has_outcome(status: Object) -> bool:
    types = {entry["type"] for entry in status.get("conditions") or ()}
    return bool(types & {"SuccessCriteriaMet", "FailureTarget"})


def _end_of(job: Object) -> str:
    for type_ in ("Complete", "Failed"):
        found = objects.condition(job, type_)
        if found.get("status") == "True":
            return found.get("lastTransitionTime") or ""
    return ""


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
