"""The manager's flags about the toolkit image, in tests."""

from __future__ import annotations

from upgrade_manager.api.toolkit_image import ToolkitConfig

#: Without any flag.
TOOLKIT = ToolkitConfig(version="v0.0.0")
