"""The files of the partition /oem that GRUB reads: they are created where they do not exist.

os_upgrade.py has the step; kernel_arguments.py changes a variable in one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.grub_environment import empty_block
from upgrade_manager.toolkit.host.host_paths import GRUB_CUSTOM, GRUB_ENVIRONMENT
from upgrade_manager.toolkit.os.os_release import runs_release
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

_CONTENTS = {GRUB_ENVIRONMENT: empty_block(), GRUB_CUSTOM: b""}


async def files_missing(context: ToolkitContext) -> str:
    """Return the files that do not exist; empty if the node runs the release."""
    return "" if await runs_release(context) else ", ".join(_absent(context.tree))


async def write_files(context: ToolkitContext) -> None:
    """Create the files. Raises StepFailed."""
    for path in _absent(context.tree):
        write_file(context.tree, path, _CONTENTS[path])


def write_file(tree: HostTree, path: str, content: bytes) -> None:
    """Write a file durably. Raises StepFailed."""
    try:
        tree.write_bytes(path, content)
    except OSError as error:
        raise StepFailed(f"{path} cannot be written: {error.strerror or error}") from error


def _absent(tree: HostTree) -> list[str]:
    try:
        return [path for path in _CONTENTS if not tree.is_there(path)]
    except OSError as error:
        raise StepFailed(f"the files of GRUB cannot be read: {error.strerror or error}") from error
