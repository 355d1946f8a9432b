"""The mark by which GRUB knows a boot that did not end: it starts the fallback, whatever was installed since.

os_upgrade.py removes the mark before elemental.py installs another image. GRUB sets it before the first boot after an
upgrade. A boot of the active image removes it, and that of the fallback does not: without this module, a node that runs
its fallback would never try the image of the next upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.grub_environment import BadBlock, value_of
from upgrade_manager.toolkit.host.host_paths import BOOT_ASSESSMENT, STATE_PARTITION
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.os.os_images import writable
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

MARK = "boot_assessment_tentative"
#: Seconds.
_TIMEOUT = 60.0


async def forget_attempt(context: ToolkitContext) -> None:
    """Remove the mark if it is there. Raises StepFailed."""
    if not _is_marked(context.tree):
        return
    async with writable(context):
        for argv in (("grub2-editenv", BOOT_ASSESSMENT, "unset", MARK), ("sync", "--file-system", STATE_PARTITION)):
            await run_program(context.programs, Call(argv=argv, timeout=_TIMEOUT))


def _is_marked(tree: HostTree) -> bool:
    try:
        return bool(value_of(tree.read_bytes(BOOT_ASSESSMENT) or b"", MARK))
    except BadBlock:
        # GRUB reads no mark from such a file.
        return False
    except OSError as error:
        raise StepFailed(f"{BOOT_ASSESSMENT} cannot be read: {error.strerror or error}") from error
