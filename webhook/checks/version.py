"""The plan names a release: an image, or a Version that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import is_object_name
from webhook.check import Check, Finding
from webhook.listings import version

if TYPE_CHECKING:
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    name = subject.spec.version
    if subject.spec.image:
        return []
    if not name:
        return [Finding(message="Required. Set it to the name of a Version, or set spec.image")]
    # An invalid name could break the selector.
    if is_object_name(name) and await subject.cluster.list(version(name)):
        return []
    return [
        Finding(
            message=f"Version {HARVESTER_SYSTEM}/{name} does not exist. "
            f"Choose one of: kubectl get versions.harvesterhci.io -n {HARVESTER_SYSTEM}"
        )
    ]


CHECK = Check(name="version", field="spec.version", find=_find)
