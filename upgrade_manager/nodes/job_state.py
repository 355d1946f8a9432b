from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Progress(Enum):
    """How far a Job is."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A Job, as far as decisions need it; made from the raw object.

    Only the conditions Complete and Failed decide: SuccessCriteriaMet and FailureTarget precede them, while Pods run.
    """

    namespace: str
    name: str
    progress: Progress
    #: Of the deciding condition, and of the one that announces a failure while Pods still run; else empty.
    reason: str = ""
    message: str = ""
    #: Attempts that failed so far.
    failed_attempts: int = 0
    #: It exists, and has not been let run.
    suspended: bool = False

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> JobState:
        """Read it from the object, tolerating whatever is absent."""
        metadata, status = job["metadata"], job.get("status") or {}
        progress, condition = _decide(status.get("conditions") or [])
        return cls(
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            progress=progress,
            reason=condition.get("reason", ""),
            message=condition.get("message", ""),
            failed_attempts=status.get("failed") or 0,
            suspended=progress is Progress.RUNNING and bool((job.get("spec") or {}).get("suspend")),
        )

    @property
    def cause(self) -> str:
        """Why it failed, for a person: the object, then the controller's own words."""
        return f"Job {self.namespace}/{self.name} failed" + (f": {self._said}" if self._said else "")

    @property
    def given_up(self) -> bool:
        """Whether nothing will come of it any more, said by the controller or, on a dead node, only announced."""
        return self.progress is Progress.FAILED or (self.progress is Progress.RUNNING and bool(self._said))

    @property
    def trouble(self) -> str:
        """What is wrong with a Job that still runs, for a person; empty while all is well."""
        if self.progress is not Progress.RUNNING:
            return ""
        if self._said:
            return f"it has failed ({self._said}) and waits for its Pod to end, which a dead node never says"
        return f"{self.failed_attempts} failed attempts so far" if self.failed_attempts else ""

    @property
    def _said(self) -> str:
        return ": ".join(part for part in (self.reason, self.message) if part)


def _decide(conditions: list[dict[str, Any]]) -> tuple[Progress, dict[str, Any]]:
    met = {condition.get("type"): condition for condition in conditions if condition.get("status") == "True"}
    if "Failed" in met:
        return Progress.FAILED, met["Failed"]
    if "Complete" in met:
        return Progress.COMPLETE, met["Complete"]
    return Progress.RUNNING, met.get("FailureTarget", {})
