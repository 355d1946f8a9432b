"""The view as a JSON or YAML document, for scripts.

cli/status.py writes it for `-o json` and `-o yaml`, cli/remedies.py parts of it.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from upgrade_manager.display.model import View

#: Fields of the view for other forms.
_LEFT_OUT = {"events", "now"}


def to_json(view: View) -> str:
    """Return the view as JSON."""
    return json.dumps(document(view), indent=2, ensure_ascii=False) + "\n"


def to_yaml(view: View) -> str:
    """Return the view as a YAML document; several can follow one another."""
    # Imported late: JSON does not need it.
    import yaml  # noqa: PLC0415

    return "---\n" + yaml.safe_dump(document(view), sort_keys=False, allow_unicode=True)


def document(view: View) -> dict[str, Any]:
    """Return the view as plain data: names in camel case, times in RFC 3339, null where nothing is known."""
    return {
        _camel(field.name): plain(getattr(view, field.name)) for field in fields(view) if field.name not in _LEFT_OUT
    }


def plain(value: object) -> object:
    """Return a part of the view as plain data."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, tuple):
        return [plain(entry) for entry in value]
    if is_dataclass(value):
        # A field that is not shown belongs to the process that made it (Remedy.changes).
        return {_camel(field.name): plain(getattr(value, field.name)) for field in fields(value) if field.repr}
    if isinstance(value, float):
        return round(value, 3)
    # An enumeration is its text.
    return str(value) if isinstance(value, str) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
