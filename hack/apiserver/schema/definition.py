"""Whether a CustomResourceDefinition is one that kube-apiserver takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.jsonpath import PathError, compiled
from hack.apiserver.schema.field_error import FieldError, invalid, not_supported, required
from hack.apiserver.schema.names import dns_1035_label, dns_subdomain
from hack.apiserver.schema.structural import validate_structural

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

_SCOPES = ("Cluster", "Namespaced")
_PROTECTED = (".k8s.io", ".kubernetes.io")
_APPROVAL = "api-approved.kubernetes.io"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def definition(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a CustomResourceDefinition; an update that leaves the spec alone is not judged again."""
    spec = new.get("spec") or {}
    if old is not None and spec == old.get("spec"):
        return
    names = spec.get("names") or {}
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if old is None and new["metadata"].get("name") != wanted:
        yield invalid("metadata.name", new["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    yield from _group(spec.get("group") or "")
    yield from _approved(spec.get("group") or "", new["metadata"].get("annotations") or {})
    yield from _names(names)
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in _SCOPES:
        yield not_supported("spec.scope", spec["scope"], _SCOPES)
    yield from _versions(spec.get("versions") or [])
    if old is None:
        yield from _stored(spec.get("versions") or [])
    else:
        yield from _unchanged(spec, old.get("spec") or {})
        yield from _remembered(spec, old.get("status") or {})


def _approved(group: str, annotations: Object) -> Iterator[FieldError]:
    """The groups of Kubernetes itself are not for everybody."""
    if group.endswith(_PROTECTED) and not annotations.get(_APPROVAL):
        detail = (
            f'protected groups must have approval annotation "{_APPROVAL}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield required(f"metadata.annotations[{_APPROVAL}]", detail)


def _stored(versions: list[Object]) -> Iterator[FieldError]:
    """What the status of a new definition could not say."""
    storing = [version.get("name") for version in versions if version.get("storage")]
    if not storing:
        yield invalid("status.storedVersions", None, "must have at least one stored version")
    elif len(storing) > 1:
        yield invalid("status.storedVersions", storing[:1], f"must have the storage version {storing[-1]}")


def _remembered(spec: Object, status: Object) -> Iterator[FieldError]:
    """Versions in which objects may still be stored."""
    known = {version.get("name") for version in spec.get("versions") or ()}
    for index, name in enumerate(status.get("storedVersions") or ()):
        if name not in known:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions"
            )
            yield invalid(f"status.storedVersions[{index}]", name, detail)


def _group(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
        return
    faults = dns_subdomain(group)
    if faults:
        yield invalid("spec.group", group, ",".join(faults))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _names(names: Object) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            yield required(f"spec.names.{key}")
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or ""
        mixed = key in {"kind", "listKind"}
        faults = dns_1035_label(value.lower() if mixed else value) if value else []
        if faults:
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            yield invalid(f"spec.names.{key}", value, prefix + ",".join(faults))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _versions(versions: list[Object]) -> Iterator[FieldError]:
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")
    if len({version.get("name") for version in versions}) != len(versions):
        yield invalid("spec.versions", versions, "must contain unique version names")
    for index, version in enumerate(versions):
        field = f"spec.versions[{index}]"
        faults = dns_1035_label(version.get("name") or "")
        if faults:
            yield invalid(f"{field}.name", version.get("name") or "", ",".join(faults))
        if faults and index == 0:
            yield invalid("spec.version", version.get("name") or "", ",".join(faults))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield required(f"{field}.schema.openAPIV3Schema")
        else:
            # One version's schema stands at the top in the internal form, which the real server's paths show.
            where = "spec.validation" if len(versions) == 1 else f"{field}.schema"
            yield from validate_structural(schema, f"{where}.openAPIV3Schema")
        # What all versions have alike stands at the top in the internal form.
        top = "spec" if len(versions) == 1 else field
        yield from _columns(version.get("additionalPrinterColumns") or [], top)
        scale = (version.get("subresources") or {}).get("scale")
        for key in ("specReplicasPath", "statusReplicasPath"):
            if scale is not None and not scale.get(key):
                yield required(f"{top}.subresources.scale.{key}")


def _columns(columns: list[Object], field: str) -> Iterator[FieldError]:
    for index, column in enumerate(columns):
        where = f"{field}.additionalPrinterColumns[{index}]"
        if not column.get("name"):
            yield required(f"{where}.name")
        if column.get("type") not in _COLUMN_TYPES:
            yield invalid(f"{where}.type", column.get("type", ""), f"must be one of {','.join(_COLUMN_TYPES)}")
        path = column.get("jsonPath") or ""
        if not path:
            yield required(f"{where}.JSONPath")
            continue
        if not path.startswith("."):
            yield invalid(f"{where}.JSONPath", path, "must be a simple json path starting with .")
            continue
        try:
            compiled(path)
        except PathError as error:
            yield invalid(f"{where}.JSONPath", path, f"is an invalid path: {error}")


def _unchanged(spec: Object, old: Object) -> Iterator[FieldError]:
    if spec.get("scope") != old.get("scope"):
        yield invalid("spec.scope", spec.get("scope"), "field is immutable")
    if spec.get("group") != old.get("group"):
        yield invalid("spec.group", spec.get("group"), "field is immutable")
    names, before = spec.get("names") or {}, old.get("names") or {}
    for key in ("plural", "kind"):
        if names.get(key) != before.get(key):
            yield invalid(f"spec.names.{key}", names.get(key), "field is immutable")
