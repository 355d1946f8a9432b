"""Reads the failure of a Job, or of its last attempt, from the termination messages of its Pods.

Phases call it for messages; jobs.py finds the reason why a Job does not start. Pods are listed and not watched. Pods
never affect decisions, so a list that fails or times out counts as empty.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.blockers.jobs import LABEL_JOB_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.facts.job_state import JobState
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.runtime.ttl_cache import TTLCache

#: Seconds for a list, which must not delay the reconcile.
LIST_TIMEOUT = 5.0


async def job_failure_message(client: Client, job: JobState) -> str:
    """Return the failed Job's condition, its last termination message, and the command that shows its log."""
    message = await _termination_message(client, job)
    cause = f"{job.cause}: {message}" if message else job.cause
    return f"{cause}; log: kubectl logs -n {job.namespace} job/{job.name}"


async def failure_words(client: Client, job: JobState) -> str:
    """Return the failed Job's last termination message, or its condition, for a message that outlives the Job."""
    return await _termination_message(client, job) or job.message or job.reason or "the Job failed"


async def last_failure(client: Client, cache: TTLCache, job: JobState) -> str:
    """Return the termination message of the Job's last failed attempt; empty without a failed attempt."""
    key = f"failure {job.failed_attempts} of {job.namespace}/{job.name}"
    return await cache.get(key, partial(_termination_message, client, job))


async def _termination_message(client: Client, job: JobState) -> str:
    """Return the last line of the newest termination message of the Job's Pods; empty without a message."""
    pods = await _pods(client, job)
    messages = [message for pod in sorted(pods, key=_created) if (message := _last_line(pod))]
    return messages[-1] if messages else ""


def _created(pod: Object) -> str:
    return objects.text(pod, "metadata", "creationTimestamp")


def _last_line(pod: Object) -> str:
    for container in objects.items(pod, "status", "containerStatuses"):
        ended = objects.mapping(container, "state", "terminated")
        lines = objects.text(ended, "message").strip().splitlines()
        if ended.get("exitCode") and lines:
            return lines[-1]
    return ""


async def _pods(client: Client, job: JobState) -> Sequence[Object]:
    """List the Job's Pods; none if the list fails or takes too long."""
    selector = f"{LABEL_JOB_NAME}={job.name}"
    try:
        async with asyncio.timeout(LIST_TIMEOUT):
            return (await client.list(PODS, namespace=job.namespace, label_selector=selector)).items
    except (KubeError, TimeoutError):
        return ()
