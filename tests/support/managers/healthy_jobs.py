"""The Jobs of an upgrade without failures, which several tests compare with the Jobs that an upgrade has created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.api.names import component_name
from upgrade_manager.api.phases import PHASE_SPECS, NodeWork

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The components of phases that run one Job. The system-upgrade-controller creates the Jobs of phases on the nodes.
ONCE = tuple(spec.component for spec in PHASE_SPECS if spec.component and spec.nodes is NodeWork.NONE)


def healthy_jobs(plan: str, nodes: Sequence[str]) -> list[str]:
    """Return the names of the Jobs that the manager creates itself, sorted."""
    types = [JobType.SINGLE_NODE_UPGRADE] if len(nodes) == 1 else [JobType.PRE_DRAIN, JobType.POST_DRAIN]
    of_nodes = (
        component_name(plan, Component.NODE_UPGRADE, job_type=type_, node=node) for type_ in types for node in nodes
    )
    return sorted([*(component_name(plan, component) for component in ONCE), *of_nodes])
