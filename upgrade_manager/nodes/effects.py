"""What a decision asks to be done: data, so that decisions stay pure and every effect can be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.api.keys import JobType


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    """Create the node's Job of that type, unless it is there."""

    node: str
    job_type: JobType
    #: The Job is to exist, and not to run yet.
    suspended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeJob:
    """Let the node's Job of that type run, which exists suspended."""

    node: str
    job_type: JobType


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHook:
    """Copy Rancher's value, byte for byte, to our annotation on the machine-plan Secret."""

    secret: str
    annotation: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectOS:
    """Note on the Node which OS it will report after its reboot."""

    node: str
    os_image: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetOS:
    """Remove that note."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreVMs:
    """Have the VMs started again that were shut down for the node's sake, where any are listed."""

    node: str


Effect = StartJob | ResumeJob | AnswerHook | ExpectOS | ForgetOS | RestoreVMs
