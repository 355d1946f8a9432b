from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hack.virtual_time import virtual_now
from tests.support.cluster.actor_cluster import job
from tests.support.toolkit.toolkit import toolkit_world
from upgrade_manager.api.keys import ANNOTATION_PROGRESS, HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.toolkit.run.progress import JobProgress


async def test_job_shows_the_step(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        await world.client.create(JOBS, job("demo-j", command=["upgrade_node.sh", "pre-drain"]))
        progress = JobProgress(world.client, job="demo-j", command="node pre-drain", now=virtual_now)
        await progress.started("stop-vms", number=3, total=9)
        found = await world.client.get(JOBS, "demo-j", namespace=HARVESTER_SYSTEM)
        assert objects.annotations_of(found)[ANNOTATION_PROGRESS] == "3/9 stop-vms"


@pytest.mark.parametrize("name", ["", "absent"])
async def test_command_continues_without_its_job(tmp_path: Path, name: str) -> None:
    async with toolkit_world(tmp_path) as world:
        with capture_logs() as logs:
            await JobProgress(world.client, job=name, command="node prepare", now=virtual_now).started(
                "wait", number=1, total=2
            )
        assert logs[0] == {
            "command": "node prepare",
            "event": "step started",
            "log_level": "info",
            "step": "wait",
            "number": 1,
            "total": 2,
        }
        assert [line["event"] for line in logs[1:]] == (["progress not shown at the Job"] if name else [])


async def test_unchanged_wait_is_logged_once_a_minute(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        progress = JobProgress(world.client, job="", command="node pre-drain", now=virtual_now)
        with capture_logs() as logs:
            for _ in range(30):
                progress.waiting("volumes", "volume a is degraded")
                await asyncio.sleep(5)
            progress.waiting("volumes", "volume b is degraded")
        assert [line["missing"] for line in logs] == ["volume a is degraded"] * 3 + ["volume b is degraded"]


@pytest.mark.parametrize(("skipped", "event"), [(True, "step skipped, already done"), (False, "step done")])
async def test_end_of_a_step_is_logged(tmp_path: Path, skipped: bool, event: str) -> None:  # noqa: FBT001  # a row
    async with toolkit_world(tmp_path) as world:
        with capture_logs() as logs:
            JobProgress(world.client, job="", command="node pre-drain", now=virtual_now).ended(
                "volumes", skipped=skipped
            )
        assert logs[0]["event"] == event
