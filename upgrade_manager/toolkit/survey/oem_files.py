"""Users' files in /oem, which every boot carries out, also that of the new release.

A file that writes /etc/os-release hides the new operating system's name, for which the upgrade waits. GRUB runs
grubcustom after it has read grubenv, so that a value there replaces the kernel's arguments.

checks.py lists the check.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from upgrade_manager.kube import objects
from upgrade_manager.toolkit.host.host_paths import GRUB_CUSTOM, GRUB_ENVIRONMENT
from upgrade_manager.toolkit.os.kernel_arguments import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.toolkit.run.context import ToolkitContext

_FOLDER = "/oem"
_SUFFIXES = (".yaml", ".yml")
#: Files of the release's root file system by which the upgrade recognises it.
_OF_RELEASE = frozenset({"/etc/os-release", "/usr/lib/os-release"})
_SETS = re.compile(rf"^\s*(?:set\s+)?{VARIABLE}=", re.MULTILINE)


async def oem_files(context: ToolkitContext) -> list[str]:
    """Find files that conflict with those of the release."""
    found = []
    for name in context.tree.names(_FOLDER):
        if name.endswith(_SUFFIXES):
            path = f"{_FOLDER}/{name}"
            found += [
                f"{path} writes {target} at each boot, and hides the release's name in that file. Remove that part."
                for target in sorted(set(_written(context.tree.read(path) or "")) & _OF_RELEASE)
            ]
    if _SETS.search(context.tree.read(GRUB_CUSTOM) or ""):
        found.append(
            f"{GRUB_CUSTOM} sets {VARIABLE}, so that GRUB ignores the names of NICs that the upgrade writes to "
            f"{GRUB_ENVIRONMENT}. Move the value there: grub2-editenv {GRUB_ENVIRONMENT} set {VARIABLE}=VALUE."
        )
    return found


def _written(text: str) -> Iterator[str]:
    """Yield the paths of the files that a file of stages writes; none of a file that is not valid, which is ignored."""
    try:
        stages = objects.mapping(yaml.safe_load(text), "stages")
    except (yaml.YAMLError, RecursionError):
        return
    for steps in stages.values():
        for step in steps if isinstance(steps, list) else ():
            for file in objects.items(step, "files"):
                yield objects.text(file, "path")
