"""The commands that run inside the Jobs, and the tables of their steps.

cli/toolkit.py starts a command by its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.toolkit.run.steps import Step

#: Modules by command; each has its table STEPS and is imported only when its command runs.
COMMANDS = {
    "node prepare": "prepare",
    "node survey": "survey",
    "node checksums": "checksums",
    "node pre-drain": "pre_drain",
    "node post-drain": "post_drain",
    "node single-node-upgrade": "single_node_upgrade",
    "cluster-upgrade": "cluster_upgrade",
    "vm-live-migrate-detector": "vm_live_migrate_detector",
    "restore-vm": "restore_vm",
    "version-guard": "version_guard",
    "image-cleanup": "image_cleanup",
}


def steps_of(command: str) -> Sequence[Step]:
    """Return the table of a command."""
    module = import_module(f"upgrade_manager.toolkit.commands.{COMMANDS[command]}")
    steps: Sequence[Step] = module.STEPS
    return steps
