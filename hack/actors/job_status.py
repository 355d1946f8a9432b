"""The status of a Job as the job controller counts it: ended Pods are recorded by uid first, then counted.

Between the two writes the Pods lose the tracking finalizer (KEP-2307).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.pod_status import is_over, is_ready
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: Keeps a Pod until its Job counts it.
TRACKING = "batch.kubernetes.io/job-tracking"
_DEFAULT_BACKOFF_LIMIT = 6
_LONGEST_BACKOFF = 600.0

COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
BACKOFF_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")


@dataclass(slots=True)
class Tally:
    """A Job and its Pods by state."""

    job: Object
    active: list[Object] = field(default_factory=list)
    #: Terminating.
    terminating: list[Object] = field(default_factory=list)
    #: Ended, and not recorded in uncountedTerminatedPods.
    fresh: list[Object] = field(default_factory=list)
    #: Recorded in uncountedTerminatedPods.
    recorded: list[Object] = field(default_factory=list)

    @classmethod
    def of(cls, job: Object, pods: list[Object]) -> Tally:
        """Group the Pods that the Job controls."""
        tally = cls(job)
        known = tally.uncounted("succeeded") + tally.uncounted("failed")
        for pod in pods:
            if objects.uid(pod) in known:
                tally.recorded.append(pod)
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
        """Return the stored status."""
        return objects.status(self.job)

    def uncounted(self, how: str) -> list[str]:
        """Return the recorded uids of succeeded or failed Pods."""
        return list((self.status.get("uncountedTerminatedPods") or {}).get(how) or ())

    def count(self, how: str) -> int:
        """Return the number of succeeded or failed Pods, with the recorded ones."""
        return int(self.status.get(how) or 0) + len(self.uncounted(how))

    @property
    def completions(self) -> int:
        """Return how many Pods have to succeed."""
        return int(objects.spec(self.job).get("completions", 1))

    @property
    def parallelism(self) -> int:
        """Return how many Pods may run at once."""
        return int(objects.spec(self.job).get("parallelism", 1))

    @property
    def suspended(self) -> bool:
        """Report whether the Job is suspended."""
        return bool(objects.spec(self.job).get("suspend"))

    @property
    def waits_for_terminating(self) -> bool:
        """Report whether a replacement Pod waits for the terminating one."""
        return objects.spec(self.job).get("podReplacementPolicy") == "Failed"

    def verdict(self) -> tuple[str, str, str] | None:
        """Return the interim condition that follows from the counts: type, reason, message."""
        if self.count("succeeded") >= self.completions:
            return ("SuccessCriteriaMet", *COMPLETIONS_REACHED)
        limit = objects.spec(self.job).get("backoffLimit")
        if self.count("failed") > (_DEFAULT_BACKOFF_LIMIT if limit is None else limit):
            return ("FailureTarget", *BACKOFF_EXCEEDED)
        return None


def is_finished(job: Object) -> bool:
    """Report whether the Job is Complete or Failed."""
    return objects.is_condition_true(job, "Complete") or objects.is_condition_true(job, "Failed")


def backoff_of(failures: int, first: float) -> float:
    """Return the seconds from the end of the last attempt to the next one."""
    return min(first * 2.0 ** min(failures - 1, 16), _LONGEST_BACKOFF) if failures else 0.0


def with_counts(tally: Tally, status: Object) -> Object:
    """Return the status with the numbers of active and ready Pods; zeros are omitted, as in the recordings.

    kube-controller-manager v1.35.1 also writes zeros for `ready` and `terminating`, which readers treat as absent.
    """
    numbers = {
        "active": len(tally.active),
        "ready": sum(1 for pod in tally.active if is_ready(pod)),
        "terminating": len(tally.terminating),
    }
    kept = {key: value for key, value in status.items() if key not in numbers}
    return kept | {key: value for key, value in numbers.items() if value}


def with_recorded(tally: Tally) -> Object:
    """Return the status with the newly ended Pods recorded and the resulting interim condition."""
    status = with_counts(tally, tally.status)
    uncounted = {how: tally.uncounted(how) for how in ("succeeded", "failed")}
    for pod in tally.fresh:
        how = "succeeded" if objects.status(pod).get("phase") == "Succeeded" else "failed"
        uncounted[how].append(objects.uid(pod))
    return status | {"uncountedTerminatedPods": {how: uids for how, uids in uncounted.items() if uids}}


def with_counted(tally: Tally) -> Object:
    """Return the status with the recorded Pods counted."""
    status = with_counts(tally, tally.status)
    for how in ("succeeded", "failed"):
        number = tally.count(how)
        if number:
            status[how] = number
    return status | {"uncountedTerminatedPods": {}}


def with_verdict(status: Object, verdict: tuple[str, str, str] | None, *, at: str) -> Object:
    """Return the status with the interim condition."""
    if verdict is None:
        return status
    type_, reason, message = verdict
    conditions = status.get("conditions") or []
    if any(entry["type"] in {"SuccessCriteriaMet", "FailureTarget"} for entry in conditions):
        return status
    return status | {"conditions": _with(conditions, type_, "True", reason, message, at)}


def with_end(status: Object, *, at: str) -> Object:
    """Return the status with the final condition that follows from the interim one."""
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
    """Return the status with its Suspended condition, and without a start time while suspended."""
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
