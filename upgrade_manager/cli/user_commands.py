"""Starts the commands for users, each with the libraries that it needs.

main.py calls it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from upgrade_manager.cli import lean_imports, user_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.cli.user_options import UserOptions

#: By the options: the module of this package, and its function.
_COMMANDS = {
    user_options.BundleOptions: "bundle:bundle",
    user_options.CheckOptions: "check:check",
    user_options.CompletionOptions: "completion:completion",
    user_options.ContinueOptions: "hold:resume",
    user_options.HoldOptions: "hold:hold",
    user_options.PauseOptions: "pause:pause",
    user_options.PreflightOptions: "preflight:preflight",
    user_options.RemediesOptions: "remedies:remedies",
    user_options.ReportOptions: "report:report",
    user_options.RetryOptions: "retry:retry",
    user_options.StatusOptions: "status:status",
    user_options.StepsOptions: "steps:steps",
    user_options.WaitOptions: "wait:wait",
}
#: Commands without a cluster.
_OFFLINE = (user_options.CompletionOptions, user_options.StepsOptions)
#: Commands that print tables, or the lines beside them.
_WITH_RICH = (user_options.StatusOptions, user_options.WaitOptions)


def run_for_user(options: UserOptions) -> int:
    """Run the command of these options and return its exit status."""
    if not isinstance(options, _OFFLINE):
        lean_imports.import_aiohttp_without_authorities()
    if isinstance(options, _WITH_RICH):
        lean_imports.allow_rich()
    module, function = _COMMANDS[type(options)].split(":")
    # Imported late, as in main.
    command = getattr(import_module(f"upgrade_manager.cli.{module}"), function)
    return cast("Callable[[UserOptions], int]", command)(options)
