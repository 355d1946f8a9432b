"""The list of images to remove, on its way to the nodes.

It travels in Secrets, only because a Plan can mount nothing else; it holds nothing secret.
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

#: Where the controller mounts a Plan's Secrets; each piece has a folder of its own there.
LIST_PATH = "/run/system-upgrade/secrets/images"
LIST_KEY = "images.gz"
#: Bytes of one piece: an API server takes objects of about a mebibyte, and these bytes come to it in base64.
PIECE = 512 * 1024
#: Characters of a name that are the plan's. With all that is added, and the controller's "secret-" before it, the name
#: of a volume has 61.
_PLANS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageList:
    """One list, cut into as many pieces as its length asks for."""

    owner: Owner
    #: gzip. A node that lacks a piece cannot unpack the others, and so never works with half a list.
    packed: bytes

    def names(self) -> list[str]:
        """The Secrets' names, in the pieces' order.

        They have the plan's uid and the content in them, because nobody lets us read whose a Secret is and what it
        holds; and they are DNS labels, because the controller makes names of volumes from them.
        """
        head = dns_label(component_name(self.owner.name, Component.IMAGE_CLEANUP))[:_PLANS].rstrip("-")
        digest = sha256(f"{self.owner.name} {self.owner.uid} ".encode() + self.packed).hexdigest()[:10]
        return [f"{head}-{digest}-{index:02}" for index, _ in enumerate(self._pieces())]

    def secrets(self) -> list[dict[str, Any]]:
        """The Secrets, in the same order."""
        return [self._secret(name, piece) for name, piece in zip(self.names(), self._pieces(), strict=True)]

    def _pieces(self) -> list[bytes]:
        return [self.packed[start : start + PIECE] for start in range(0, len(self.packed), PIECE)]

    def _secret(self, name: str, piece: bytes) -> dict[str, Any]:
        manifest = self.owner.manifest(SECRETS, name, Component.IMAGE_CLEANUP, namespace=CATTLE_SYSTEM)
        return {**manifest, "type": "Opaque", "data": {LIST_KEY: base64.b64encode(piece).decode()}}
