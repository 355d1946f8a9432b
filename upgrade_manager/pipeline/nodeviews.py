"""What is observed, brought together per node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_PENDING_OS_IMAGE, LABEL_JOB_TYPE, LABEL_NODE, JobType
from upgrade_manager.api.names import label_value
from upgrade_manager.kube import objects
from upgrade_manager.nodes import machineplan
from upgrade_manager.nodes.jobstate import JobState
from upgrade_manager.nodes.view import Hook, NodeView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.draft import StatusDraft


def node_views(
    draft: StatusDraft,
    *,
    nodes: Iterable[Object],
    secrets: Iterable[Object],
    machines: Iterable[Object],
    jobs: Iterable[Object],
) -> list[NodeView]:
    """One view per node that takes part: it was there when the phase began, or Rancher asks about it all the same."""
    plans = _by_node(secrets, machines)
    steps = _jobs_by_node(jobs)
    views = [
        _view(draft, node, plans.get(objects.name(node)), steps.get(label_value(objects.name(node)), {}))
        for node in nodes
    ]
    return [view for view in views if draft.has_node(view.name) or view.pre_drain.open or view.post_drain.open]


def _view(draft: StatusDraft, node: Object, secret: Object | None, jobs: dict[JobType, JobState]) -> NodeView:
    name = objects.name(node)
    return NodeView(
        name=name,
        state=draft.node_state(name),
        os_image=(objects.status(node).get("nodeInfo") or {}).get("osImage", ""),
        ready=objects.is_condition_true(node, "Ready"),
        pending_os=objects.annotations_of(node).get(ANNOTATION_PENDING_OS_IMAGE, ""),
        secret=objects.name(secret) if secret else "",
        pre_drain=machineplan.pre_drain(secret) if secret else Hook(),
        post_drain=machineplan.post_drain(secret) if secret else Hook(),
        jobs=jobs,
    )


def _by_node(secrets: Iterable[Object], machines: Iterable[Object]) -> Mapping[str, Object]:
    """Secrets without a Machine, and Machines without a node, are nobody's yet."""
    by_name = {objects.name(machine): machine for machine in machines}
    return {node: secret for secret in secrets if (node := machineplan.node_of(secret, by_name))}


def _jobs_by_node(jobs: Iterable[Object]) -> dict[str, dict[JobType, JobState]]:
    result: dict[str, dict[JobType, JobState]] = {}
    for job in jobs:
        labels = objects.labels(job)
        if labels.get(LABEL_JOB_TYPE) in JobType.__members__.values() and LABEL_NODE in labels:
            result.setdefault(labels[LABEL_NODE], {})[JobType(labels[LABEL_JOB_TYPE])] = JobState.of(job)
    return result
