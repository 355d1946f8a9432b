from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitImage:
    """The container image that does the work inside Jobs, for the builders of Pods and Plans.

    The tag follows, in this order: spec.upgrade, the release's Harvester version, the manager's own version.
    """

    repository: str
    tag: str

    def __str__(self) -> str:
        """As containers name it. The system-upgrade-controller takes repository and tag apart instead."""
        return f"{self.repository}:{self.image_tag}"

    @property
    def image_tag(self) -> str:
        """The tag as registries allow it: a version's build part has a hyphen there, as that controller does it."""
        return self.tag.replace("+", "-")
