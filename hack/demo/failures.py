"""Failures of a running upgrade: breaks without a blocker, after which disturbance.py retries the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.demo.commands import Patch
from hack.demo.stalls import Stall
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_JOB_TYPE, LABEL_NODE
from upgrade_manager.api.node_states import upgraded_nodes
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.demo.commands import Command
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object


async def _cut_second_node(client: Client, plan: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Let the post-drain Job of the second node run out of time."""
    if upgraded_nodes(objects.status(plan)) == 0:
        return [], []
    jobs = (await client.list(JOBS, namespace=HARVESTER_SYSTEM, label_selector=f"{LABEL_JOB_TYPE}=post-drain")).items
    nodes = objects.mapping(plan, "status", "nodeUpgradeStatuses")
    for job in jobs:
        is_under_way = objects.text(nodes, objects.labels(job)[LABEL_NODE], "state") == "PostDraining"
        if is_under_way and JobState.of(job).progress is Progress.RUNNING:
            body = {"spec": {"activeDeadlineSeconds": 1}}
            return [Patch(resource=JOBS, name=objects.name(job), namespace=HARVESTER_SYSTEM, body=body)], []
    return [], []


FAILURES: Mapping[str, Stall] = {
    "failed-node": Stall(
        phase="NodeUpgrading",
        what="the Job that upgrades the second node runs out of time, and the plan fails",
        reasons=frozenset(),
        steps=_cut_second_node,
    )
}
