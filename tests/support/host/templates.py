"""The disks and the ISOs of the tier `host`, each made once: one for each version of elemental, and one without it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hack.real_host import iso, parts
from hack.real_host.guest import make_template
from tests.support import tiers

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from hack.real_host.guest import Template


class Templates:
    """Makes what a version needs when the first test asks for it; an empty version is a guest without elemental."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._templates: dict[str, Template] = {}
        self._releases: dict[str, Path] = {}

    def of(self, version: str) -> Template:
        """Return the disk, with elemental and kubectl if they are there."""
        if version not in self._templates:
            machine = parts.this_machine()
            lacks = not version or parts.missing(machine, parts.elemental_part(version))
            elemental = None if lacks else parts.elemental(os.environ, version)
            kubectl = None if parts.missing(machine, "control-plane") else tiers.assets().folder / "kubectl"
            folder = self._folders.mktemp("template")
            self._templates[version] = make_template(folder, elemental=elemental, kubectl=kubectl)
        return self._templates[version]

    def release_of(self, version: str) -> Path:
        """Return the folder of the ISO's files."""
        if version not in self._releases:
            folder = self._folders.mktemp("iso")
            iso.make_iso(folder, self.of(version).root)
            self._releases[version] = folder
        return self._releases[version]
