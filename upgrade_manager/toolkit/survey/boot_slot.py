"""The image that the node runs: the upgrade needs the active one, and keeps it as the fallback.

checks.py lists the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import KubeError
from upgrade_manager.toolkit.host.host_paths import PASSIVE_IMAGE
from upgrade_manager.toolkit.os.os_record import last_record
from upgrade_manager.toolkit.os.os_release import release_os
from upgrade_manager.toolkit.os.os_upgrade import refuse_pending
from upgrade_manager.toolkit.os.running_image import is_fallback_boot, running_image
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.survey.finding import sentence
from upgrade_manager.toolkit.survey.room import is_upgraded

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_FALLBACK = (
    "It runs its fallback passive.img, as after a boot of active.img that failed. Find out why active.img does not "
    "boot: the upgrade replaces it, and a broken disk would break the new one, too."
)


async def boot_slot(context: ToolkitContext) -> list[str]:
    """Find a node that runs its fallback, or an image that the upgrade would lose."""
    tree = context.tree
    if await is_upgraded(context):
        return []
    try:
        image = running_image(tree)
        if image == PASSIVE_IMAGE:
            refuse_pending(tree)
    except StepFailed as error:
        return [f"{sentence(str(error))} Reboot it from its disk."]
    is_known = image != PASSIVE_IMAGE or not is_fallback_boot(tree) or await _is_retry(context)
    return [] if is_known else [_FALLBACK]


async def _is_retry(context: ToolkitContext) -> bool:
    """Return True if an earlier attempt has installed this release, which did not boot: the next one replaces it."""
    record = last_record(context.tree)
    if record is None or not record.verified:
        return False
    try:
        return record.os == await release_os(context)
    except (KubeError, StepFailed):
        return False
