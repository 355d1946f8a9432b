from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.api.keys import JobType
    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.nodes.job_state import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One of Rancher's two questions about a node: may I drain, may I go on."""

    #: What Rancher set, byte for byte; empty while it does not ask.
    asked: str = ""
    #: What we answered last; Rancher goes on when both are equal.
    answered: str = ""

    @property
    def open(self) -> bool:
        """Whether Rancher waits for us."""
        return bool(self.asked) and self.asked != self.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """Everything that is observed about one node while it is upgraded, from its Node, Secret and Jobs."""

    name: str
    state: NodeState | None
    os_image: str
    ready: bool
    #: The OS that we announced to be expected after the reboot; empty where none is.
    pending_os: str
    #: The machine-plan Secret; empty for a node that Rancher does not manage (yet).
    secret: str = ""
    pre_drain: Hook = Hook()
    post_drain: Hook = Hook()
    jobs: dict[JobType, JobState]
    #: Whether its Kubernetes is older than the release's.
    behind: bool = False
    #: Whether an earlier upgrade has left a question about it open.
    left_over: bool = False
    #: Rancher's order: the lower ones first. None where Rancher does not say.
    tier: int | None = None
    #: Whether the plan names it among the nodes to hold back.
    paused: bool = False
    #: Whether the VMs that were shut down for its sake are to be started again once it is back.
    restores_vms: bool = False
