"""The common part of the commands for users: signals, one-line errors, and a client for the kubeconfig's cluster.

preflight.py, status.py, wait.py, report.py and completion.py run in it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from upgrade_manager import __version__
from upgrade_manager.cli.api_server_check import RESPONSE_TIMEOUT, cause
from upgrade_manager.cli.output import accept_any_text, discard, finish
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import DatedTransport, ServerClock, SystemClock
from upgrade_manager.kube.config import ConfigError
from upgrade_manager.kube.errors import REFUSED, KubeError, Transient
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import Kubeconfig, load_config
from upgrade_manager.kube.warnings import WarnedTransport
from upgrade_manager.runtime.logging import LogFormat, configure_logging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from datetime import datetime

T = TypeVar("T")


class CommandError(Exception):
    """The command cannot do its work; the text is for the user."""

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(message)
        #: The exit status.
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The connection of one command."""

    client: Client
    #: The URL of the API server, for messages.
    server: str
    #: The API server's time of day: durations are right although this machine's clock is not.
    now: Callable[[], datetime]
    #: The context of the kubeconfig; empty for a Pod's service account.
    context: str = ""

    async def read(self, response: Awaitable[T]) -> T:
        """Wait for one of the first responses, as a user does. Raises CommandError."""
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                return await response
        except (KubeError, TimeoutError) as error:
            is_away = isinstance(error, Transient) and error.reason == REFUSED
            remedy = ". Check the server and the kubeconfig's context" if is_away else ""
            raise self.error(cause(error) + remedy) from error

    def error(self, reason: str) -> CommandError:
        """Return an error that names the server."""
        return CommandError(f"API server {self.server}: {reason}")


@asynccontextmanager
async def connected(
    *, command: str, kubeconfig: str, context: str, show_warning: Callable[[str], None] | None = None
) -> AsyncIterator[Session]:
    """Connect to the cluster; `show_warning` shows the API server's warnings. Raises ConfigError."""
    config = await load_config(environ=os.environ, now=SystemClock().now, kubeconfig=kubeconfig, context=context)
    async with HttpTransport(config, on_response=lambda *_: None) as transport:
        user_agent, clock = f"upgrade-manager-{command}/{__version__}", ServerClock(SystemClock())
        dated = DatedTransport(transport, clock)
        warned = dated if show_warning is None else WarnedTransport(dated, show_warning)
        client = Client(warned, user_agent=user_agent, random=random.Random())
        used = config.source.context if isinstance(config.source, Kubeconfig) else ""
        yield Session(client=client, server=config.server, now=clock.now, context=used)


def run_command(name: str, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a command to its end and return its exit status; `work` may read files before it returns the coroutine."""
    try:
        # Until here these signals end the process silently.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        configure_logging(level="error", log_format=LogFormat.CONSOLE, stream=sys.stderr, now=SystemClock().now)
        accept_any_text()
        with asyncio.Runner() as runner:
            status = runner.run(work())
    except (CommandError, ConfigError) as error:
        print_message(str(error))
        return error.status if isinstance(error, CommandError) else 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except BrokenPipeError:
        discard()
        return 1
    except Exception as error:  # noqa: BLE001  # such as a server's URL with an impossible port
        discard()
        print_message(f"{name} failed: {_reason(error)}")
        return 1
    return finish(status)


def _reason(error: Exception) -> str:
    """Return the reason of an error; one of a task stands in a group."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        # Standard output, or a file: the client has its own errors.
        return error.strerror
    return f"{type(error).__name__}: {error}"


def print_message(text: str) -> None:
    """Write a message for the user to standard error."""
    sys.stderr.write(f"upgrade-manager: {text}\n")
