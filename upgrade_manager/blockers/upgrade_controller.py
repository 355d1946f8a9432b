"""Why the system-upgrade-controller creates no Job for a Plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.blockers.finder import Finder, from_start
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.blockers.warnings import latest_warning
from upgrade_manager.kube import fields
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.view import View
    from upgrade_manager.blockers.wait import Wait

_CONTROLLER = "system-upgrade-controller"


def _blockers(view: View, wait: Wait) -> Iterator[Blocker]:
    """Yield the controller if it does not run, else the Plan with the controller's words."""
    selector = f"metadata.name={_CONTROLLER}"
    found = view.objects(Selection(resource=DEPLOYMENTS, namespace=wait.namespace, field_selector=selector))
    if not found or not fields.number(found[0], "status", "availableReplicas"):
        state = "is not available" if found else "does not exist"
        yield _blocker(
            wait,
            kind="Deployment",
            name=_CONTROLLER,
            message=f"Deployment {wait.namespace}/{_CONTROLLER} {state}; Plan {wait.name} gets no Jobs",
            remedy=f"kubectl -n {wait.namespace} rollout status deploy/{_CONTROLLER}",
        )
        return
    words = wait.detail or latest_warning(view, kind="Plan", namespace=wait.namespace, name=wait.name)
    yield _blocker(
        wait,
        kind="Plan",
        name=wait.name,
        message=f"Plan {wait.namespace}/{wait.name} gets no Jobs ({words or 'the controller does not say why'})",
        remedy=f"kubectl -n {wait.namespace} logs deploy/{_CONTROLLER}",
    )


def _blocker(wait: Wait, *, kind: str, name: str, message: str, remedy: str) -> Blocker:
    return Blocker(
        reason=BlockerReason.UPGRADE_CONTROLLER_SILENT,
        kind=kind,
        namespace=wait.namespace,
        name=name,
        message=message,
        remedy=remedy,
        since=wait.since,
    )


FINDERS = (
    Finder(
        kind=WaitKind.PLAN,
        reasons=(BlockerReason.UPGRADE_CONTROLLER_SILENT,),
        overdue=from_start,
        find=_blockers,
    ),
)
