"""The usual times of Jobs and steps of a node, from which overdue waits and stalls follow.

An upgrade that is slow on all nodes is not stuck, so that the durations of the plan's earlier Jobs count, too.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.api.phases import PHASE_SPECS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: The usual seconds without visible progress, by component or type of the Job; the row of a phase has the usual seconds
#: of the phase's component.
USUAL: Mapping[str, float] = {
    **{spec.component: spec.usual for spec in PHASE_SPECS if spec.component is not None},
    Component.CHECKSUMS: 300.0,
    Component.SURVEY: 300.0,
    Component.AGENT_HOLD: 300.0,
    Component.AGENT_RELEASE: 300.0,
    Component.SKIP_ON: 300.0,
    Component.SKIP_OFF: 300.0,
    JobType.PRE_DRAIN: 1800.0,
    JobType.POST_DRAIN: 3600.0,
    JobType.SINGLE_NODE_UPGRADE: 5400.0,
    JobType.RESTORE_VM: 2400.0,
}
#: The usual seconds in which Rancher drains a node and upgrades its Kubernetes.
USUAL_DRAIN = 600.0
#: The usual seconds of a reboot: the node shuts down and boots, and its kubelet reports the node as Ready.
USUAL_REBOOT = 1800.0
#: A Job is slow if it takes this many times as long as the Jobs of other nodes.
TOLERANCE = 3.0


def expected_seconds(work: str, finished: Collection[float]) -> float:
    """Return the usual seconds of such a Job without progress; `finished` are the durations of this plan's Jobs."""
    return max(USUAL[work], TOLERANCE * median(finished)) if finished else USUAL[work]
