"""Containers of the toolkit as tasks of this process: our commands, each on the tree of its node's host."""

from __future__ import annotations

import asyncio
import contextlib
import io
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hack.actors.container_work import Work, duration_of, env_of, program_of, work_of
from hack.actors.toolkit import Ended
from hack.host.helm import SimulatedHelm
from hack.host.host_changes import HostChanges
from hack.host.iso import large_files, root_file_system
from hack.host.machines import Machines
from hack.host.repository_files import SimulatedRepositoryFiles
from hack.virtual_time import runs_inline
from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.cli.options import command_line
from upgrade_manager.cli.toolkit import USER_AGENT, job_name
from upgrade_manager.cli.toolkit_options import toolkit_options
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.resources.toolkit import PLAN_NAME
from upgrade_manager.toolkit.charts.chart_files import ChartFiles
from upgrade_manager.toolkit.charts.helm import Helm
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.iso.migration import Migration
from upgrade_manager.toolkit.iso.release_files import ReleaseFiles
from upgrade_manager.toolkit.run.catalogue import steps_of
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.errors import ToolkitError
from upgrade_manager.toolkit.run.plan_events import PlanEvents
from upgrade_manager.toolkit.run.progress import JobProgress
from upgrade_manager.toolkit.run.steps import run_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hack.actors.context import ActorContext
    from hack.actors.toolkit import Progress, Toolkit
    from upgrade_manager.cli.toolkit_options import ToolkitOptions
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.steps import Step

#: The arguments of our command line for the programs in a Pod's command line.
_PROGRAMS = {"upgrade_node.sh": ("node",), "upgrade_manifests.sh": ("cluster-upgrade",), "upgrade-toolkit": ()}
#: Work that our commands do always, and where Rancher's and Harvester's services exist; the rest is simulated.
_ALWAYS = frozenset({Work.SURVEY, Work.PRE_DRAIN, Work.POST_DRAIN, Work.SINGLE_NODE, Work.RESTORE_VM})
_WITH_SERVICES = frozenset({*_ALWAYS, Work.CHECKSUMS, Work.PREPARE, Work.MANIFESTS})
#: Seconds between two reads of a task, before the time scale, and the least.
_POLL, _LEAST_POLL = 0.5, 0.05
#: Factor on the seconds between two checks of a step: the simulated cluster is faster than a real one.
_PACE = 0.1
#: Exit status of a usage error.
_USAGE = 2
#: Building the parser takes longer than a command.
_command_line = cache(command_line)


class JobCommands:
    """Implements Containers: runs our commands in the Pods of Jobs; other containers are simulated."""

    def __init__(self, context: ActorContext, simulated: Toolkit) -> None:
        self._context = context
        self._simulated = simulated
        self._client = context.client(USER_AGENT)
        #: By the Pod's uid.
        self._tasks: dict[str, asyncio.Task[Ended]] = {}
        #: The uids of Pods that upgrade the cluster, once they have begun.
        self._seen: set[str] = set()
        #: Node names of all tasks that run, also of deleted Pods.
        self._running: dict[asyncio.Task[Ended], str] = {}
        self._machines = Machines(context.hosts)
        self._changes = HostChanges(context.hosts, self._machines)
        scenario, files = context.scenario, simulated.repository.files
        self._work = _WITH_SERVICES if scenario.services else _ALWAYS
        files |= large_files(scenario, files) if scenario.services else root_file_system(scenario)
        context.hosts.subscribe(self._host_changed)

    async def look(self, pod: Object) -> Progress:
        """See Containers."""
        work, node = work_of(pod), objects.spec(pod)["nodeName"]
        if work is Work.MANIFESTS and objects.uid(pod) not in self._seen:
            self._seen.add(objects.uid(pod))
            if not await self._is_own(env_of(pod).get(PLAN_NAME, "")):
                self._changes.hold_all()
        progress = await self._look(pod)
        if isinstance(progress, Ended) and not progress.code:
            if work.is_host_script:
                self._changes.run(work, node)
            elif work is Work.MANIFESTS:
                self._changes.rancher_upgraded()
        return progress

    async def _look(self, pod: Object) -> Progress:
        uid = objects.uid(pod)
        if uid not in self._tasks:
            program, *arguments = program_of(pod) or [""]
            if program not in _PROGRAMS or self._simulated.fault_of(pod) is not None:
                return await self._simulated.look(pod)
            try:
                options = _parsed((*_PROGRAMS[program], *arguments), env_of(pod))
            except _UsageError as error:
                return Ended(_USAGE, str(error))
            if work_of(pod) not in self._work:
                return await self._simulated.look(pod)
            self._start(pod, options)
        task = self._tasks[uid]
        if task.cancelled():
            return None
        return task.result() if task.done() else max(_LEAST_POLL, _POLL * self._context.scale)

    def forget(self, pod: Object) -> None:
        """See Containers."""
        task = self._tasks.pop(objects.uid(pod), None)
        if task is not None:
            # As after SIGTERM, it runs the steps that run always.
            task.cancel()
        self._simulated.forget(pod)

    async def stop(self) -> None:
        """See Containers."""
        tasks = [*self._running]
        for task in tasks:
            _kill(task)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._machines.close()

    def _start(self, pod: Object, options: ToolkitOptions) -> None:
        node = objects.spec(pod)["nodeName"]
        task = asyncio.create_task(self._run(pod, options, node), name=f"command in {objects.name(pod)}")
        self._tasks[objects.uid(pod)] = task
        self._running[task] = node
        task.add_done_callback(self._running.pop)

    async def _run(self, pod: Object, options: ToolkitOptions, node: str) -> Ended:
        runs_inline.set(True)
        messages = [""]
        try:
            progress = JobProgress(
                self._client, job=await self._job(options), command=options.command, now=self._context.now
            )
            context = self._toolkit_context(options, pod, node, report=messages.append)
            await run_steps(self._steps(options.command), context, progress)
        except ToolkitError as error:
            return Ended(1, f"{options.command}: {error}")
        duration = duration_of(work_of(pod), self._context.scenario.durations)
        await asyncio.sleep(self._context.seconds(duration))
        self._machines.of(node).programs.state.arrange_reboot(self._context.hosts, pod, node=node)
        return Ended(message=messages[-1])

    async def _job(self, options: ToolkitOptions) -> str:
        """Return the Job that shows the progress, which Harvester's toolkit does not report."""
        return job_name(options) if await self._is_own(options.plan) else ""

    async def _is_own(self, plan: str) -> bool:
        """Report whether the plan runs our toolkit."""
        with contextlib.suppress(KubeError):
            found = await self._client.find(UPGRADE_PLANS, plan)
            return objects.text(found or {}, "status", "toolkitImage", "kind") == ToolkitKind.OWN
        return False

    def _steps(self, command: str) -> Sequence[Step]:
        scale = self._context.scale * _PACE
        return [
            replace(step, poll=max(_LEAST_POLL, step.poll * scale), lasts=step.lasts * scale)
            for step in steps_of(command)
        ]

    def _toolkit_context(
        self, options: ToolkitOptions, pod: Object, node: str, *, report: Callable[[str], None]
    ) -> ToolkitContext:
        machine, random = self._machines.of(node), Random(objects.uid(pod))
        files = SimulatedRepositoryFiles(self._simulated.repository, service=repo_service_name(options.plan))
        checksums, is_iso_mounted = Checksums.parse(options.checksums), work_of(pod) is Work.CHECKSUMS
        release = ReleaseFiles(files, checksums=checksums)
        return ToolkitContext(
            plan=options.plan,
            plan_uid=options.plan_uid,
            attempt=options.attempt,
            job=job_name(options),
            node=options.node,
            pod=options.pod,
            shutdown=options.shutdown,
            holds=options.holds,
            client=self._client,
            tree=machine.tree,
            programs=machine.programs,
            helm=Helm(SimulatedHelm(self._client), environment={}),
            folder=machine.tree.root / "tmp",
            now=self._context.now,
            random=random,
            files=files,
            checksums=checksums,
            iso=self._machines.mounted_iso(self._simulated.repository.files) if is_iso_mounted else Path(),
            report=report,
            release=release,
            charts=ChartFiles(self._client, release),
            migration=Migration(self._client, release, plan=options.plan, plan_uid=options.plan_uid),
            events=PlanEvents(
                self._client, options.plan, plan_uid=options.plan_uid, now=self._context.now, random=random
            ),
        )

    def _host_changed(self, node: str) -> None:
        """End the commands of a host that is off."""
        self._changes.host_changed(node)
        if not self._context.hosts.of(node).up:
            for task in [task for task, where in self._running.items() if where == node]:
                _kill(task)


def _kill(task: asyncio.Task[Ended]) -> None:
    """End the task as SIGKILL does: the steps that run always are cancelled, too."""
    if not task.done():
        task.cancel()
        asyncio.get_running_loop().call_soon(_kill, task)


class _UsageError(Exception):
    """The command line or the environment is not valid."""


def _parsed(arguments: Sequence[str], environ: Mapping[str, str]) -> ToolkitOptions:
    """Parse as the program does. Raises _UsageError."""
    parser, commands = _command_line()
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            flags = parser.parse_args(arguments)
            return toolkit_options(flags, environ, parser=commands[flags.command])
    except SystemExit as error:
        raise _UsageError(output.getvalue().strip()) from error
