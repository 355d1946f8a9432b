"""The features of a CustomResourceDefinition that this server lacks, which stages.py refuses: no rule is ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import UNOFFERED, FieldError, forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The keywords that validation, pruning and defaulting implement; without effect: description, title, example.
_KEYWORDS = (
    "additionalProperties default description enum example format items maxItems maxLength maximum minItems minLength "
    "minimum nullable pattern properties required title type x-kubernetes-int-or-string x-kubernetes-list-map-keys "
    "x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-preserve-unknown-fields x-kubernetes-validations"
)
_RULE_KEYWORDS = ("rule", "message", "reason", "fieldPath")


def unoffered(definition: dict[str, Any]) -> Iterator[FieldError]:
    """Yield the features of a CustomResourceDefinition that this server lacks."""
    (version, *others) = definition["spec"]["versions"]
    names = [f"spec.versions[{one['name']}]" for one in others]
    names += [f"spec.subresources.{one}" for one in (version.get("subresources") or {}).keys() - {"status"}]
    names += _keywords(version["schema"]["openAPIV3Schema"])
    return (forbidden(name, UNOFFERED) for name in names)


def _keywords(schema: dict[str, Any]) -> Iterator[str]:
    yield from schema.keys() - _KEYWORDS.split()
    for rule in schema.get("x-kubernetes-validations") or ():
        yield from rule.keys() - _RULE_KEYWORDS
    parts = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    for part in parts:
        if isinstance(part, dict):
            yield from _keywords(part)
