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
    """One host's record, which outlives the plan, because later plans must know the files of earlier plans."""

    #: The uid of the UpgradePlan whose downloads are in the work directory.
    plan: str = ""
    #: The archive whose import began and did not end: its images may be listed without all of their content.
    importing: str = ""
    #: True if a file existed before the upgrade, by the path of an archive or list of RKE2 or rancher-system-agent.
    found: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def load(cls, tree: HostTree) -> ImageRecord:
        """Read the record; return an empty record if the file is missing or not readable."""
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
        """Write the record durably, unless the host has an equal record."""
        text = json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"
        if tree.read(RECORD) != text:
            tree.write(RECORD, text)
