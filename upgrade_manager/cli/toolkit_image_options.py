"""The flags about the toolkit image, of the commands run, webhook and preflight.

options.py and user_options.py add them.

`api.toolkit_image` decides by them which image a plan gets.
"""

from __future__ import annotations

import argparse

from upgrade_manager import __version__
from upgrade_manager.api.image_name import ImageName, is_allowed, is_prefix, is_tag
from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.api.toolkit_image import PUBLISHED, ToolkitConfig

#: Without any flag.
DEFAULT_TOOLKIT = ToolkitConfig(version=__version__)
_FORM = "REPOSITORY or REPOSITORY@sha256: and 64 hexadecimal digits"


def add_toolkit_image_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, as a group of their own."""
    add = parser.add_argument_group("toolkit image, of Jobs, Plans and the upgrade repository").add_argument
    add(
        "--toolkit-kind",
        choices=[kind.value for kind in ToolkitKind],
        default=ToolkitKind.HARVESTER.value,
        help="which toolkit the image holds: Harvester's, or that of this manager",
    )
    add(
        "--toolkit-image",
        type=_image,
        metavar="IMAGE",
        help=f"the image of that kind, REPOSITORY or REPOSITORY@sha256:DIGEST; else, for kind harvester, {PUBLISHED}",
    )
    add(
        "--toolkit-tag",
        type=_tag,
        metavar="TAG",
        help="its tag where the plan has no spec.upgrade; else the plan's version, for kind own the manager's",
    )
    add(
        "--toolkit-image-prefix",
        type=_prefix,
        metavar="PREFIX",
        action="append",
        help="repositories that a plan may name, up to a /, : or @; may be repeated; else that of --toolkit-image and "
        f"{PUBLISHED}",
    )


def toolkit_config(flags: argparse.Namespace, *, parser: argparse.ArgumentParser) -> ToolkitConfig:
    """Return the options; flags that contradict each other end the process as a usage error."""
    kind = ToolkitKind(flags.toolkit_kind)
    if kind is ToolkitKind.OWN and flags.toolkit_image is None:
        parser.error("--toolkit-kind own needs --toolkit-image")
    image: ImageName = flags.toolkit_image or PUBLISHED
    prefixes = tuple(dict.fromkeys(flags.toolkit_image_prefix or ()))
    if prefixes and not is_allowed(image.repository, prefixes):
        source = "of --toolkit-image" if flags.toolkit_image else "used without --toolkit-image"
        parser.error(f"no --toolkit-image-prefix matches {image.repository}, the repository {source}")
    return ToolkitConfig(version=__version__, kind=kind, image=image, tag=flags.toolkit_tag or "", prefixes=prefixes)


def _image(text: str) -> ImageName:
    image = ImageName.parse(text)
    if image is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form {_FORM}; a tag belongs in --toolkit-tag")
    return image


def _tag(text: str) -> str:
    if not is_tag(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid tag of a container image")
    return text


def _prefix(text: str) -> str:
    if not is_prefix(text):
        form = "a registry, or a repository or the beginning of one up to a /, without a / at the end"
        raise argparse.ArgumentTypeError(f"{text!r} is not {form}")
    return text
