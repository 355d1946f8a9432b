"""Why a Job failed, in the words of the Pod that failed last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PODS
from upgrade_manager.pipeline.explanation import explaining

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.job_state import JobState


async def with_last_words(client: Client, job: JobState) -> str:
    """The Job's cause, and the last line of its Pod's termination message where there is one."""
    words = await last_words(client, job)
    return f"{job.cause}: {words}" if words else job.cause


async def last_words(client: Client, job: JobState) -> str:
    """The last line of the termination message of the Pod that failed last; empty where there is none.

    Nothing hangs on it: where the Pods cannot be read the Job's own words must do.
    """
    selector = f"batch.kubernetes.io/job-name={job.name}"
    pods = await explaining(client, PODS, namespace=job.namespace, label_selector=selector)
    words = [word for pod in sorted(pods, key=_started) if (word := _termination(pod))]
    return words[-1] if words else ""


def _started(pod: Object) -> str:
    return str(objects.metadata(pod).get("creationTimestamp", ""))


def _termination(pod: Object) -> str:
    for container in objects.status(pod).get("containerStatuses") or []:
        terminated: dict[str, Any] = (container.get("state") or {}).get("terminated") or {}
        lines = (terminated.get("message") or "").strip().splitlines()
        if terminated.get("exitCode") and lines:
            return str(lines[-1])
    return ""
