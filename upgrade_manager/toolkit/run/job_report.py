"""Reports of a step as annotations of its Job, which the manager watches anyway; vms/ writes them.

facts/job_state.py reads the annotations in the manager. progress.py has the report of the current step.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Seconds for the annotation of the Job; the command continues without it.
_TIMEOUT = 5.0

_log = structlog.get_logger(__name__)


async def report(context: ToolkitContext, key: str, value_of: Callable[[str], str]) -> None:
    """Set the Job's annotation to the value that follows its present one, "" for none; best effort."""
    if not context.job:
        return
    context.absent.discard(key)
    try:
        async with asyncio.timeout(_TIMEOUT):
            job = await context.client.find(JOBS, context.job, namespace=HARVESTER_SYSTEM, metadata_only=True)
            if job is not None:
                await _annotate(context, key, objects.annotations_of(job).get(key, ""), value_of)
    except (KubeError, TimeoutError) as error:
        _log.warning("report not shown at the Job", job=context.job, annotation=key, error=str(error))


async def clear(context: ToolkitContext, key: str) -> None:
    """Remove the annotation, which an earlier Pod of the Job may have set; the Job is read only until that is done."""
    if key not in context.absent:
        await report(context, key, lambda _: "")


async def _annotate(context: ToolkitContext, key: str, present: str, value_of: Callable[[str], str]) -> None:
    value = value_of(present)
    if value != present:
        patch = MergePatch({"metadata": {"annotations": {key: value or None}}})
        await context.client.patch(JOBS, context.job, patch, namespace=HARVESTER_SYSTEM, metadata_only=True)
        _log.info("report of the Job changed", annotation=key, value=value)
    if not value:
        context.absent.add(key)
