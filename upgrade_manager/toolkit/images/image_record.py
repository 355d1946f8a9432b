"""The record that `node prepare` keeps on the host about archives of images, for its next run and for post-drain."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import WORK

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree

RECORD = f"{WORK}/images.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """One host's record; it outlives the plan, because later plans must know what an earlier one put there."""

    #: The uid of the UpgradePlan whose downloads are in the work directory.
    plan: str = ""
    #: The archive whose import began and did not end: its images may be listed without all of their content.
    importing: str = ""
    #: By path of an archive or list that RKE2 or rancher-system-agent reads: whether it was there before the upgrade.
    found: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def load(cls, tree: HostTree) -> ImageRecord:
        """Read the record; an empty one if it is missing or not readable."""
        try:
            content = json.loads(tree.read(RECORD) or "{}")
            return cls(
                plan=str(content["plan"]),
                importing=str(content["importing"]),
                found={str(path): bool(was_there) for path, was_there in content["found"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def save(self, tree: HostTree) -> None:
        """Write the record, durably, unless the host has it."""
        text = json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"
        if tree.read(RECORD) != text:
            tree.write(RECORD, text)
