"""The manager's flags about the toolkit image, in tests."""

from __future__ import annotations

from dataclasses import replace

from upgrade_manager import __version__
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.api.toolkit_image import ToolkitConfig
from upgrade_manager.cli.options import RunOptions

#: Without any flag.
TOOLKIT = ToolkitConfig(version="v0.0.0")

#: The options of a manager with our own toolkit.
OWN = RunOptions(
    toolkit=ToolkitConfig(version=__version__, kind=ToolkitKind.OWN, image=ImageName(repository="me/own"), tag="v9")
)
#: Those of another version of the manager, with its toolkit.
NEXT = replace(OWN, toolkit=replace(OWN.toolkit, version="v0.9.0", tag="v10"))
