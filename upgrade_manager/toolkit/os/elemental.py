"""elemental, which writes a root file system to a new active image and keeps the previous one as passive.

os_upgrade.py runs it; os_images.py has the images that it writes.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import ELEMENTAL, OS_WORK
from upgrade_manager.toolkit.host.host_programs import Call, Output, run_program
from upgrade_manager.toolkit.os.os_images import until_full
from upgrade_manager.toolkit.os.os_rootfs import MOUNT_POINT, mounted
from upgrade_manager.toolkit.os.state_device import mounted_for_elemental
from upgrade_manager.toolkit.run.errors import ProgramFailed, StepFailed

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
#: An error in elemental's log, which is on its standard output, and colours, which it has also without a terminal.
_ERROR = re.compile(r"^ERRO\[[^\]]*\] *(?P<text>.*?) *$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: The number of errors that a message shows.
_SHOWN = 2
#: The cause that mount prints, followed by a hint.
_MOUNT = re.compile(r"\bmount: .*?(?=\.? *$)", re.MULTILINE)


async def run_elemental(context: ToolkitContext, *, image_mib: int) -> None:
    """Install the mounted root file system with its own elemental. Raises StepFailed.

    The host's elemental may be too old for the new system. After an error, elemental removes the new image, unless it
    has begun to rename images.
    """
    # Without a size, elemental makes an image that is too small for the next release.
    context.tree.write(f"{CONFIG}/config.yaml", f"upgrade:\n  system:\n    size: {image_mib}\n")
    try:
        bound = mounted(context, "--bind", f"{MOUNT_POINT}{ELEMENTAL}", ELEMENTAL)
        async with mounted_for_elemental(context), bound:
            arguments = ("--logfile", LOG, *await _source(context), "--config-dir", CONFIG, "--debug")
            call = Call(argv=("elemental", "upgrade", *arguments), timeout=_UPGRADE_TIMEOUT)
            output = await _watched(context, call)
            if output.status != 0:
                raise ProgramFailed(f"elemental returned {output.status}: {error_of(output)}")
    except StepFailed as error:
        raise type(error)(f"{error}. See {LOG} on node {context.node}") from error


async def _watched(context: ToolkitContext, call: Call) -> Output:
    """Run elemental, and kill it once the state partition is full, before it renames images. Raises StepFailed."""
    running = asyncio.ensure_future(context.programs.run(call))
    watching = asyncio.ensure_future(until_full(context))
    try:
        await asyncio.wait((running, watching), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
        return await running
    finally:
        for task in (running, watching):
            task.cancel()
        await asyncio.wait((running, watching))


def error_of(output: Output) -> str:
    """Return elemental's last errors, and what mount said; the last line of the output may be a hint of mount only."""
    text = _COLOUR.sub("", f"{output.stdout}\n{output.stderr}")
    errors, mounts = _ERROR.findall(text), _MOUNT.findall(text)
    if not errors:
        return output.last_line or "no output"
    # The last one names what failed, and the one before it may name the cause.
    shown = "; ".join(dict.fromkeys(errors[-_SHOWN:]))
    return f"{shown} ({mounts[-1]})" if mounts else shown


async def _source(context: ToolkitContext) -> tuple[str, str]:
    """Return the option with the directory to install that this version of elemental has."""
    output = await run_program(context.programs, Call(argv=("elemental", "upgrade", "--help"), timeout=_TIMEOUT))
    text = f"{output.stdout}\n{output.stderr}"
    return next((option for pattern, option in _SOURCES if pattern.search(text)), _DIRECTORY)
