"""elemental, which writes a root file system to a new active image and keeps the previous one as passive.

os_upgrade.py runs it; os_images.py has the images that it writes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import ELEMENTAL, GRUB_ENVIRONMENT, OS_WORK
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.os.os_rootfs import MOUNT_POINT, mounted
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

LOG = f"{OS_WORK}/elemental.log"
CONFIG = f"{OS_WORK}/elemental"
#: Seconds.
_TIMEOUT = 60.0
_UPGRADE_TIMEOUT = 3600.0
#: Options that name the directory to install, newest first, as the help shows them.
_SOURCES = (
    (re.compile(r"--system\.uri\b"), ("--system.uri", f"dir:{MOUNT_POINT}")),
    (re.compile(r"--system[ =]"), ("--system", f"dir:{MOUNT_POINT}")),
)
_DIRECTORY = ("--directory", MOUNT_POINT)


async def run_elemental(context: ToolkitContext, *, image_mib: int) -> None:
    """Install the mounted root file system with its own elemental. Raises StepFailed.

    The host's elemental may be too old for the new system. After an error, elemental removes the new image, unless it
    has begun to rename images.
    """
    if not context.tree.exists(GRUB_ENVIRONMENT):
        call = Call(argv=("grub2-editenv", GRUB_ENVIRONMENT, "create"), timeout=_TIMEOUT)
        await run_program(context.programs, call)
    # Without a size, elemental makes an image that is too small for the next release.
    context.tree.write(f"{CONFIG}/config.yaml", f"upgrade:\n  system:\n    size: {image_mib}\n")
    try:
        async with mounted(context, "--bind", f"{MOUNT_POINT}{ELEMENTAL}", ELEMENTAL):
            arguments = ("--logfile", LOG, *await _source(context), "--config-dir", CONFIG, "--debug")
            call = Call(argv=("elemental", "upgrade", *arguments), timeout=_UPGRADE_TIMEOUT)
            await run_program(context.programs, call)
    except StepFailed as error:
        raise type(error)(f"{error}. See {LOG} on node {context.node}") from error


async def _source(context: ToolkitContext) -> tuple[str, str]:
    """Return the option with the directory to install that this version of elemental has."""
    output = await run_program(context.programs, Call(argv=("elemental", "upgrade", "--help"), timeout=_TIMEOUT))
    text = f"{output.stdout}\n{output.stderr}"
    return next((option for pattern, option in _SOURCES if pattern.search(text)), _DIRECTORY)
