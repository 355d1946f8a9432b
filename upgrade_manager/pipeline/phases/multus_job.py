"""The wait for RKE2 to upgrade its chart rke2-multus, once its manifest is not skipped any more.

host_plans.py waits here at a success. RKE2 reads its manifests every 15 s (k3s-io/k3s v1.35 pkg/deploy/controller.go,
`start`), and its helm controller upgrades the chart in a Job of a fixed name.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import KUBE_SYSTEM
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.known_wait import ChartJobWait
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.plan_objects import skip_missing

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.pipeline.context import ReconcileContext

JOB = "helm-install-rke2-multus"
#: Seconds in which RKE2 sees the manifest and replaces the Job.
SETTLE = 20.0
#: The time after which the upgrade goes on without the Job.
LIMIT = timedelta(minutes=5)
#: Seconds between two reads of the Job, which is not watched.
RETRY = 5.0


async def wait(ctx: ReconcileContext, *, since: str) -> Waiting | None:
    """Return the wait for the Job, since the last node released the chart; None once it is complete, or late."""
    began = parse_time(since)
    if began is None:
        # The Jobs that released the chart have expired: many minutes have passed.
        return None
    age = ctx.now() - began
    if age < timedelta(seconds=SETTLE):
        return _waiting(began, after=SETTLE - age.total_seconds(), state="RKE2 reads its manifests")
    found = await skip_missing(ctx.client, KUBE_SYSTEM, ctx.client.find(JOBS, JOB, namespace=KUBE_SYSTEM))
    if found is None or JobState.of(found).progress is Progress.COMPLETE:
        return None
    if age < LIMIT:
        return _waiting(began, after=RETRY, state="it is not complete")
    text = f"Job {KUBE_SYSTEM}/{JOB}, by which RKE2 upgrades its chart rke2-multus, is not complete. {_look()}"
    ctx.events.warning(ctx.raw, "ChartJobNotDone", text, about=JOB)
    return None


def _waiting(began: datetime, *, after: float, state: str) -> Waiting:
    detail = f"RKE2 upgrades its chart rke2-multus: {state}"
    wait_ = ChartJobWait(
        namespace=KUBE_SYSTEM, name=JOB, since=began, detail=detail, remedies=(Remedy("Show its log", command=_look()),)
    )
    return Waiting(message=f"Job {KUBE_SYSTEM}/{JOB}: {detail}", after=after, waits=(wait_,))


def _look() -> str:
    return f"kubectl -n {KUBE_SYSTEM} logs job/{JOB}"
