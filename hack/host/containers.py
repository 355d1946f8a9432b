"""Containers of the toolkit as real processes: our commands, each on the tree of its node's host."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.actors.container_work import Work, env_of, program_of, work_of
from hack.actors.toolkit import Ended
from hack.host import iso, tree
from hack.host.state import HostState
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.toolkit import Progress, Toolkit
    from upgrade_manager.kube.objects import Object

ROOT = Path(__file__).parents[2]
#: Seconds between polls of a process.
_POLL = 0.1
#: Names in a Pod's command line, and the functions that they start.
_PROGRAMS = {
    "upgrade_node.sh": "upgrade_node",
    "upgrade_manifests.sh": "upgrade_manifests",
    "upgrade-toolkit": "main",
}
#: Work that runs as a process; the rest is simulated.
_REAL = frozenset(
    {
        Work.SURVEY,
        Work.CHECKSUMS,
        Work.PREPARE,
        Work.PRE_DRAIN,
        Work.POST_DRAIN,
        Work.SINGLE_NODE,
        Work.RESTORE_VM,
    }
)
_PROGRAM = f"""#!/bin/sh
PYTHONPATH='{ROOT}' exec '{sys.executable}' -m hack.host.{{module}} "$@"
"""
#: Programs that come first on the PATH, and the modules of hack.host that simulate them.
_SIMULATED = {"chroot": "chroot", "helm": "helm_program"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """The common settings of all containers' processes."""

    #: The trees, states and logs of all hosts.
    folder: Path
    kubeconfig: Path
    #: `{plan}` stands for the plan's name.
    repo_url: str


class ProcessContainers:
    """Runs the commands of node and cluster Jobs as processes; other containers are simulated."""

    def __init__(self, settings: ContainerSettings, context: ActorContext, simulated: Toolkit) -> None:
        self._settings = settings
        self._context = context
        self._simulated = simulated
        #: By the Pod's uid.
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        #: Nodes by the Pod's uid.
        self._nodes: dict[str, str] = {}
        self._boots: dict[str, int] = {}
        self._bin = settings.folder / "bin"
        self._iso = settings.folder / "iso"
        self._bin.mkdir(parents=True, exist_ok=True)
        for name, module in _SIMULATED.items():
            (self._bin / name).write_text(_PROGRAM.format(module=module), encoding="utf-8")
            (self._bin / name).chmod(0o755)
        for name in context.scenario.nodes.names:
            self._host_changed(name)
        context.hosts.subscribe(self._host_changed)

    async def stop(self) -> None:
        """See Containers."""
        for uid, process in list(self._processes.items()):
            self._kill(uid)
            await process.wait()

    async def look(self, pod: Object) -> Progress:
        """See Containers."""
        work, node = work_of(pod), objects.spec(pod).get("nodeName") or ""
        scenario = self._context.scenario
        real = work in _REAL or (work is Work.MANIFESTS and scenario.services)
        if not real or self._simulated.fault_of(pod) is not None:
            return await self._simulated.look(pod)
        uid = objects.uid(pod)
        process = self._processes.get(uid)
        if process is None:
            self._processes[uid] = await self._start(pod, node)
            self._nodes[uid] = node
            return _POLL
        if process.returncode is None:
            return _POLL
        self._forget(uid)
        if process.returncode == 0:
            # If the command asked for it.
            HostState.load(self._state(node)).arrange_reboot(self._context.hosts, pod, node=node)
        return Ended(process.returncode % 256, self._message(pod))

    def forget(self, pod: Object) -> None:
        """See Containers."""
        self._forget(objects.uid(pod))
        self._simulated.forget(pod)

    async def _start(self, pod: Object, node: str) -> asyncio.subprocess.Process:
        command, *arguments = program_of(pod)
        function = _PROGRAMS[command]
        start = (
            "import sys; from hack.host import disk; disk.simulate(); "
            f"from upgrade_manager.cli.main import {function}; sys.exit({function}())"
        )
        log = self._settings.folder / "logs" / f"{objects.name(pod)}.log"
        log.parent.mkdir(exist_ok=True)
        self._folder(pod).mkdir(parents=True, exist_ok=True)
        if work_of(pod) is Work.CHECKSUMS:
            iso.write(self._iso, self._simulated.repository.files)
        with log.open("wb") as output:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                start,
                *arguments,
                cwd=self._folder(pod),
                env=self._environment(pod, node),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self, pod: Object, node: str) -> dict[str, str]:
        variables = env_of(pod)
        plan = variables.get("HARVESTER_UPGRADEPLAN_NAME", "")
        return {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self._folder(pod)),
            "TMPDIR": str(self._folder(pod)),
            "HOST_DIR": str(self._tree(node)),
            "KUBECONFIG": str(self._settings.kubeconfig),
            "UPGRADE_REPO_URL": f"{self._settings.repo_url.format(plan=plan)}/harvester-iso",
            "TERMINATION_LOG": str(self._termination_log(pod)),
            "UPGRADE_ISO_DIR": str(self._iso),
            **variables,
        }

    def _message(self, pod: Object) -> str:
        path = self._termination_log(pod)
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""

    def _host_changed(self, node: str) -> None:
        """Create the tree of a new host, end the processes of one that is off, and boot one that was off."""
        host = self._context.hosts.of(node)
        if not host.up:
            for uid in [uid for uid, name in self._nodes.items() if name == node]:
                self._kill(uid)
        elif self._boots.get(node) != host.boots:
            if host.boots:
                state = HostState.load(self._state(node))
                tree.boot(self._tree(node), os_image=host.os_image, mounts=state.mounts)
                state.boot()
                state.save(self._state(node))
            else:
                tree.create(self._tree(node), os_image=host.os_image)
            self._boots[node] = host.boots

    def _tree(self, node: str) -> Path:
        return self._settings.folder / node / "host"

    def _state(self, node: str) -> Path:
        return self._settings.folder / node / "state.json"

    def _folder(self, pod: Object) -> Path:
        """Return where a container keeps files, which are lost with the Pod in a cluster."""
        return self._settings.folder / "pods" / objects.name(pod)

    def _termination_log(self, pod: Object) -> Path:
        return self._settings.folder / "logs" / f"{objects.name(pod)}.message"

    def _forget(self, uid: str) -> None:
        self._kill(uid)
        self._processes.pop(uid, None)
        self._nodes.pop(uid, None)

    def _kill(self, uid: str) -> None:
        process = self._processes.get(uid)
        if process is not None and process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
