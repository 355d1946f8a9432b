"""The command `upgrade-manager bundle`: all that is known of an upgrade in one file, without secrets.

user_commands.py starts it; bundles/ reads the cluster and writes the file, which `status` and `report` read.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from upgrade_manager.cli.bundles.archive import MANIFEST, folder_of, packed
from upgrade_manager.cli.bundles.collection import collect
from upgrade_manager.cli.plans import choose, read_plans
from upgrade_manager.cli.session import CommandError, connected, print_message, run_command
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.cli.session import Session
    from upgrade_manager.cli.user_options import BundleOptions

#: Lines about what could not be read.
_MAX_LINES = 10


def bundle(options: BundleOptions) -> int:
    """Write the file and return the exit status."""
    return run_command("bundle", lambda: _bundle(options))


async def _bundle(options: BundleOptions) -> int:
    async with connected(command="bundle", kubeconfig=options.kubeconfig, context=options.context) as session:
        name, files = await read(session, options.plan)
    content = packed(folder_of(name), files)
    write(options.output, content)
    unread: dict[str, str] = json.loads(files[MANIFEST])["unread"]
    for path, reason in [*unread.items()][:_MAX_LINES]:
        print_message(f"not read: {path}: {reason}")
    if len(unread) > _MAX_LINES:
        print_message(f"not read: {len(unread) - _MAX_LINES} more, which {MANIFEST} in the file lists")
    sys.stdout.write(f"{options.output}: UpgradePlan {name}, {len(files)} files, {len(content) / 1000:,.0f} kB\n")
    return 0


async def read(session: Session, name: str) -> tuple[str, dict[str, bytes]]:
    """Return the name of the plan, and the files of its bundle. Raises CommandError."""
    plans = await read_plans(session, "")
    plan = choose(session, [one for one in plans if name in {"", objects.name(one)}], name)
    return objects.name(plan), await collect(session, plan, plans)


def write(output: str, content: bytes) -> None:
    """Write the file, which only its owner may read. Raises CommandError."""
    try:
        with open(output, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandError(f"{output} cannot be written: {reason}. Use -o with a file that you may write") from error
