"""Replaces the tag of an image in an add-on's values, a YAML text of users: all other bytes stay.

addons.py calls it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from upgrade_manager.release.image_lists import repository_name
from upgrade_manager.toolkit.run.errors import StepFailed

_IMAGE, _TAG = "image", "tag"
#: The keys of an image's repository: Harvester's charts and that of NVIDIA's toolkit differ.
_REPOSITORY = ("repository", "repo")
#: The tag of the event router's image in the values of the logging add-on; a registry before the name stays.
_EVENT_ROUTER_TAG = re.compile(r"(?<=rancher/harvester-eventrouter:)[\w.-]+", re.ASCII)
_QUOTES = frozenset({"'", '"'})


@dataclass(frozen=True, slots=True)
class ImageTag:
    """The value of `image.tag` in a text of YAML."""

    value: str
    #: The name of the image's repository, without registry; empty where the values leave it to the chart.
    repository: str
    #: Places of the scalar in the text.
    start: int
    end: int


def image_tag(content: str) -> ImageTag | None:
    """Return the tag; None for values without one, or values that are not YAML, which Helm refuses, too."""
    try:
        image = _child(yaml.compose(content, Loader=yaml.SafeLoader), _IMAGE)
        tag = _child(image, _TAG)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(tag, yaml.ScalarNode) or not tag.value:
        return None
    named = [_child(image, key) for key in _REPOSITORY]
    repository = next((node.value for node in named if isinstance(node, yaml.ScalarNode)), "")
    return ImageTag(tag.value, repository_name(repository), tag.start_mark.index, tag.end_mark.index)


def with_image_tag(content: str, tag: str) -> str:
    """Return the values with this tag of the image. Raises StepFailed where more than the tag would change."""
    found = image_tag(content)
    if found is None or found.value == tag:
        return content
    scalar = content[found.start : found.end]
    quote = scalar[0] if scalar[0] in _QUOTES else ""
    changed = f"{content[: found.start]}{quote}{tag}{quote}{content[found.end :]}"
    if not _is_only_change(content, changed, tag):
        raise StepFailed(f"image.tag in its values has an anchor, an alias or a type; set it to {tag}")
    return changed


def with_event_router(content: str, image: str) -> str:
    """Return an add-on's values with the tag of this event router's image; all other values stay unchanged."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return _EVENT_ROUTER_TAG.sub(tag, content) if tag else content


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a key of a mapping; of equal keys, the last one counts."""
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in reversed(node.value) if name.value == key), None)


def _is_only_change(content: str, changed: str, tag: str) -> bool:
    try:
        old, new = yaml.safe_load(content), yaml.safe_load(changed)
        return bool({**old, _IMAGE: {**old[_IMAGE], _TAG: tag}} == new)
    except (yaml.YAMLError, ValueError, TypeError, LookupError):
        return False
