"""The command `upgrade-manager status`: how an upgrade proceeds, once or until it has ended."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from upgrade_manager.api.keys import KIND
from upgrade_manager.cli.status_watch import PlanWatch, events_of
from upgrade_manager.display.document import to_json, to_yaml
from upgrade_manager.display.screen import Documents, Report, Terminal
from upgrade_manager.display.view import state_of_plan
from upgrade_manager.kube import fields
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.config import ConfigError
from upgrade_manager.kube.errors import KubeError, NotFound
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.runtime.logging import LogFormat, configure_logging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.cli.options import StatusOptions
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.objects import Object

USER_AGENT = "upgrade-manager-status"
#: Seconds for each of the first responses: a user waits for them.
RESPONSE_TIMEOUT = 15.0
#: Columns of tables in a file or a pipe.
FILE_WIDTH = 200


class StatusError(Exception):
    """The status cannot be shown; the text is for the user."""


def status(options: StatusOptions) -> int:
    """Print the status of the plan and return the exit status."""
    # Until here these signals end the process silently.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    configure_logging(level="error", log_format=LogFormat.CONSOLE, stream=sys.stderr, now=SystemClock().now)
    try:
        with asyncio.Runner() as runner:
            runner.run(_status(options))
    except (StatusError, ConfigError) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return 0 if options.watch else 128 + signal.SIGINT
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except Exception as error:  # noqa: BLE001  # such as a server's URL with an impossible port
        _say(f"status failed: {type(error).__name__}: {error}")
        return 1
    return 0


async def _status(options: StatusOptions) -> None:
    config = await load_config(environ=os.environ, now=SystemClock().now, kubeconfig=options.kubeconfig)
    async with HttpTransport(config, on_response=lambda *_: None) as transport:
        client = Client(transport, user_agent=USER_AGENT, random=random.Random())
        try:
            plan = choose(await read_plans(client, options.plan), options.plan)
        except StatusError as error:
            raise StatusError(f"API server {config.server}: {error}") from error
        events = await _read_events(client, plan)
        screen = screen_of(options.output, watch=options.watch)
        watch = PlanWatch(client, plan, events, now=SystemClock().now, random=random.Random())
        if not options.watch:
            screen.show(watch.view())
            return
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # in a coroutine
        # So that the terminal is restored.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with screen:
            is_left = await watch.follow(screen)
        if not is_left:
            raise StatusError(f"{KIND} {fields.name(plan)} was deleted")


async def read_plans(client: Client, name: str) -> list[Object]:
    """Return all plans, or the one of that name. Raises StatusError."""
    selector = f"metadata.name={name}" if name else ""
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            return (await client.list(UPGRADE_PLANS, field_selector=selector)).items
    except NotFound as error:
        raise StatusError(f"{KIND} CRD not found. Run kubectl apply -k deploy/crds") from error
    except TimeoutError as error:
        raise StatusError(f"no response within {RESPONSE_TIMEOUT:.0f} s") from error
    except KubeError as error:
        raise StatusError(f"{error}. Check the kubeconfig") from error


def choose(plans: Sequence[Object], name: str) -> Object:
    """Return the newest plan that has not ended, else the newest. Raises StatusError without a plan."""
    if not plans:
        named = f"{KIND} {name} not found. Run kubectl get upgradeplans" if name else f"no {KIND} found"
        raise StatusError(named)
    return max(plans, key=_rank)


def _rank(plan: Object) -> tuple[bool, str, str]:
    created = fields.text(plan, "metadata", "creationTimestamp")
    return not state_of_plan(plan).is_end, created, fields.name(plan)


async def _read_events(client: Client, plan: Object) -> list[Object]:
    """Return the plan's events; none if the user may not read them."""
    selection = events_of(plan)
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            listed = await client.list(
                selection.resource, namespace=selection.namespace, field_selector=selection.field_selector
            )
    except (KubeError, TimeoutError) as error:
        _say(f"warnings are not shown: {str(error) or 'no response'}")
        return []
    return listed.items


def screen_of(output: str, *, watch: bool) -> Screen:
    """Return the screen for standard output."""
    console = Console(highlight=False, emoji=False, markup=False)
    if output != "table":
        form = to_json if output == "json" else to_yaml
        return Documents(partial(console.out, highlight=False, end=""), form=form, say=_say)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = FILE_WIDTH
    redraws = watch and console.is_terminal and not console.is_dumb_terminal
    return Terminal(console) if redraws else Report(console)


def _say(text: str) -> None:
    sys.stderr.write(f"upgrade-manager: {text}\n")
