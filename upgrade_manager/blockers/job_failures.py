"""Reads the failure of a Job, or of its last attempt, from the termination messages of its Pods.

Phases call it for messages; jobs.py finds the reason why a Job does not start. Pods are listed and not watched. Pods
never affect decisions, so a list that fails or times out counts as empty.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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


#: The reason of a Job whose Pods have failed too often, which says nothing about the cause.
_BACKOFF = "BackoffLimitExceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailure:
    """The failure of a Job."""

    #: The number of its attempts and the cause, to follow the name of the work.
    cause: str
    #: The command that shows the log of its last Pod.
    log: str

    def of(self, work: str) -> str:
        """Return the sentences about the work, with the command at the end."""
        return f"{work} {self.cause}. Log: {self.log}"


async def job_failure(client: Client, job: JobState) -> JobFailure:
    """Return the failure of a Job from its condition and the last termination message of its Pods."""
    message = await _termination_message(client, job)
    times = f" {job.failed_attempts} times" if job.failed_attempts > 1 else ""
    why = ": ".join(filter(None, ("" if message and job.reason == _BACKOFF else job.condition, message)))
    cause = f"failed{times}: {why}" if why else f"failed{times}"
    return JobFailure(cause=cause, log=f"kubectl logs -n {job.namespace} job/{job.name}")


async def job_failure_message(client: Client, job: JobState) -> str:
    """Return the sentences about a Job that has failed, which name it."""
    return (await job_failure(client, job)).of(f"Job {job.namespace}/{job.name}")


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
