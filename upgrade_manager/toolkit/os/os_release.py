"""The name of the operating system in a file system tree, and of the release's operating system.

os_upgrade.py and reboot.py compare these names.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

_FILE = "/etc/os-release"
_KEY = "PRETTY_NAME="


def os_name(tree: HostTree) -> str:
    """Return the name as nodes report it, such as `Harvester v1.8.0`; empty without a name in the tree."""
    for line in (tree.read(_FILE) or "").splitlines():
        if line.startswith(_KEY):
            return _unquoted(line.removeprefix(_KEY))
    return ""


async def release_os(context: ToolkitContext) -> str:
    """Return the name of the release's operating system. Raises KubeError and BadArchive."""
    return (await context.release.versions())["os"]


async def runs_release(context: ToolkitContext) -> bool:
    """Return True if the host has booted the release's operating system."""
    return os_name(context.tree) == await release_os(context)


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value.strip()
