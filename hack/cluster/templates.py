"""The templates of a new cluster's objects, the YAML files in hack/cluster/objects, for the seeds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from hack.yaml_documents import documents

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_FOLDER = Path(__file__).parent / "objects"


def build(template: str, **values: Any) -> Object:
    """Return a new object of a template, in which each `$name` is replaced by the value of that name.

    A text that is only `$name` becomes the value itself; a field whose value is None is left out.
    """
    built: Object = _filled(_templates()[template], values)
    return built


def _filled(part: Any, values: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        fields = ((key, _filled(item, values)) for key, item in part.items())
        return {key: item for key, item in fields if item is not None}
    if isinstance(part, list):
        return [_filled(item, values) for item in part]
    if not isinstance(part, str) or "$" not in part:
        return part
    return values[part[1:]] if part[1:].isidentifier() else Template(part).substitute(values)


@cache
def _templates() -> dict[str, Object]:
    """Parse the files once: parsing takes longer than creating the objects."""
    found: dict[str, Object] = {}
    for path in sorted(_FOLDER.glob("*.yaml")):
        found |= next(documents(path.read_text(encoding="utf-8")))
    return found
