"""The status of a Job, as the job controller counts it: Pods that ended are first noted by uid, then counted for good.

Between the two writes the Pods lose the finalizer that kept them for being counted (KEP-2307).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.pod_status import is_over, is_ready
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: Keeps a Pod until its Job has counted it.
TRACKING = "batch.kubernetes.io/job-tracking"
_DEFAULT_BACKOFF_LIMIT = 6
_LONGEST_BACKOFF = 600.0

COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
BACKOFF_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")


@dataclass(slots=True)
class Tally:
    """A Job and its Pods, sorted."""

    job: Object
    active: list[Object] = field(default_factory=list)
    #: Deleted, and not gone yet.
    terminating: list[Object] = field(default_factory=list)
    #: Ended, and not noted yet.
    fresh: list[Object] = field(default_factory=list)
    #: Noted, and not counted for good.
    noted: list[Object] = field(default_factory=list)

    @classmethod
    def of(cls, job: Object, pods: list[Object]) -> Tally:
        """Sort the Pods that the Job controls."""
        tally = cls(job)
        known = tally.uncounted("succeeded") + tally.uncounted("failed")
        for pod in pods:
            if objects.uid(pod) in known:
                tally.noted.append(pod)
            elif is_over(pod):
                if TRACKING in objects.finalizers(pod):
                    tally.fresh.append(pod)
            elif objects.is_deleting(pod):
                tally.terminating.append(pod)
            else:
                tally.active.append(pod)
        return tally

    @property
    def status(self) -> Object:
        """As stored."""
        return objects.status(self.job)

    def uncounted(self, how: str) -> list[str]:
        """The uids noted as succeeded or failed."""
        return list((self.status.get("uncountedTerminatedPods") or {}).get(how) or ())

    def count(self, how: str) -> int:
        """How many succeeded or failed, noted ones included."""
        return int(self.status.get(how) or 0) + len(self.uncounted(how))

    @property
    def completions(self) -> int:
        """How many have to succeed."""
        return int(objects.spec(self.job).get("completions", 1))

    @property
    def parallelism(self) -> int:
        """How many may run at once."""
        return int(objects.spec(self.job).get("parallelism", 1))

    @property
    def suspended(self) -> bool:
        """Whether it must not run."""
        return bool(objects.spec(self.job).get("suspend"))

    @property
    def waits_for_terminating(self) -> bool:
        """Whether a deleted Pod is replaced only once it is gone."""
        return objects.spec(self.job).get("podReplacementPolicy") == "Failed"

    def verdict(self) -> tuple[str, str, str] | None:
        """The interim condition that the counts ask for: type, reason, message."""
        if self.count("succeeded") >= self.completions:
            return ("SuccessCriteriaMet", *COMPLETIONS_REACHED)
        limit = objects.spec(self.job).get("backoffLimit")
        if self.count("failed") > (_DEFAULT_BACKOFF_LIMIT if limit is None else limit):
            return ("FailureTarget", *BACKOFF_EXCEEDED)
        return None


def is_finished(job: Object) -> bool:
    """Whether it is Complete or Failed."""
    return objects.is_condition_true(job, "Complete") or objects.is_condition_true(job, "Failed")


def backoff_of(failures: int, first: float) -> float:
    """Seconds before the next attempt, counted from the last one's end."""
    return min(first * 2.0 ** min(failures - 1, 16), _LONGEST_BACKOFF) if failures else 0.0


def with_counts(tally: Tally, status: Object) -> Object:
    """The status with the numbers of running and ready Pods; zeros are left out, as Go does."""
    numbers = {
        "active": len(tally.active),
        "ready": sum(1 for pod in tally.active if is_ready(pod)),
        "terminating": len(tally.terminating),
    }
    kept = {key: value for key, value in status.items() if key not in numbers}
    return kept | {key: value for key, value in numbers.items() if value}


def with_noted(tally: Tally) -> Object:
    """The status after the fresh Pods are noted, with the interim condition that they bring about."""
    status = with_counts(tally, tally.status)
    uncounted = {how: tally.uncounted(how) for how in ("succeeded", "failed")}
    for pod in tally.fresh:
        how = "succeeded" if objects.status(pod).get("phase") == "Succeeded" else "failed"
        uncounted[how].append(objects.uid(pod))
    return status | {"uncountedTerminatedPods": {how: uids for how, uids in uncounted.items() if uids}}


def with_counted(tally: Tally) -> Object:
    """The status after the noted Pods are counted for good."""
    status = with_counts(tally, tally.status)
    for how in ("succeeded", "failed"):
        number = tally.count(how)
        if number:
            status[how] = number
    return status | {"uncountedTerminatedPods": {}}


def with_verdict(status: Object, verdict: tuple[str, str, str] | None, *, at: str) -> Object:
    """The status with the interim condition."""
    if verdict is None:
        return status
    type_, reason, message = verdict
    conditions = status.get("conditions") or []
    if any(entry["type"] in {"SuccessCriteriaMet", "FailureTarget"} for entry in conditions):
        return status
    return status | {"conditions": _with(conditions, type_, "True", reason, message, at)}


def with_end(status: Object, *, at: str) -> Object:
    """The status with the final condition that follows from the interim one."""
    conditions = status.get("conditions") or []
    ends = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
    for entry in conditions:
        final = ends.get(entry["type"])
        if final and entry["status"] == "True":
            reason, message = entry.get("reason") or "", entry.get("message") or ""
            ended = status | {"conditions": _with(conditions, final, "True", reason, message, at)}
            return ended | {"completionTime": at} if final == "Complete" else ended
    return status


def with_suspension(status: Object, *, suspended: bool, at: str) -> Object:
    """The status with its Suspended condition, and without a start while it is suspended."""
    conditions = status.get("conditions") or []
    known = next((entry for entry in conditions if entry["type"] == "Suspended"), None)
    if suspended:
        conditions = _with(conditions, "Suspended", "True", "JobSuspended", "Job suspended", at)
        return {key: value for key, value in status.items() if key != "startTime"} | {"conditions": conditions}
    if known is not None and known["status"] == "True":
        conditions = _with(conditions, "Suspended", "False", "JobResumed", "Job resumed", at)
        return status | {"conditions": conditions, "startTime": at}
    return status if status.get("startTime") else status | {"startTime": at}


def _with(conditions: list[Object], type_: str, status: str, reason: str, message: str, at: str) -> list[Object]:
    updated = with_condition(conditions, type_, status, reason=reason, message=message, at=at, time=TRANSITION)
    return [{"lastProbeTime": at, **entry} if entry["type"] == type_ else entry for entry in updated]
