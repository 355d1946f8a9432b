"""The device of the state partition on a node that boots by multipath: post-drain has to mount it a second time.

The state of a device of the device mapper is in /sys/block/dm-N (Linux: Documentation/ABI/testing/sysfs-block-dm).

checks.py lists the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.os.state_device import MAPPER, state_device

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def mapper_device(context: ToolkitContext) -> list[str]:
    """Find a device under /dev/mapper that cannot be mounted."""
    device = await state_device(context)
    if not device.startswith(MAPPER):
        return []
    problem = _problem(context, device)
    text = f"The device {device} of the state partition {problem}, so that no new operating system can be written. "
    return [f"{text}Show its paths: multipath -ll."] if problem else []


def _problem(context: ToolkitContext, device: str) -> str:
    tree = context.tree
    if not tree.is_there(device):
        return "does not exist"
    folder = f"/sys/block/{tree.path(device).name}"
    if (tree.read(f"{folder}/dm/suspended") or "").strip() == "1":
        return "is suspended"
    return "is read-only" if (tree.read(f"{folder}/ro") or "").strip() == "1" else ""
