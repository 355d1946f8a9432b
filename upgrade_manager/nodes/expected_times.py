"""The usual times of Jobs and steps of a node, from which overdue waits and stalls follow.

An upgrade that is slow on all nodes is not stuck: what its nodes have taken counts, too.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.api.phases import PHASE_SPECS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: Seconds without visible progress that are usual, by the component's or the Job's type; those of a phase's component
#: are in the phase's row.
USUAL: Mapping[str, float] = {
    **{spec.component: spec.usual for spec in PHASE_SPECS if spec.component is not None},
    Component.CHECKSUMS: 300.0,
    JobType.PRE_DRAIN: 1800.0,
    JobType.POST_DRAIN: 3600.0,
    JobType.SINGLE_NODE_UPGRADE: 5400.0,
    JobType.RESTORE_VM: 2400.0,
}
#: The same for Rancher, which drains a node and upgrades its Kubernetes.
USUAL_DRAIN = 600.0
#: The same for a node that reboots: it shuts down, boots, and its kubelet reports that it is Ready.
USUAL_REBOOT = 1800.0
#: A Job that takes that many times as long as those of other nodes is slow.
TOLERANCE = 3.0


def expected_seconds(work: str, finished: Collection[float]) -> float:
    """Return how long such a Job may go without progress; `finished` are the durations of this plan's Jobs."""
    return max(USUAL[work], TOLERANCE * median(finished)) if finished else USUAL[work]
