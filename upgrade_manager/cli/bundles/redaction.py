"""Removes secrets from what goes into a bundle: collection.py calls it for each object and each log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES, SECRETS
from upgrade_manager.runtime.logging import REDACTED, is_secret_key, without_secrets

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: Annotations with a copy of the object, or with the arguments of a node's agent.
_COPIES = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "objectset.rio.cattle.io/applied",
        "rke2.io/node-args",
        "rke2.io/node-env",
    }
)
#: The annotations of Secrets that are kept: those of Rancher's drains, and the manager's.
_OF_UPGRADES = ("rke.cattle.io/", "management.harvesterhci.io/")
#: Fields of a Node that take most of its size.
_LARGE = ("images", "volumesAttached", "volumesInUse")
_WORDS = r"passw(?:or)?d|passphrase|token|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key"
_VALUE = r"""(?P<value>\\?"[^"\\]*|\\?'[^'\\]*|[^\s"',;&}\])\\]+)"""
#: A secret word with its value, in a log, a flag or a file. The name of an object, such as b-token, is not such a word.
_ASSIGNED = tuple(
    re.compile(rf"(?P<name>{name}){_VALUE}", re.IGNORECASE)
    for name in (
        rf"(?<![\w.-])[\w.-]{{0,64}}(?:{_WORDS}|secret|credential)[\w.-]{{0,64}}=",
        rf"(?<![\w-])--[\w-]{{0,64}}(?:{_WORDS})\s+",
        rf"(?<![\w./-])\\?[\"']?[a-z_]{{0,64}}(?:{_WORDS})\\?[\"']?:\s*",
    )
)
#: Levels of an object; deeper ones are left out.
_DEPTH = 40


def redacted_text(text: str) -> str:
    """Return a log or a message without secrets."""
    for pattern in _ASSIGNED:
        text = pattern.sub(_hidden, text)
    return without_secrets(text)


def _hidden(match: re.Match[str]) -> str:
    quote = re.match(r"""\\?["']""", match["value"])
    return f"{match['name']}{quote[0] if quote else ''}{REDACTED}"


def redacted_object(obj: Object) -> Object:
    """Return an object without secrets; of a Secret its metadata alone."""
    kept: dict[str, Any] = {**obj, "metadata": _metadata(objects.metadata(obj), is_secret=_is_secret(obj))}
    if _is_secret(obj):
        return {key: kept[key] for key in ("apiVersion", "kind", "metadata") if key in kept}
    if obj.get("kind") == NODES.kind:
        status = objects.mapping(obj, "status")
        kept["status"] = {key: value for key, value in status.items() if key not in _LARGE}
    found = _value("", kept, _DEPTH)
    return found if isinstance(found, dict) else {}


def _is_secret(obj: Object) -> bool:
    return obj.get("kind") == SECRETS.kind


def _metadata(metadata: Object, *, is_secret: bool) -> Object:
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        kept["annotations"] = {
            key: value
            for key, value in annotations.items()
            if key not in _COPIES and (not is_secret or key.startswith(_OF_UPGRADES))
        }
    return kept


def _value(key: object, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth <= 0:
        return "…"
    if isinstance(value, dict):
        # Such as a variable of a container.
        named = is_secret_key(value.get("name")) and isinstance(value.get("value"), str)
        found = {one: _value(one, inner, depth - 1) for one, inner in value.items()}
        return {**found, "value": REDACTED} if named else found
    if isinstance(value, list):
        return [_value(key, inner, depth - 1) for inner in value]
    text = str(value)
    return REDACTED if text and is_secret_key(key) else redacted_text(text)
