"""The demo as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Console

from hack.control_plane.assets import find_assets
from hack.demo.breaks import BREAKS
from hack.demo.creation import break_cluster, create_plan, refusal
from hack.demo.disturbance import Disturbances
from hack.demo.follow import follow
from hack.demo.ports import reserved_ports
from hack.demo.processes import process_group
from hack.demo.programs import DemoError, start_cluster, start_manager
from hack.demo.registration import create_secret, register
from hack.demo.remedies import Kubectl
from upgrade_manager.display.model import PlanState
from upgrade_manager.display.screen import Lines, Terminal
from upgrade_manager.kube import objects, resources
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Invalid, KubeError
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.pager import Selection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from hack.demo.options import Options
    from hack.demo.processes import Child, ProcessGroup
    from hack.demo.programs import Programs
    from hack.fast_time import FastTime
    from upgrade_manager.display.model import View
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.objects import Object

#: Lines of a log that are shown after a failure.
LOG_LINES = 20


def run(options: Options) -> int:
    """Run the demo and return the exit status."""
    console = Console(highlight=False)
    screen: Screen = (
        Terminal(console) if console.is_terminal and not options.plain else Lines(_print, now=options.time.now)
    )
    try:
        # The runner handles SIGINT only in place of Python's own handler.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with asyncio.Runner() as runner:
            return runner.run(_demo(options, screen))
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except asyncio.CancelledError:
        status = 128 + signal.SIGTERM
    screen.show_message("\nStopped; all processes have ended.")
    return status


def _print(text: str) -> None:
    print(text, flush=True)


async def _demo(options: Options, screen: Screen) -> int:
    _stop_on(signal.SIGTERM, signal.SIGHUP)
    status = 1
    with _folder() as folder:
        try:
            async with process_group(folder) as children:
                status = await _run(options, screen, children)
        except* (DemoError, KubeError) as errors:
            for error in errors.exceptions:
                _report(screen, error)
        except* BrokenPipeError:
            # The reader of a pipe, such as head, has ended.
            status = 128 + signal.SIGPIPE
            _discard_output()
    return status


def _discard_output() -> None:
    """Send what is still buffered nowhere: Python would report that it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop_on(*numbers: signal.Signals) -> None:
    """End the demo on a signal as on Ctrl-C."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    if task is not None:
        for number in numbers:
            loop.add_signal_handler(number, task.cancel)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="upgrade-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(options: Options, screen: Screen, children: ProcessGroup) -> int:
    plan_manifest = manifest(options)
    screen.show_message(f"Starting a simulated Harvester cluster ({options.scenario}) and the upgrade manager …")
    kubeconfig = children.folder / "kubeconfig"
    with reserved_ports() as ports:
        cluster, repo = await start_cluster(options, children, kubeconfig=kubeconfig, ports=ports)
        async with _client(kubeconfig) as client:
            # Before the manager starts, so that the first review of the webhook sees it.
            broken = await break_cluster(client, [name for name in options.breaks if name in BREAKS], screen)
            await create_secret(client)
            programs = await start_manager(
                cluster, children, kubeconfig=kubeconfig, repo=repo, ports=ports, time=options.time
            )
            await register(client, port=ports.webhook)
            plan = await create_plan(client, plan_manifest, broken, screen)
            screen.show_message(f"{clock(options.time)}\n{introduction(programs, plan, _kubectl(options, kubeconfig))}")
            view = await _watch(client, programs, screen, plan=plan, options=options)
        return await _finish(options, screen, programs, view)


async def _finish(options: Options, screen: Screen, programs: Programs, view: View | None) -> int:
    screen.show_message(summary(view, rate=options.time.rate))
    succeeded = view is not None and view.state is PlanState.SUCCEEDED
    if view is not None and not succeeded:
        screen.show_message(_log_tail(programs.manager))
    if options.keep:
        screen.show_message(_kept(options, programs.kubeconfig))
        await _keep(programs, screen)
    return 0 if succeeded else 1


@contextlib.asynccontextmanager
async def _client(kubeconfig: Path) -> AsyncIterator[Client]:
    connection = await load_config(environ={}, now=lambda: datetime.now(UTC), kubeconfig=str(kubeconfig))
    async with HttpTransport(connection) as transport:
        yield Client(transport, user_agent="demo", random=random.Random())


def manifest(options: Options) -> dict[str, Any]:
    """Return the plan to create. Raises DemoError when the file has none."""
    if options.plan_file is not None:
        return _read(options.plan_file)
    spec = {"image": options.image} if options.image else {"version": "v1.8.0"}
    kind = resources.UPGRADE_PLANS
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "demo"}, "spec": spec}


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DemoError(f"cannot read the plan in {path}: {error}") from error
    if not isinstance(found, dict) or found.get("kind") != resources.UPGRADE_PLANS.kind:
        raise DemoError(f"{path} is not an UpgradePlan")
    return found


def clock(time: FastTime) -> str:
    """Return how the times that are shown relate to those of the user."""
    if time.rate == 1:
        return "Clock: the real one; what takes hours on real machines takes seconds."
    return f"Clock: 1 s is {time.rate:g} s in the cluster, where it is {time.now():%H:%M:%S}; all times are its own."


def introduction(programs: Programs, plan: Object, kubectl: tuple[str, str]) -> str:
    """Return what runs and the commands to try."""
    line, hint = kubectl
    return "\n".join(
        [
            f"kubeconfig: {programs.kubeconfig}",
            f"Try in another terminal{hint}:",
            f"  {line} get up",
            f"  {line} describe up/{objects.name(plan)}",
            f"  {line} explain upgradeplans.spec",
            f"  kill -9 {programs.manager.process.pid}   # the manager: it is restarted and continues",
            "",
        ]
    )


def _kubectl(options: Options, kubeconfig: Path) -> tuple[str, str]:
    """Return kubectl with the kubeconfig, and a hint when there is no kubectl."""
    program, hint = kubectl_command(options.api)
    return f"{program} --kubeconfig {shlex.quote(str(kubeconfig))}", hint


def kubectl_command(api: str) -> tuple[str, str]:
    """Return the user's kubectl command, and a hint when there is none.

    The real control plane has its own. `make` adds .venv/bin to the demo's PATH, not to the user's.
    """
    if api == "real":
        return shlex.quote(str(find_assets(os.environ).folder / "kubectl")), ""
    found = shutil.which("kubectl")
    if found is None:
        return "kubectl", " (kubectl not found; `make kubectl` installs it into .venv/bin)"
    own = str(Path(sys.executable).with_name("kubectl"))
    return (shlex.quote(own) if found == own else "kubectl"), ""


async def _watch(client: Client, programs: Programs, screen: Screen, *, plan: Object, options: Options) -> View | None:
    plans = Informer(client, Selection(resource=resources.UPGRADE_PLANS), random=random.Random())
    events = Informer(client, Selection(resource=resources.EVENTS, namespace="default"), random=random.Random())
    async with asyncio.TaskGroup() as group:
        watches = [group.create_task(informer.run()) for informer in (plans, events)]
        await asyncio.gather(plans.wait_for_sync(), events.wait_for_sync())
        with screen:
            view = await follow(
                programs,
                screen,
                Disturbances.of(
                    options.disturbances,
                    client=client,
                    screen=screen,
                    hold=options.hold,
                    rate=options.time.rate,
                    kubectl=Kubectl.of(programs.kubeconfig),
                ),
                plan=plan,
                now=options.time.now,
                plans=plans,
                events=events,
                within=options.timeout,
            )
        for watch in watches:
            watch.cancel()
    return view


def summary(view: View | None, *, rate: float) -> str:
    """Return the outcome as a sentence; without a view the plan was deleted."""
    if view is None:
        return "\nDeleted: the upgrade ended with its UpgradePlan."
    if view.state is PlanState.SUCCEEDED:
        here = "" if rate == 1 else f", {view.elapsed_seconds / rate:.0f} s here"
        return f"\nSucceeded: {view.route} in {view.elapsed_seconds:.0f} s{here}."
    return f"\n{view.state}: {view.cause}"


def _kept(options: Options, kubeconfig: Path) -> str:
    """Return what still runs, and the commands to look at it."""
    line, hint = _kubectl(options, kubeconfig)
    program = shlex.quote(str(Path(sys.executable).with_name("upgrade-manager")))
    return "\n".join(
        [
            f"The cluster and the manager keep running until Ctrl-C. Look around{hint}:",
            f"  {line} get up,nodes",
            f"  {program} status --kubeconfig {shlex.quote(str(kubeconfig))}",
        ]
    )


async def _keep(programs: Programs, screen: Screen) -> None:
    while True:
        if restarted := await programs.check():
            screen.show_message(restarted)
        await asyncio.sleep(1)


def _report(screen: Screen, error: Exception) -> None:
    screen.show_message(f"\nThe demo failed: {refusal(error) if isinstance(error, Invalid) else error}")
    child = error.child if isinstance(error, DemoError) else None
    if child is not None:
        screen.show_message(_log_tail(child))


def _log_tail(child: Child) -> str:
    return f"The end of the {child.name}'s log:\n{child.tail(LOG_LINES)}"
