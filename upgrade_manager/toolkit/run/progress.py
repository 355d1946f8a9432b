"""Shows the progress of a command in the log, and in annotations of its Job, which the manager reads.

cli/toolkit.py creates it, steps.py reports to it; facts/job_state.py reads the annotations in the manager.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import ANNOTATION_PROGRESS, ANNOTATION_PROGRESS_TIME, HARVESTER_SYSTEM
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from upgrade_manager.kube.client import Client

#: Seconds after which an unchanged wait is logged again.
_REPEAT = 60.0
#: Seconds for the annotation; the command continues without it.
_TIMEOUT = 5.0


class JobProgress:
    """Implements Progress: the step and its time as annotations of the Job."""

    def __init__(self, client: Client, *, job: str, command: str, now: Callable[[], datetime]) -> None:
        """`job` is the Job's name in harvester-system; without a Job, only the log shows the progress."""
        self._client = client
        self._now = now
        self._job = job
        self._log = structlog.get_logger(__name__).bind(command=command)
        self._waited_for = ""
        self._logged = 0.0
        self._began = 0.0

    async def started(self, step: str, *, number: int, total: int) -> None:
        """See Progress."""
        self._began, self._waited_for = loop_time(), ""
        self._log.info("step started", step=step, number=number, total=total)
        if self._job:
            await self._annotate(f"{number}/{total} {step}")

    def waiting(self, step: str, missing: str) -> None:
        """See Progress."""
        now = loop_time()
        if missing == self._waited_for and now - self._logged < _REPEAT:
            return
        self._waited_for, self._logged = missing, now
        self._log.info("waiting", step=step, missing=missing, seconds=round(now - self._began))

    def ended(self, step: str, *, skipped: bool) -> None:
        """See Progress."""
        if skipped:
            self._log.info("step skipped, already done", step=step)
        else:
            self._log.info("step done", step=step, seconds=round(loop_time() - self._began, 1))

    async def _annotate(self, text: str) -> None:
        annotations = {ANNOTATION_PROGRESS: text, ANNOTATION_PROGRESS_TIME: format_time(self._now())}
        patch = MergePatch({"metadata": {"annotations": annotations}})
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._client.patch(JOBS, self._job, patch, namespace=HARVESTER_SYSTEM, metadata_only=True)
        except (KubeError, TimeoutError) as error:
            self._log.warning("progress not shown at the Job", job=self._job, error=str(error))
