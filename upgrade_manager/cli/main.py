"""The entry points of the distribution: they parse the options and import the command's module late.

`python -m upgrade_manager` (__main__.py) starts the same.
"""

from __future__ import annotations

import os
import signal
import sys

#: Commands that run until they are stopped.
_SERVICES = (["run"], ["webhook"])


def main() -> int:
    """Run the command `upgrade-manager` and return its exit status."""
    from upgrade_manager.cli.output import fail, finish  # noqa: PLC0415  # as the others

    try:
        status = _run(sys.argv[1:])
    except SystemExit as ended:
        # Such as --help.
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise SystemExit(finish(code)) from None
    except OSError as error:
        # Of a command without a cluster; the others report theirs.
        return fail(error)
    return finish(status)


def upgrade_node() -> int:
    """Run `upgrade_node.sh TYPE`, the name under which Jobs and Plans start `upgrade-manager node TYPE`."""
    return _run(["node", *sys.argv[1:]])


def upgrade_manifests() -> int:
    """Run `upgrade_manifests.sh`, the name under which a Job starts `upgrade-manager cluster-upgrade`."""
    return _run(["cluster-upgrade", *sys.argv[1:]])


def complete_for_kubectl() -> int:
    """Run `kubectl_complete-upgradeplan WORD…`, which kubectl starts when a user presses Tab."""
    from upgrade_manager.cli.completion import complete_plugin  # noqa: PLC0415  # only here

    return complete_plugin(sys.argv[1:])


def _run(arguments: list[str]) -> int:
    # First of all: imports take most of a second, and a process with PID 1 ignores signals without a handler.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop if arguments[:1] in _SERVICES else _interrupt)
    from upgrade_manager.cli import gc_tuning, lean_imports  # noqa: PLC0415  # after that

    if arguments[:1] in _SERVICES:
        # Before the imports, too: collections took a tenth of their processor time.
        gc_tuning.collect_less_often()
    # Before the options, which import structlog.
    lean_imports.skip_optional_parts()
    if "_ARGCOMPLETE" in os.environ:
        from upgrade_manager.cli.completion import complete  # noqa: PLC0415  # only for a shell that completes

        complete()
    from upgrade_manager.cli.options import RunOptions, parse_options  # noqa: PLC0415
    from upgrade_manager.cli.toolkit_options import ToolkitOptions  # noqa: PLC0415

    options = parse_options(arguments, os.environ)
    # Imported late, so that `--help` and usage errors are fast.
    if isinstance(options, RunOptions):
        lean_imports.import_aiohttp_without_authorities()
        from upgrade_manager.cli.run import run  # noqa: PLC0415

        return run(options)
    if isinstance(options, ToolkitOptions):
        from upgrade_manager.cli.toolkit import run_toolkit  # noqa: PLC0415

        return run_toolkit(options)
    from upgrade_manager.cli.user_commands import run_for_user  # noqa: PLC0415

    return run_for_user(options)


def _stop(*_: object) -> None:
    """End the process before the manager runs: nothing has to be stopped."""
    sys.exit(0)


def _interrupt(number: int, _: object) -> None:
    """End a command that a signal interrupts: a Job must not take it for complete."""
    sys.exit(128 + number)
