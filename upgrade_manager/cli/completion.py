"""Completion of the command line in bash, zsh, fish, and of the plugin in kubectl's own completion.

main.py calls it for a shell or kubectl that completes, user_commands.py for the command that prints the script.
"""

from __future__ import annotations

import asyncio
import io
import os
import shlex
import sys
from typing import TYPE_CHECKING

import argcomplete
from argcomplete.completers import DirectoriesCompleter, FilesCompleter, SuppressCompleter
from argcomplete.shell_integration import shellcode

from upgrade_manager.cli.options import command_line
from upgrade_manager.kube import objects
from upgrade_manager.kube.kubeconfig import context_names
from upgrade_manager.kube.resources import NODES, UPGRADE_PLANS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from upgrade_manager.cli.user_options import CompletionOptions
    from upgrade_manager.kube.resources import Resource

PROGRAM = "upgrade-manager"
#: Seconds for the names of plans: a user has pressed Tab.
TIMEOUT = 2.0
#: The last line for kubectl (cobra's ShellCompDirectiveNoFileComp): it must not add file names.
_NO_FILES = ":4"


def completion(options: CompletionOptions) -> int:
    """Print the script of the shell, which starts this program for each completion."""
    sys.stdout.write(shellcode([PROGRAM], shell=options.shell))
    return 0


def complete() -> None:
    """Print the completions that the script requests, and end the process; return if it requests none."""
    argcomplete.autocomplete(_parser(), always_complete_options=False, default_completer=SuppressCompleter())


def complete_plugin(words: Sequence[str]) -> int:
    """Print the completions of the last word, as kubectl expects them of kubectl_complete-upgradeplan."""
    line = f"{shlex.join([PROGRAM, *words[:-1]])} {words[-1] if words else ''}"
    # The protocol of argcomplete, in the form for fish: a word, a tab and its description in each line.
    os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "fish"}
    os.environ |= {"_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_DFS": "\t"}
    found = io.StringIO()
    argcomplete.autocomplete(
        _parser(),
        always_complete_options=False,
        default_completer=SuppressCompleter(),
        exit_method=lambda _: None,
        output_stream=found,
    )
    lines = [one.rstrip() for one in found.getvalue().splitlines() if one.strip()]
    sys.stdout.write("\n".join([*lines, _NO_FILES]) + "\n")
    return 0


def plan_names(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the names of the cluster's plans; none if they cannot be read in time."""
    return _names(parsed_args, UPGRADE_PLANS)


def _names(parsed_args: argparse.Namespace, resource: Resource) -> list[str]:
    # Imported late, because most completions need no cluster, and before the time counts: imports take half of it.
    from upgrade_manager.cli.session import connected  # noqa: PLC0415

    async def read() -> list[str]:
        kubeconfig, context = parsed_args.kubeconfig, parsed_args.context
        async with (
            asyncio.timeout(TIMEOUT),
            connected(command="completion", kubeconfig=kubeconfig, context=context) as session,
        ):
            return [objects.name(one) for one in (await session.client.list(resource, metadata_only=True)).items]

    try:
        return asyncio.run(read())
    except Exception:  # noqa: BLE001  # a completion reports nothing
        return []


def node_names(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the names of the cluster's nodes; none if they cannot be read in time."""
    return _names(parsed_args, NODES)


def contexts(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the contexts of the kubeconfig."""
    return context_names(environ=os.environ, kubeconfig=parsed_args.kubeconfig or "")


#: By the destination of the argument: what completes its value. Choices complete themselves.
_COMPLETERS = {
    "context": contexts,
    "filename": FilesCompleter(),
    "kubeconfig": FilesCompleter(),
    "nodes": node_names,
    "output": FilesCompleter(),
    "plan": plan_names,
    "webhook_cert_path": DirectoriesCompleter(),
}


def _parser() -> argparse.ArgumentParser:
    parser, commands = command_line()
    for command in commands.values():
        for action in _values(command):
            if action.dest in _COMPLETERS:
                action.completer = _COMPLETERS[action.dest]  # type: ignore[attr-defined]  # argcomplete reads it
    return parser


def _values(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments with a value that is free."""
    return (action for action in parser._actions if action.nargs != 0 and action.choices is None)  # noqa: SLF001  # argparse lists them nowhere else
