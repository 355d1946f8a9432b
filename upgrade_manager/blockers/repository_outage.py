"""Finds the cause of an upgrade repository that does not serve.

table.py lists it; pipeline/phases/repository.py keeps the repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.blockers.deadlines import START, from_start
from upgrade_manager.blockers.finder import Finder, NotLate
from upgrade_manager.blockers.pods import pod_blocker
from upgrade_manager.blockers.wait import DeploymentWait, ServiceWait
from upgrade_manager.facts.deployments import pods_ways_out
from upgrade_manager.facts.pod_reason import POD_REASONS, start_progress
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.blockers.wait import RepositoryWait


def _blockers(view: View, wait: RepositoryWait) -> Iterator[Blocker]:
    """Yield the Pods that do not start; if all started long ago, the object that waits for them. Raises NotLate."""
    pods = view.objects(Selection(resource=PODS, namespace=wait.namespace, label_selector=wait.pods))
    times = [start_progress(pod) or wait.since for pod in pods]
    found = [pod_blocker(view, pod, node="", since=since) for pod, since in zip(pods, times, strict=True)]
    starting = [one for one in found if one is not None]
    yield from (one for one in starting if view.now - one.since >= START)
    if starting:
        return
    late = max((since + START for since in times), default=view.now)
    if late > view.now:
        raise NotLate(late)
    yield _unavailable(wait)


def _unavailable(wait: RepositoryWait) -> Blocker:
    kind = wait.kind.object_kind
    return Blocker(
        reason=BlockerReason.REPOSITORY_UNAVAILABLE,
        kind=kind,
        namespace=wait.namespace,
        name=wait.name,
        message=f"{kind} {wait.namespace}/{wait.name}: the upgrade repository does not serve ({wait.detail})",
        remedies=pods_ways_out(wait.namespace, wait.deployment, wait.pods),
        since=wait.since,
    )


FINDERS = tuple(
    Finder(
        wait=kind,
        reasons=(BlockerReason.REPOSITORY_UNAVAILABLE, *POD_REASONS),
        overdue=from_start,
        find=_blockers,
    )
    for kind in (DeploymentWait, ServiceWait)
)
