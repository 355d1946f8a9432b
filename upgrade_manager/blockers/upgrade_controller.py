"""Finds the reason why the system-upgrade-controller creates no Job for a Plan, mostly without reporting an error.

table.py lists the finder; pipeline/phases/plan_jobs.py follows the Plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import MANAGED_SELECTOR, suc_node_label
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.deadlines import START, from_start
from upgrade_manager.blockers.deployments import has_just_changed, outage
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.remedy import WEBHOOKS
from upgrade_manager.blockers.wait import PlanWait
from upgrade_manager.blockers.warnings import latest_warning
from upgrade_manager.facts.deployments import hangs, restart
from upgrade_manager.facts.label_selectors import matches
from upgrade_manager.facts.suc_nodes import (
    LABEL_SUC_PLAN,
    UPGRADE_CONTROLLER,
    hostname_problem,
    hostname_remedy,
    label_change,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import EVENTS, JOBS, NODES, SUC_PLANS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object

#: The value of a Plan's label by which users exclude a node.
_DISABLED = "disabled"


def _blockers(view: View, wait: PlanWait) -> Iterator[Blocker]:
    """Yield the controller if it does not run; else the nodes that the controller does not process, and the Plan."""
    stopped = outage(view, wait.namespace, UPGRADE_CONTROLLER)
    if stopped:
        message = f"{stopped.problem}; Plan {wait.name} is not processed"
        yield _blocker(wait, kind="Deployment", name=UPGRADE_CONTROLLER, message=message, remedies=stopped.remedies)
        return
    if has_just_changed(view, wait.namespace, UPGRADE_CONTROLLER, within=START):
        return
    nodes = view.objects(Selection(resource=NODES, label_selector=MANAGED_SELECTOR, metadata_only=True))
    excluded = [found for node in nodes if (found := _excluded(wait, node)) is not None]
    yield from excluded
    words = wait.detail or latest_warning(view, kind="Plan", namespace=wait.namespace, name=wait.name)
    if words:
        yield _plan(wait, words, (Remedy("Show its log", command=_logs(wait)),))
    elif not excluded and (silence := _silence(view, wait, nodes)):
        yield _plan(wait, *silence)


def _excluded(wait: PlanWait, node: Object) -> Blocker | None:
    """Return a node that the controller never completes: a disabled node, or a node whose hostname is not its name."""
    name, labels = objects.name(node), objects.labels(node)
    message, label = hostname_problem(node), suc_node_label(wait.name)
    if message:
        remedies = (hostname_remedy(node),)
    elif labels.get(label) == _DISABLED:
        message = f"label {label}={_DISABLED} excludes it from Plan {wait.namespace}/{wait.name}"
        include, exclude = (f"kubectl label node {name} {label}{end}" for end in ("-", f"={_DISABLED}"))
        changes = (label_change(name, label, _DISABLED),)
        remedies = (Remedy("Remove the label", command=include, undo=exclude, changes=changes),)
    else:
        return None
    return _blocker(wait, kind="Node", name=name, node=name, message=f"Node {name}: {message}", remedies=remedies)


def _silence(view: View, wait: PlanWait, nodes: Sequence[Object]) -> tuple[str, tuple[Remedy, ...]] | None:
    """Return why the controller creates no Jobs without an error, and the remedies; None for a complete Plan."""
    selector = f"metadata.name={wait.name}"
    found = view.objects(Selection(resource=SUC_PLANS, namespace=wait.namespace, field_selector=selector))
    plan = found[0] if found else {}
    if not objects.items(plan, "status", "conditions"):
        again = Remedy("Restart it", command=restart(wait.namespace, UPGRADE_CONTROLLER))
        return "the controller has set no condition", (again,)
    other = [one for one in nodes if not matches(objects.value(plan, "spec", "nodeSelector"), objects.labels(one))]
    if other:
        delete = Remedy(
            "Delete the Plan, which is created again",
            command=f"kubectl delete {SUC_PLANS.name} -n {wait.namespace} {wait.name}",
        )
        return f"its nodeSelector does not match {name_list(sorted(map(objects.name, other)))}", (delete,)
    label, latest = suc_node_label(wait.name), objects.text(plan, "status", "latestHash")
    if latest and all(objects.labels(one).get(label) == latest for one in nodes):
        if _has_jobs(view, wait, plan):
            # A watch of the manager is behind: the wait ends once it is renewed.
            return None
        clear = Remedy("Remove the label", command=f"kubectl label nodes -l {MANAGED_SELECTOR} {label}-")
        return f"all nodes have its label {label} already, perhaps of an earlier Plan of its name", (clear,)
    if _is_refused(view, wait, plan):
        return "the API server refuses its Jobs", _trial(wait)
    ways_out = hangs(_logs(wait), wait.namespace, UPGRADE_CONTROLLER, after="a minute")
    return "the controller does not report why", ways_out


def _has_jobs(view: View, wait: PlanWait, plan: Object) -> bool:
    """Return True if Jobs of this Plan exist; those of an earlier Plan of its name have another owner."""
    selected = Selection(resource=JOBS, namespace=wait.namespace, label_selector=f"{LABEL_SUC_PLAN}={wait.name}")
    return any(objects.owner_uid(job) == objects.uid(plan) for job in view.objects(selected))


def _is_refused(view: View, wait: PlanWait, plan: Object) -> bool:
    """Return True if the controller repeatedly reports Jobs that do not exist."""
    if objects.items(plan, "status", "applying"):
        return False
    selector = "involvedObject.kind=Plan,reason=SyncJob"
    events = view.objects(Selection(resource=EVENTS, namespace=wait.namespace, field_selector=selector))
    return any(
        objects.text(event, "involvedObject", "name") == wait.name and (objects.number(event, "count") or 0) > 1
        for event in events
    )


def _logs(wait: PlanWait) -> str:
    return f"kubectl -n {wait.namespace} logs deploy/{UPGRADE_CONTROLLER} --tail=100 --timestamps"


def _trial(wait: PlanWait) -> tuple[Remedy, ...]:
    """Return the dry run that prints the API server's reason for refusing Jobs."""
    trial = f"kubectl create job -n {wait.namespace} trial --image=trial --dry-run=server"
    return (
        Remedy("Let the API server report the reason (this creates no Job)", command=trial),
        Remedy("Repair the component that refuses the Job; list the webhooks", command=WEBHOOKS),
    )


def _plan(wait: PlanWait, words: str, remedies: tuple[Remedy, ...]) -> Blocker:
    message = f"Plan {wait.namespace}/{wait.name} is not processed ({objects.excerpt(words)})"
    return _blocker(wait, kind="Plan", name=wait.name, message=message, remedies=remedies)


def _blocker(
    wait: PlanWait, *, kind: str, name: str, message: str, remedies: tuple[Remedy, ...], node: str = ""
) -> Blocker:
    return Blocker(
        reason=BlockerReason.UPGRADE_CONTROLLER_SILENT,
        kind=kind,
        namespace="" if node else wait.namespace,
        name=name,
        node=node,
        message=message,
        remedies=remedies,
        since=wait.since,
    )


FINDERS = (
    Finder(
        wait=PlanWait,
        reasons=(BlockerReason.UPGRADE_CONTROLLER_SILENT,),
        overdue=from_start,
        find=_blockers,
    ),
)
