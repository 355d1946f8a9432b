"""elemental's record of the installation, which early releases wrote without a label.

os_upgrade.py has the step. A record that is not YAML stays: elemental ignores it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from upgrade_manager.kube import objects
from upgrade_manager.toolkit.host.host_paths import STATE_FILE
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.os.os_images import writable
from upgrade_manager.toolkit.os.os_release import runs_release
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

_BACKUP = f"{STATE_FILE}.bak"
#: Seconds.
_TIMEOUT = 60.0


async def state_file_incomplete(context: ToolkitContext) -> str:
    """Return the record's name if it lacks its label; empty if the node runs the release."""
    if await runs_release(context) or _is_complete(context.tree):
        return ""
    return f"{STATE_FILE} has no state.label"


async def move_state_file(context: ToolkitContext) -> None:
    """Give the record another name, which takes effect as a whole. Raises StepFailed."""
    async with writable(context):
        await run_program(context.programs, Call(argv=("mv", "--force", STATE_FILE, _BACKUP), timeout=_TIMEOUT))


def _is_complete(tree: HostTree) -> bool:
    try:
        text = tree.read(STATE_FILE)
        found = yaml.safe_load(text or "")
    except OSError as error:
        raise StepFailed(f"{STATE_FILE} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, RecursionError):
        return True
    return text is None or objects.value(found, "state", "label") is not None
