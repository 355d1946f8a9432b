from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.holds import HOLD_STEP
from upgrade_manager.api.keys import (
    ANNOTATION_BOOT_ID,
    ANNOTATION_FORBIDDEN_STOPS,
    ANNOTATION_HOLDS,
    ANNOTATION_INVALID_POLICIES,
    ANNOTATION_PROGRESS,
    ANNOTATION_PROGRESS_TIME,
    LABEL_COMPONENT,
    LABEL_JOB_TYPE,
    LABEL_REPEATED,
    LABEL_REQUEST,
    Component,
    JobType,
)
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object

#: The API server's default.
DEFAULT_BACKOFF_LIMIT = 6
#: The state of a Job that has no Pod.
NO_POD = "waiting for its Pod"
#: The state of a Job whose Pod has succeeded.
POD_FINISHED = "Pod finished; waiting for the Job to be marked complete"
#: The problem of a Job that another client has suspended.
SUSPENDED = "it is suspended, so that none of its Pods runs"
#: The form of the annotation `ANNOTATION_PROGRESS`; another text is ignored.
_STEP = re.compile(r"[0-9]{1,3}/[0-9]{1,3} [a-z0-9-]{1,60}", re.ASCII)


class Progress(Enum):
    """The progress of a Job."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The fields of a Job that decisions need.

    Only the conditions Complete and Failed are final: SuccessCriteriaMet and FailureTarget precede them while Pods run.
    """

    namespace: str
    name: str
    uid: str
    progress: Progress
    #: The reason of the condition Complete, Failed or FailureTarget; empty without such a condition.
    reason: str = ""
    message: str = ""
    failed_attempts: int = 0
    backoff_limit: int = DEFAULT_BACKOFF_LIMIT
    suspended: bool = False
    #: True for a Job of a hook that Rancher set again on an upgraded node.
    repeated: bool = False
    #: The request of Rancher that the Job answers; empty for other Jobs, and those of earlier versions.
    request: str = ""
    #: The step that the Job's command reports, as in "3/9 stop-vms"; empty without a report.
    step: str = ""
    #: The VMs that users' PodDisruptionBudgets keep the Job's command from stopping, as an annotation; empty without.
    forbidden_stops: str = ""
    #: The VMs whose annotation on-migration-failure is not valid, as an annotation; empty without.
    invalid_policies: str = ""
    #: The id of the boot in which its node was when the Job was created; empty for other Jobs, and those of earlier
    #: versions.
    boot_id: str = ""
    #: True if its command was started to hold before the reboot, as the Job's environment says.
    may_hold: bool = False
    #: The time of its creation; empty if unknown.
    created: str = ""
    #: The time at which the Job's Pods were allowed to start, at first or after a suspension; empty before.
    started: str = ""
    #: The time at which the Job was suspended; empty unless it is.
    suspended_at: str = ""
    #: The time at which the Job was resumed after a suspension; empty without a suspension.
    resumed: str = ""
    #: The time at which the Job's Pods were last started, or the Job's command last reported a step; empty before.
    progressed: str = ""
    #: The time since which the Job fails, while its Pods terminate; empty for another Job.
    failing_since: str = ""
    #: The time at which the Job controller has seen the success of its Pod; empty before, and once it is complete.
    succeeded: str = ""
    #: The time of its completion; empty before.
    completed: str = ""
    #: The seconds from its start to its completion; None before, if a time is missing, and for a Job that may hold.
    seconds: float | None = None
    #: True while a Pod runs, and from its success until the Job is complete.
    running: bool = False

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> JobState:
        """Read the raw object; absent fields count as their defaults."""
        metadata, spec, status = job["metadata"], job.get("spec") or {}, job.get("status") or {}
        labels = metadata.get("labels") or {}
        conditions = status.get("conditions") or []
        progress, condition = _decide(conditions)
        limit = spec.get("backoffLimit")
        annotations = metadata.get("annotations") or {}
        step = annotations.get(ANNOTATION_PROGRESS)
        started = status.get("startTime") or ""
        completed = _time(condition) if progress is Progress.COMPLETE else ""
        times = (started, annotations.get(ANNOTATION_PROGRESS_TIME))
        return cls(
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata.get("uid", ""),
            progress=progress,
            reason=condition.get("reason", ""),
            message=condition.get("message", ""),
            failed_attempts=status.get("failed") or 0,
            backoff_limit=limit if isinstance(limit, int) else DEFAULT_BACKOFF_LIMIT,
            suspended=progress is Progress.RUNNING and bool(spec.get("suspend")),
            repeated=labels.get(LABEL_REPEATED) == "true",
            request=labels.get(LABEL_REQUEST, ""),
            step=step if isinstance(step, str) and _STEP.fullmatch(step) else "",
            forbidden_stops=annotations.get(ANNOTATION_FORBIDDEN_STOPS) or "",
            invalid_policies=annotations.get(ANNOTATION_INVALID_POLICIES) or "",
            boot_id=annotations.get(ANNOTATION_BOOT_ID) or "",
            may_hold=ANNOTATION_HOLDS in annotations,
            created=metadata.get("creationTimestamp") or "",
            started=started,
            suspended_at=_met_at(conditions, "Suspended"),
            resumed=_met_at(conditions, "Suspended", "False"),
            progressed=max((time for time in times if isinstance(time, str)), default=""),
            failing_since=_time(condition) if progress is Progress.RUNNING else "",
            succeeded=_met_at(conditions, "SuccessCriteriaMet") if progress is Progress.RUNNING else "",
            completed=completed,
            seconds=None if ANNOTATION_HOLDS in annotations else _seconds(started, completed),
            running=progress is Progress.RUNNING and _has_pod(status),
        )

    @property
    def is_resuming(self) -> bool:
        """True for a Job that was resumed, and that the Job controller has not started again yet."""
        return self.progress is Progress.RUNNING and bool(self.suspended_at) and not self.suspended

    @property
    def may_run(self) -> bool:
        """True for a Job that has not finished and is not suspended."""
        return self.progress is Progress.RUNNING and not self.suspended

    @property
    def holds(self) -> bool:
        """True while its command holds before the reboot, until a user lets it go on."""
        return self.running and self.step.endswith(f" {HOLD_STEP}")

    @property
    def condition(self) -> str:
        """The reason and message of the condition Complete, Failed or FailureTarget; empty without such a condition."""
        return ": ".join(part for part in (self.reason, self.message) if part)

    @property
    def cause(self) -> str:
        """The failed Job and its condition, for messages."""
        return f"Job {self.namespace}/{self.name} failed" + (f": {self.condition}" if self.condition else "")

    @property
    def is_failing(self) -> bool:
        """True if it has failed, or (FailureTarget) will fail when its Pods terminate."""
        return self.progress is Progress.FAILED or (self.progress is Progress.RUNNING and bool(self.condition))

    @property
    def resume_command(self) -> str:
        """The command that resumes a suspended Job."""
        return f"""kubectl patch job -n {self.namespace} {self.name} -p '{{"spec":{{"suspend":false}}}}'"""

    @property
    def attempt(self) -> str:
        """The number of the current attempt, and the step that its command reports."""
        attempt = f"attempt {min(self.failed_attempts, self.backoff_limit) + 1} of {self.backoff_limit + 1}"
        return f"{attempt}, step {self.step}" if self.step else attempt

    def describe(self) -> str:
        """Return the state of a running Job, for messages that name it: the problem that holds it, or its attempt."""
        return self.warning if self.suspended or self.is_failing else self.attempt

    @property
    def warning(self) -> str:
        """The problem of a running Job; empty without a problem."""
        if self.progress is not Progress.RUNNING:
            return ""
        if self.suspended:
            return f"{SUSPENDED}. Resume it: {self.resume_command}"
        if self.condition:
            return f"{failed_but(self.condition, 'its Pod does not end')}; check that its node is up"
        if not self.failed_attempts:
            return ""
        return f"{self.failed_attempts} failed attempt{'s' if self.failed_attempts > 1 else ''}"


def failed_but(condition: str, why: str) -> str:
    """Return the state of a Job that has failed, and that something keeps from ending."""
    return f"failed ({condition}), but {why}"


def _has_pod(status: Mapping[str, Any]) -> bool:
    uncounted = status.get("uncountedTerminatedPods") or {}
    return bool(status.get("ready") or status.get("succeeded") or uncounted.get("succeeded"))


def _time(condition: Mapping[str, Any]) -> str:
    return condition.get("lastTransitionTime") or ""


def _seconds(started: str, completed: str) -> float | None:
    begun, ended = parse_time(started), parse_time(completed)
    return seconds_between(begun, ended) if begun and ended else None


def _met_at(conditions: list[dict[str, Any]], type_: str, status: str = "True") -> str:
    """Return the time at which the condition took that status; empty if it does not have it."""
    found = (one for one in conditions if one.get("type") == type_ and one.get("status") == status)
    return next(map(_time, found), "")


def _decide(conditions: list[dict[str, Any]]) -> tuple[Progress, dict[str, Any]]:
    met = {condition.get("type"): condition for condition in conditions if condition.get("status") == "True"}
    if "Failed" in met:
        return Progress.FAILED, met["Failed"]
    if "Complete" in met:
        return Progress.COMPLETE, met["Complete"]
    return Progress.RUNNING, met.get("FailureTarget", {})


def can_run(job: Object) -> bool:
    """Return True for a Job that has not finished and is not suspended. The checksums Job only reads."""
    if objects.labels(job).get(LABEL_COMPONENT) == Component.CHECKSUMS:
        return False
    return JobState.of(job).may_run


def restores_vms(job: Object) -> bool:
    """Return True for a restore-vm Job."""
    return objects.labels(job).get(LABEL_JOB_TYPE) == JobType.RESTORE_VM


def may_write_node(job: Object) -> bool:
    """Return True for a Job that can run and that does not only start VMs: a Pod of it may be writing a node's OS."""
    return can_run(job) and not restores_vms(job)
