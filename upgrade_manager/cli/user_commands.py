"""Starts the commands for users, each with the libraries that it needs.

main.py calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.cli import lean_imports
from upgrade_manager.cli.user_options import (
    CompletionOptions,
    PreflightOptions,
    StatusOptions,
    StepsOptions,
    WaitOptions,
)

if TYPE_CHECKING:
    from upgrade_manager.cli.user_options import UserOptions


def run_for_user(options: UserOptions) -> int:
    """Run the command of these options and return its exit status."""
    if isinstance(options, CompletionOptions):
        from upgrade_manager.cli.completion import completion  # noqa: PLC0415  # as in main

        return completion(options)
    if isinstance(options, StepsOptions):
        from upgrade_manager.cli.steps import steps  # noqa: PLC0415

        return steps(options)
    lean_imports.import_aiohttp_without_authorities()
    if isinstance(options, PreflightOptions):
        from upgrade_manager.cli.preflight import preflight  # noqa: PLC0415

        return preflight(options)
    if isinstance(options, StatusOptions):
        lean_imports.allow_rich()
        from upgrade_manager.cli.status import status  # noqa: PLC0415

        return status(options)
    if isinstance(options, WaitOptions):
        # Its lines are those of status.
        lean_imports.allow_rich()
        from upgrade_manager.cli.wait import wait  # noqa: PLC0415

        return wait(options)
    from upgrade_manager.cli.report import report  # noqa: PLC0415

    return report(options)
