"""The device of the state partition, and its second mount on a node that boots by multipath.

elemental.py mounts it while elemental runs. With the device mapper elemental does not see that the partition is
mounted, and mounts it read-only at another place, where it cannot write. Of a mount that is at that place already it
makes a writable one.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import ELEMENTAL_STATE
from upgrade_manager.toolkit.host.host_programs import Call
from upgrade_manager.toolkit.os.os_rootfs import mounted
from upgrade_manager.toolkit.run.errors import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.toolkit.run.context import ToolkitContext

LABEL = "COS_STATE"
MAPPER = "/dev/mapper/"
#: Status of blkid where no device has the label.
_NONE = 2
#: Seconds.
_TIMEOUT = 10.0


async def state_device(context: ToolkitContext) -> str:
    """Return the path of the partition's device, empty without one. Raises ProgramFailed."""
    # Without a cache file: blkid would write one.
    call = Call(argv=("blkid", "-c", "/dev/null", "-L", LABEL), timeout=_TIMEOUT)
    output = await context.programs.run(call)
    if output.status not in {0, _NONE}:
        raise ProgramFailed(f"blkid returned {output.status}: {output.last_line or 'no output'}")
    return output.stdout.strip() if output.status == 0 else ""


@asynccontextmanager
async def mounted_for_elemental(context: ToolkitContext) -> AsyncIterator[None]:
    """Mount a partition of the device mapper where elemental looks for it, while the block runs. Raises StepFailed."""
    device = await state_device(context)
    if not device.startswith(MAPPER):
        yield
        return
    context.tree.make_directory(ELEMENTAL_STATE)
    async with mounted(context, "-o", "ro", device, ELEMENTAL_STATE):
        yield
