"""Finds the Pods that keep a Job from ending after it has failed: the Job controller waits until they terminate.

table.py lists the finder; jobs.py makes the wait, and has the finders of Jobs that do not start or take long.
facts/pod_end.py has the reason and the remedies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.blockers.deadlines import from_start
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.jobs import LABEL_JOB_NAME
from upgrade_manager.blockers.wait import FailingJobWait
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.job_state import failed_but
from upgrade_manager.facts.pod_end import unended
from upgrade_manager.facts.removal import CHECK_JOB_CONTROLLER
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.api.remedy import Remedy
    from upgrade_manager.blockers.object_view import View


def _blockers(view: View, wait: FailingJobWait) -> Iterator[Blocker]:
    """Yield the Job with the first of its Pods that has not terminated."""
    selected = view.objects(Selection(resource=PODS, namespace=wait.namespace, label_selector=wait.pods))
    pods = [pod for pod in selected if objects.labels(pod).get(LABEL_JOB_NAME) == wait.name and not is_final(pod)]
    if pods:
        pod = min(pods, key=objects.name)
        why, ways_out = unended(pod)
        yield _blocker(wait, f"its Pod {objects.name(pod)} {why}", remedies=ways_out)
    else:
        why = "its Pods have ended, and the Job controller does not mark it as failed"
        yield _blocker(wait, why, remedies=(CHECK_JOB_CONTROLLER,))


def _blocker(wait: FailingJobWait, why: str, *, remedies: tuple[Remedy, ...]) -> Blocker:
    return Blocker(
        reason=BlockerReason.JOB_SLOW,
        kind=wait.kind.object_kind,
        namespace=wait.namespace,
        name=wait.name,
        node=wait.node,
        message=f"Job {wait.namespace}/{wait.name}: {failed_but(objects.excerpt(wait.detail), why)}",
        remedies=remedies,
        since=wait.since,
    )


FINDERS = (Finder(wait=FailingJobWait, reasons=(BlockerReason.JOB_SLOW,), overdue=from_start, find=_blockers),)
