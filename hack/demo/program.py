"""The demo from its first line to its exit status."""

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
from hack.demo.follow import follow
from hack.demo.processes import family
from hack.demo.screen import Lines, Terminal
from hack.demo.stage import DemoError, prepare
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects, resources
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.pager import Selection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from hack.demo.options import Options
    from hack.demo.processes import Child, Family
    from hack.demo.screen import Screen
    from hack.demo.stage import Stage
    from hack.demo.view import View
    from upgrade_manager.kube.objects import Object

#: Lines of a log that are shown when something went wrong.
TAIL = 20


def run(options: Options) -> int:
    """Show the demo and return the exit status of the process."""
    console = Console(highlight=False)
    screen: Screen = Terminal(console) if console.is_terminal and not options.plain else Lines(_print)
    try:
        with asyncio.Runner() as runner:
            return runner.run(_demo(options, screen))
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except asyncio.CancelledError:
        status = 128 + signal.SIGTERM
    screen.say("\nStopped; nothing is left running.")
    return status


def _print(text: str) -> None:
    print(text, flush=True)


async def _demo(options: Options, screen: Screen) -> int:
    _stop_on(signal.SIGTERM, signal.SIGHUP)
    status = 1
    with _folder() as folder:
        try:
            async with family(folder) as relatives:
                status = await _play(options, screen, relatives)
        except* (DemoError, KubeError) as errors:
            for error in errors.exceptions:
                _explain(screen, error)
    return status


def _stop_on(*numbers: signal.Signals) -> None:
    """Have a signal end the demo as Ctrl-C does."""
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


async def _play(options: Options, screen: Screen, relatives: Family) -> int:
    requested = manifest(options)
    screen.say(f"Starting a simulated Harvester cluster ({options.scenario}) and the upgrade manager …")
    stage = await prepare(options, relatives)
    async with _client(stage.kubeconfig) as client:
        plan = await client.create(resources.UPGRADE_PLANS, requested)
        screen.say(introduction(stage, plan, kubectl=own_kubectl(options.api)))
        view = await _watch(client, stage, screen, plan=plan, within=options.timeout)
    screen.say(verdict(view))
    is_well = view.outcome == SUCCEEDED
    if not is_well:
        screen.say(_excerpt(stage.manager))
    if options.keep:
        await _keep(stage, screen)
    return 0 if is_well else 1


@contextlib.asynccontextmanager
async def _client(kubeconfig: Path) -> AsyncIterator[Client]:
    connection = await load_config(environ={}, now=lambda: datetime.now(UTC), kubeconfig=str(kubeconfig))
    async with HttpTransport(connection) as transport:
        yield Client(transport, user_agent="demo", random=random.Random())


def manifest(options: Options) -> dict[str, Any]:
    """Build or read the plan that the demo applies; raises DemoError for a file that holds none."""
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
        raise DemoError(f"{path} holds no UpgradePlan")
    return found


def introduction(stage: Stage, plan: Object, *, kubectl: tuple[str, str]) -> str:
    """Say what runs and what can be tried while it does."""
    program, note = kubectl
    kubectl_line = f"  {program} --kubeconfig {shlex.quote(str(stage.kubeconfig))}"
    return "\n".join(
        [
            f"kubeconfig: {stage.kubeconfig}",
            f"Try in another terminal{note}:",
            f"{kubectl_line} get up",
            f"{kubectl_line} describe up/{objects.name(plan)}",
            f"{kubectl_line} explain upgradeplans.spec",
            f"  kill -9 {stage.manager.process.pid}   # the manager: it is started again and carries on",
            "",
        ]
    )


def own_kubectl(api: str) -> tuple[str, str]:
    """How users call kubectl, and a remark where they have none; make puts .venv/bin on our PATH, not on theirs.

    A real cluster brings its own along.
    """
    if api == "real":
        return shlex.quote(str(find_assets(os.environ).folder / "kubectl")), ""
    found = shutil.which("kubectl")
    if found is None:
        return "kubectl", " (no kubectl found; `make kubectl` puts one into .venv/bin)"
    own = str(Path(sys.executable).with_name("kubectl"))
    return (shlex.quote(own) if found == own else "kubectl"), ""


async def _watch(client: Client, stage: Stage, screen: Screen, *, plan: Object, within: float) -> View:
    plans = Informer(client, Selection(resource=resources.UPGRADE_PLANS), random=random.Random())
    events = Informer(client, Selection(resource=resources.EVENTS, namespace="default"), random=random.Random())
    async with asyncio.TaskGroup() as group:
        watches = [group.create_task(informer.run()) for informer in (plans, events)]
        await asyncio.gather(plans.wait_for_sync(), events.wait_for_sync())
        with screen:
            view = await follow(stage, screen, plan=plan, plans=plans, events=events, within=within)
        for watch in watches:
            watch.cancel()
    return view


def verdict(view: View) -> str:
    """Sum the run up in a sentence."""
    if view.outcome == SUCCEEDED:
        return f"\nSucceeded: {view.route} in {view.elapsed:.0f} s."
    return f"\n{view.outcome}: {view.cause}"


async def _keep(stage: Stage, screen: Screen) -> None:
    screen.say("The cluster and the manager go on until Ctrl-C.")
    while True:
        remark = await stage.check()
        if remark:
            screen.say(remark)
        await asyncio.sleep(1)


def _explain(screen: Screen, error: Exception) -> None:
    screen.say(f"\nThe demo failed: {error}")
    child = error.child if isinstance(error, DemoError) else None
    if child is not None:
        screen.say(_excerpt(child))


def _excerpt(child: Child) -> str:
    return f"The last lines of the {child.name}'s log:\n{child.tail(TAIL)}"
