"""Runs a command inside a Job.

main.py starts it; toolkit/run/catalogue.py has the commands.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from upgrade_manager import __version__
from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component, JobType
from upgrade_manager.api.names import component_name, repo_service_name
from upgrade_manager.api.survey import failed_survey
from upgrade_manager.cli.toolkit_options import SURVEY
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import DatedTransport, ServerClock, SystemClock
from upgrade_manager.kube.config import ConfigError
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.runtime.logging import LogFormat, configure_logging
from upgrade_manager.runtime.signals import stop_on_signals
from upgrade_manager.toolkit.charts.chart_files import ChartFiles
from upgrade_manager.toolkit.charts.helm import Helm
from upgrade_manager.toolkit.host.host_programs import ChrootPrograms, PodPrograms
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.iso.migration import Migration
from upgrade_manager.toolkit.iso.release_files import ReleaseFiles
from upgrade_manager.toolkit.iso.repository_files import HttpRepositoryFiles
from upgrade_manager.toolkit.run.catalogue import steps_of
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.errors import StepFailed, ToolkitError
from upgrade_manager.toolkit.run.plan_events import PlanEvents
from upgrade_manager.toolkit.run.progress import JobProgress
from upgrade_manager.toolkit.run.steps import run_steps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.cli.toolkit_options import ToolkitOptions

USER_AGENT = f"harvester-upgrade-toolkit/{__version__}"
#: Characters of the termination message; Kubernetes keeps 4096 bytes.
_MAX_MESSAGE = 1000
#: Variables by which helm finds the API server.
_API_SERVER = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
#: Exit status after SIGTERM or SIGINT, other than 0: a Job must not take the command for complete.
_INTERRUPTED = 143

_log = structlog.get_logger(__name__)


def run_toolkit(options: ToolkitOptions) -> int:
    """Run the command and return its exit status; the last line of a failure is the Pod's termination message."""
    configure_logging(level="info", log_format=LogFormat.AUTO, stream=sys.stderr, now=SystemClock().now)
    try:
        asyncio.run(_run(options))
    except (ToolkitError, ConfigError) as error:
        return _fail(options, str(error))
    except asyncio.CancelledError:
        return _fail(options, "stopped by a signal", status=_INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # the process ends with one line
        _log.exception("command failed unexpectedly", command=options.command)
        return _fail(options, f"unexpected error: {type(error).__name__}: {error}")
    return 0


async def _run(options: ToolkitOptions) -> None:
    """Run the steps; a signal cancels them."""
    task = asyncio.current_task()
    if task is None:
        raise AssertionError("it runs as a task")

    def stop() -> None:
        task.cancel()

    with stop_on_signals(stop):
        await _run_steps(options)


async def _run_steps(options: ToolkitOptions) -> None:
    async with toolkit_context(options) as context:
        progress = JobProgress(context.client, job=context.job, command=options.command, now=context.now)
        await run_steps(steps_of(options.command), context, progress)


@asynccontextmanager
async def toolkit_context(options: ToolkitOptions) -> AsyncIterator[ToolkitContext]:
    """Connect to the API server and the upgrade repository. Raises ConfigError and BadEnvironment."""
    clock, dice, checksums = ServerClock(SystemClock()), random.Random(), Checksums.parse(options.checksums)
    config = await load_config(environ=os.environ, now=clock.now, kubeconfig=options.kubeconfig)
    base = options.repo_url or f"http://{repo_service_name(options.plan)}.{HARVESTER_SYSTEM}/harvester-iso"
    with tempfile.TemporaryDirectory(prefix="upgrade-toolkit-") as folder:
        async with (
            HttpTransport(config, on_response=lambda *_: None) as transport,
            HttpRepositoryFiles(base, user_agent=USER_AGENT) as files,
        ):
            client = Client(DatedTransport(transport, clock), user_agent=USER_AGENT, random=dice)
            root, release = Path(options.host_dir), ReleaseFiles(files, checksums=checksums)
            yield ToolkitContext(
                plan=options.plan,
                plan_uid=options.plan_uid,
                attempt=options.attempt,
                job=job_name(options),
                node=options.node,
                pod=options.pod,
                shutdown=options.shutdown,
                holds=options.holds,
                client=client,
                tree=HostTree(root),
                programs=ChrootPrograms(root),
                helm=Helm(PodPrograms(), environment=_helm_environment(options, folder)),
                folder=Path(folder),
                now=clock.now,
                random=dice,
                files=files,
                checksums=checksums,
                iso=Path(options.iso_dir),
                report=partial(_report, options),
                release=release,
                charts=ChartFiles(client, release),
                migration=Migration(client, release, plan=options.plan, plan_uid=options.plan_uid),
                events=PlanEvents(client, options.plan, plan_uid=options.plan_uid, now=clock.now, random=dice),
            )


def _helm_environment(options: ToolkitOptions, folder: str) -> dict[str, str]:
    """Return what helm needs: a place for its caches, and how this command itself reaches the API server."""
    kubeconfig = {"KUBECONFIG": options.kubeconfig} if options.kubeconfig else {}
    inherited = {name: os.environ[name] for name in _API_SERVER if name in os.environ}
    return {"HOME": folder, **inherited, **kubeconfig}


def job_name(options: ToolkitOptions) -> str:
    """Return the name of the Job that runs the command; empty for one of a SUC Plan, or without a Job."""
    if options.command == "cluster-upgrade":
        return component_name(options.plan, Component.CLUSTER_UPGRADE, attempt=options.attempt)
    if options.command == "node checksums":
        return component_name(options.plan, Component.CHECKSUMS, attempt=options.attempt)
    job_type = options.command.removeprefix("node ")
    if not options.plan or not options.node or job_type not in set(JobType):
        return ""
    return component_name(
        options.plan,
        Component.NODE_UPGRADE,
        job_type=JobType(job_type),
        node=options.node,
        attempt=options.attempt,
    )


def _report(options: ToolkitOptions, text: str) -> None:
    try:
        Path(options.termination_log).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StepFailed(f"the result cannot be written to {options.termination_log}: {error.strerror}") from error


def _fail(options: ToolkitOptions, cause: str, *, status: int = 1) -> int:
    line = " ".join(f"{options.command}: {cause}".split())[:_MAX_MESSAGE]
    sys.stderr.write(line + "\n")
    text = line + "\n"
    if options.command == SURVEY and status == 1:
        text, status = failed_survey(node=options.node, cause=line).encode(), 0
    try:
        Path(options.termination_log).write_text(text, encoding="utf-8")
    except OSError as error:
        _log.warning("termination message not written", file=options.termination_log, error=str(error))
    return status
