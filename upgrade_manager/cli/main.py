from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command `upgrade-manager` and return its exit status."""
    # First of all: imports take most of a second, and a process with PID 1 ignores signals without a handler.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    from upgrade_manager.cli.options import PreflightOptions, parse_options  # noqa: PLC0415  # after the handlers

    options = parse_options(sys.argv[1:], os.environ)
    _skip_optional_imports()
    # Imported late, so that `--help` and usage errors are fast.
    if isinstance(options, PreflightOptions):
        from upgrade_manager.cli.preflight import preflight  # noqa: PLC0415

        return preflight(options)
    from upgrade_manager.cli.run import run  # noqa: PLC0415

    return run(options)


def _stop(*_: object) -> None:
    """End the process before the manager runs: nothing has to be stopped."""
    sys.exit(0)


def _skip_optional_imports() -> None:
    """Keep libraries from importing what the manager does not use: 4 MB and 60 ms."""
    # structlog uses rich for tracebacks if it is installed.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # documented: an import now fails
    # pydantic searches all installed distributions for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
