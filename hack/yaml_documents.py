"""Reads the YAML files of hack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

#: libyaml is seven times as fast as Python, where the machine has it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(text: str) -> Iterator[Any]:
    """Yield the documents of a YAML text, one by one. Raises YAMLError."""
    return yaml.load_all(text, Loader=_LOADER)
