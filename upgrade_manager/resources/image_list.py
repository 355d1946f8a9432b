"""Secrets that carry the list of images to remove to the nodes.

The phase ImageCleanup (pipeline/phases/image_cleanup.py) creates them; toolkit/commands/image_cleanup.py reads the
list.

The list is not secret; a SUC Plan can mount Secrets only.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import CATTLE_SYSTEM, Component
from upgrade_manager.api.names import component_name, dns_label
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from upgrade_manager.resources.owner import Owner

#: Directory under which the system-upgrade-controller mounts a Plan's Secrets, one directory per chunk.
LIST_PATH = "/run/system-upgrade/secrets/images"
LIST_KEY = "images.gz"
#: Bytes per Secret; the API server limits objects to about 1 MiB, and base64 adds a third.
CHUNK = 512 * 1024
#: Characters of the plan's name in a Secret's name: with "secret-", digest and index, volume names have at most 61.
_MAX_PREFIX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageList:
    """One list, split into as many Secrets as it needs."""

    owner: Owner
    #: Compressed by gzip, so that a node with a missing chunk fails instead of using half the list.
    packed: bytes

    def names(self) -> list[str]:
        """Return the Secrets' names, in order.

        A name depends on the plan's uid and the content, because the manager may not read Secrets in that namespace.
        It is a DNS label, because the system-upgrade-controller derives volume names from it.
        """
        head = dns_label(component_name(self.owner.name, Component.IMAGE_CLEANUP))[:_MAX_PREFIX].rstrip("-")
        digest = sha256(f"{self.owner.name} {self.owner.uid} ".encode() + self.packed).hexdigest()[:10]
        return [f"{head}-{digest}-{index:02}" for index, _ in enumerate(self._chunks())]

    def secrets(self) -> list[dict[str, Any]]:
        """Build the Secrets, in order."""
        return [self._secret(name, chunk) for name, chunk in zip(self.names(), self._chunks(), strict=True)]

    def _chunks(self) -> list[bytes]:
        return [self.packed[start : start + CHUNK] for start in range(0, len(self.packed), CHUNK)]

    def _secret(self, name: str, chunk: bytes) -> dict[str, Any]:
        manifest = self.owner.manifest(
            SECRETS, name, Component.IMAGE_CLEANUP, namespace=CATTLE_SYSTEM, is_dependent=True
        )
        return {**manifest, "type": "Opaque", "data": {LIST_KEY: base64.b64encode(chunk).decode()}}
