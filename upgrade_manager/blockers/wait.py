"""What the pipeline waits for, in terms that finders understand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class WaitKind(Enum):
    """The kinds of waits: finders are rows for one of them."""

    #: A Job, of the manager or of the system-upgrade-controller.
    JOB = "Job"
    #: A Plan of the system-upgrade-controller without Jobs.
    PLAN = "Plan"
    #: The upgrade repository's Deployment without all its replicas.
    DEPLOYMENT = "Deployment"
    #: The upgrade repository's Service without a ready endpoint, or without a response.
    SERVICE = "Service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One wait of a phase for one object."""

    kind: WaitKind
    namespace: str
    name: str
    #: The node whose upgrade waits; empty if that is not one node.
    node: str = ""
    #: When the wait began, by a time that survives a restart.
    since: datetime
    #: When the awaited work last made progress; `since` for work whose progress cannot be seen.
    progressed: datetime
    #: Seconds without progress that are usual.
    usual: float = 60.0
    #: Label selector of its Pods; empty where it has none.
    pods: str = ""
    #: What the pipeline knows about it already, for the message.
    detail: str = ""
    #: True once the work runs.
    is_running: bool = False
