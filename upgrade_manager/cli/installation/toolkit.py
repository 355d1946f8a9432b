"""Shows the toolkit image that plans get from the manager's flags; catalogue.py lists it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from upgrade_manager.api.annotations import PlanAnnotations
from upgrade_manager.api.keys import MANAGER
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.api.toolkit_image import ToolkitChoice, decide
from upgrade_manager.cli.installation.cluster import arguments
from upgrade_manager.cli.installation.row import Row, failed, passed, skipped
from upgrade_manager.cli.toolkit_image_options import add_toolkit_image_flags, toolkit_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from upgrade_manager.cli.installation.cluster import Cluster

_CHECK = "toolkit image"
_PLANS = {
    "plans of a Version": UpgradePlanSpec(version="VERSION"),
    "plans of an image without spec.upgrade": UpgradePlanSpec(image="IMAGE"),
}


async def check_toolkit(cluster: Cluster) -> Row:
    """Return the image of a plan that names a Version, and of one that names an image, and which tag is a guess."""
    manager = await cluster.deployment(MANAGER)
    if manager is None:
        return skipped(_CHECK, "The manager's Deployment does not exist, whose flags name it.")
    try:
        config = _config(arguments(manager))
    except _BadFlagsError as error:
        return failed(_CHECK, f"The manager's flags are refused: {error}.")
    return passed(_CHECK, ". ".join(_texts(config)) + ".")


def _texts(config: ToolkitConfig) -> list[str]:
    choices = {name: decide(spec, PlanAnnotations({}), config) for name, spec in _PLANS.items()}
    known = {name: one for name, one in choices.items() if isinstance(one, ToolkitChoice)}
    if len({str(one) for one in known.values()}) == 1:
        return [f"{next(iter(known.values()))}, unless a plan has spec.upgrade"]
    return [f"{one} for {name}{', which is a guess' if one.guessed else ''}" for name, one in known.items()]


class _BadFlagsError(Exception):
    """The flags of the manager contradict each other."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _BadFlagsError(message)


def _config(flags: Sequence[str]) -> ToolkitConfig:
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_toolkit_image_flags(parser)
    return toolkit_config(parser.parse_known_args(list(flags))[0], parser=parser)
