"""References to a VirtualMachineImage, as `spec.image` and `status.isoImageID` hold them."""

from __future__ import annotations

from typing import NamedTuple

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import is_namespace, is_object_name


class ImageReference(NamedTuple):
    """Where an image is; as text, the namespace harvester-system is left out."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """`iso` in harvester-system, `images/iso` elsewhere."""
        return self.name if self.namespace == HARVESTER_SYSTEM else f"{self.namespace}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> ImageReference | None:
        """Read `name` or `namespace/name`; None where the text cannot be the name of an object."""
        namespace, slash, name = text.rpartition("/")
        if not slash:
            namespace = HARVESTER_SYSTEM
        return cls(namespace, name) if is_namespace(namespace) and is_object_name(name) else None
