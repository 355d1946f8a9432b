"""Pods of one image as processes in its root file system: a kubelet's container runtime, in part."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from hack.actors.container_work import container_of, env_of
from hack.actors.servers import Serving, SimulatedServers
from hack.actors.toolkit import Ended
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hack.actors.context import ActorContext
    from hack.actors.kubelet import Containers
    from hack.actors.toolkit import Progress
    from hack.host.image import Image
    from hack.host.pod_network import PodNetwork
    from hack.host.pod_volumes import PodVolumes
    from upgrade_manager.kube.objects import Object

SANDBOX = Path(__file__).with_name("sandbox.sh")
#: Seconds between polls of a process, and for a probe's response.
_POLL = 0.1
_PROBE_TIMEOUT = 1.0
_GRACE = 30.0
_FOLDER, _FILE = 0o755, 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The common settings of all containers."""

    image: Image
    #: The image's name in Pods, without registry and tag.
    name: str
    network: PodNetwork
    volumes: PodVolumes
    #: Bound over /etc/hosts: the names of Services.
    hosts_file: Path
    #: Of the output of all containers.
    logs: Path
    #: Added to every container: the API server's address.
    environment: Mapping[str, str]


@dataclass(slots=True)
class _Container:
    process: asyncio.subprocess.Process
    #: Of its first process, on this machine.
    pid: int
    #: Loop time of the deletion, and the signals that were sent.
    deleted: float | None = None
    sent: set[signal.Signals] = field(default_factory=set)


class PodProcesses:
    """Runs the Pods of the image; other Pods are simulated."""

    def __init__(self, runtime: Runtime, context: ActorContext) -> None:
        self._runtime = runtime
        self._context = context
        self._simulated = SimulatedServers(context)
        self._containers: dict[str, _Container] = {}
        #: Nodes by the Pod's uid.
        self._nodes: dict[str, str] = {}
        context.hosts.subscribe(self._host_changed)

    def pid(self, pod: Object) -> int:
        """Return the process of a running Pod on this machine. Raises KeyError."""
        return self._containers[objects.uid(pod)].pid

    def owns(self, pod: Object) -> bool:
        """Report whether the Pod's container is of the image."""
        image = str(container_of(pod).get("image") or "")
        return image.rpartition("/")[2].partition(":")[0] == self._runtime.name

    async def close(self) -> None:
        """Kill all processes."""
        for uid in [*self._containers]:
            self._kill(uid)
            await self._containers[uid].process.wait()

    async def look(self, pod: Object) -> Serving:
        """See Servers."""
        if not self.owns(pod):
            return await self._simulated.look(pod)
        found = self._containers.get(objects.uid(pod))
        if found is None or found.process.returncode is not None:
            await self._start(pod)
            return Serving(is_ready=False, restarted=found is not None, again=_POLL)
        return Serving(is_ready=await self._is_ready(pod), again=_POLL)

    async def exit_of(self, pod: Object) -> Progress:
        """Return the exit of a container that runs to completion, which is started first."""
        found = self._containers.get(objects.uid(pod))
        if found is None:
            await self._start(pod)
            return _POLL
        code = found.process.returncode
        return _POLL if code is None else Ended(code % 256)

    async def stop(self, pod: Object) -> float:
        """See Servers: preStop, SIGTERM, and SIGKILL after the grace period."""
        found = self._containers.get(objects.uid(pod))
        if found is None:
            return await self._simulated.stop(pod)
        if found.process.returncode is not None:
            return 0.0
        now = asyncio.get_running_loop().time()
        found.deleted = now if found.deleted is None else found.deleted
        spec = objects.spec(pod)
        self._signal(found, signal.SIGTERM, due=found.deleted + _pre_stop(pod))
        self._signal(found, signal.SIGKILL, due=found.deleted + (spec.get("terminationGracePeriodSeconds") or _GRACE))
        return _POLL

    def forget(self, pod: Object) -> None:
        """See Servers."""
        self._simulated.forget(pod)
        uid = objects.uid(pod)
        self._kill(uid)
        self._containers.pop(uid, None)
        self._nodes.pop(uid, None)
        self._runtime.network.detach(uid)

    async def _start(self, pod: Object) -> None:
        runtime, uid = self._runtime, objects.uid(pod)
        user, group = self._user(pod)
        namespace = runtime.network.attach(uid, objects.status(pod)["podIP"])
        mounts = [*await runtime.volumes.mounts(pod, user=user, group=group), (runtime.hosts_file, "/etc/hosts")]
        binds = [f"{source}:{self._mount_point(source, target)}" for source, target in mounts]
        with (runtime.logs / f"{objects.name(pod)}.log").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *("nsenter", f"--net=/run/netns/{namespace}"),
                *("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", str(SANDBOX)),
                *(str(runtime.image.root), objects.name(pod), str(user), str(group), *binds, "--"),
                *runtime.image.argv(container_of(pod)),
                env=runtime.image.environment | dict(runtime.environment) | env_of(pod),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
            )
        self._containers[uid] = _Container(process, await _first_child(process))
        self._nodes[uid] = objects.spec(pod)["nodeName"]

    def _user(self, pod: Object) -> tuple[int, int]:
        context = (objects.spec(pod).get("securityContext") or {}) | (container_of(pod).get("securityContext") or {})
        return context.get("runAsUser", self._runtime.image.user), context.get("runAsGroup", self._runtime.image.group)

    def _mount_point(self, source: Path, target: str) -> str:
        """Return the path in the root file system at which a volume is mounted; it is created, as by a runtime."""
        inside = self._runtime.image.inside(target)
        path = self._runtime.image.root / inside.lstrip("/")
        if source.is_dir():
            path.mkdir(_FOLDER, parents=True, exist_ok=True)
        else:
            path.touch(_FILE)
        return inside

    async def _is_ready(self, pod: Object) -> bool:
        get = _probe(pod)
        url = f"http://{objects.status(pod)['podIP']}:{get['port']}{get['path']}"
        timeout = aiohttp.ClientTimeout(total=_PROBE_TIMEOUT)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
                return response.ok
        except (TimeoutError, aiohttp.ClientError):
            return False

    def _host_changed(self, node: str) -> None:
        """End the processes of a host that is off."""
        if not self._context.hosts.of(node).up:
            for uid in [uid for uid, name in self._nodes.items() if name == node]:
                self._kill(uid)

    def _signal(self, container: _Container, number: signal.Signals, *, due: float) -> None:
        if number not in container.sent and asyncio.get_running_loop().time() >= due:
            container.sent.add(number)
            # It may have ended a moment ago.
            with contextlib.suppress(ProcessLookupError):
                os.kill(container.pid, number)

    def _kill(self, uid: str) -> None:
        found = self._containers.get(uid)
        if found is not None and found.process.returncode is None:
            found.process.kill()


class ImageContainers:
    """Runs Pods of the image to completion; the containers of other Pods are `others`."""

    def __init__(self, processes: Callable[[], PodProcesses], others: Containers) -> None:
        self._processes = processes
        self._others = others

    async def look(self, pod: Object) -> Progress:
        """See Containers."""
        processes = self._processes()
        return await (processes.exit_of(pod) if processes.owns(pod) else self._others.look(pod))

    def forget(self, pod: Object) -> None:
        """See Containers."""
        self._others.forget(pod)

    async def stop(self) -> None:
        """See Containers."""
        await self._others.stop()


async def _first_child(process: asyncio.subprocess.Process) -> int:
    """Return the process that unshare forks: PID 1 of the container."""
    while process.returncode is None:
        # nsenter and unshare replace each other in one process.
        pids = _children(process.pid)
        if pids:
            return pids[0]
        await asyncio.sleep(0.01)
    raise RuntimeError(f"the sandbox of a container ended with status {process.returncode}")


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _pre_stop(pod: Object) -> float:
    hook = (container_of(pod).get("lifecycle") or {}).get("preStop") or {}
    return float((hook.get("sleep") or {}).get("seconds") or 0)


def _probe(pod: Object) -> dict[str, Any]:
    """Return path and port number of the readiness probe."""
    container = container_of(pod)
    get = container["readinessProbe"]["httpGet"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    return {"path": get["path"], "port": ports.get(get["port"], get["port"])}
