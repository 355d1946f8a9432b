"""Validation of `metadata` for every kind: names, namespace, labels, annotations, owners, finalizers.

It follows ValidateObjectMetaAccessor and ValidateObjectMetaAccessorUpdate of apimachinery 1.35. The metadata must have
been decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import FieldError, forbidden, invalid, required, too_long
from hack.apiserver.schema.names import (
    NAME_RULES,
    dns_label,
    label_value,
    mask_trailing_dash,
    qualified_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The limit in bytes of all annotations of one object.
ANNOTATIONS_SIZE = 256 * 1024

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

#: Immutable fields in the order in which they are reported.
IMMUTABLE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def validate_create(meta: Mapping[str, Any], *, namespaced: bool, name_rule: str = "subdomain") -> list[FieldError]:
    """Return the errors of a new object, whose name has been generated already."""
    errors = [*_name(meta, name_rule), *_namespace(meta, namespaced=namespaced)]
    errors += _maps_and_owners(meta)
    errors += _finalizers(meta.get("finalizers") or [])
    return errors


def validate_update(meta: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldError]:
    """Return the errors of a changed object."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _no_new_finalizers(meta, old)
    for key in IMMUTABLE:
        if (meta.get(key) or None) != (old.get(key) or None):
            errors.append(invalid(f"metadata.{key}", meta.get(key), "field is immutable"))
    return [*errors, *_maps_and_owners(meta), *_finalizers(meta.get("finalizers") or [])]


def finalizer_warnings(meta: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[str]:
    """Return warnings about finalizers that a custom resource adds."""
    known = set((old or {}).get("finalizers") or ())
    warnings = []
    for name in sorted(set(meta.get("finalizers") or ()) - known):
        warnings += [f'metadata.finalizers: "{name}": {error}' for error in qualified_name(name)]
        if "/" not in name and name not in {FOREGROUND, ORPHAN, "kubernetes"}:
            including = "including a path (/) " if "." in name else ""
            warnings.append(
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name {including}'
                "to avoid accidental conflicts with other finalizer writers"
            )
    return warnings


def _name(meta: Mapping[str, Any], rule: str) -> Iterator[FieldError]:
    check = NAME_RULES[rule]
    prefix = meta.get("generateName") or ""
    if prefix:
        for error in check(mask_trailing_dash(prefix)):
            yield invalid("metadata.generateName", prefix, error)
    name = meta.get("name") or ""
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    for error in check(name):
        yield invalid("metadata.name", name, error)


def _namespace(meta: Mapping[str, Any], *, namespaced: bool) -> Iterator[FieldError]:
    namespace = meta.get("namespace") or ""
    if not namespaced:
        if namespace:
            yield forbidden("metadata.namespace", "not allowed on this type")
    elif not namespace:
        yield required("metadata.namespace")
    else:
        for error in dns_label(namespace):
            yield invalid("metadata.namespace", namespace, error)


def _maps_and_owners(meta: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from validate_labels(meta.get("labels") or {}, "metadata.labels")
    yield from validate_annotations(meta.get("annotations") or {}, "metadata.annotations")
    yield from _owners(meta.get("ownerReferences") or [])


def validate_labels(labels: Mapping[str, str], field: str) -> Iterator[FieldError]:
    """Return the errors of labels, in metadata or in a template."""
    for key, value in labels.items():
        for error in qualified_name(key):
            yield invalid(field, key, error)
        for error in label_value(value):
            yield invalid(field, value, error)


def validate_annotations(annotations: Mapping[str, str], field: str) -> Iterator[FieldError]:
    """Return the errors of annotations; their keys are case-insensitive here."""
    for key in annotations:
        for error in qualified_name(key.lower()):
            yield invalid(field, key, error)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_SIZE:
        yield too_long(field, ANNOTATIONS_SIZE)


def _owners(owners: list[dict[str, Any]]) -> Iterator[FieldError]:
    field = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        yield from _owner(owner, field)
        if not owner.get("controller"):
            continue
        this = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {this}'
            )
            yield invalid(field, owners, detail)
        controller = controller or this


def _owner(owner: dict[str, Any], field: str) -> Iterator[FieldError]:
    version = owner.get("apiVersion") or ""
    if not version.rpartition("/")[2]:
        yield invalid(f"{field}.apiVersion", version, "version must not be empty")
    for key in ("kind", "name", "uid"):
        if not owner.get(key):
            yield invalid(f"{field}.{key}", owner.get(key) or "", "must not be empty")
    if (version, owner.get("kind")) == ("v1", "Event"):
        yield invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner")


def _finalizers(finalizers: list[str]) -> Iterator[FieldError]:
    field = "metadata.finalizers"
    for name in finalizers:
        for error in qualified_name(name):
            yield invalid(field, name, error)
    if FOREGROUND in finalizers and ORPHAN in finalizers:
        yield invalid(field, finalizers, f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set")


def standard_finalizers(meta: Mapping[str, Any]) -> Iterator[FieldError]:
    """Return the errors of finalizers without a domain, which must be well-known."""
    for index, name in enumerate(meta.get("finalizers") or ()):
        if "/" not in name and name not in {FOREGROUND, ORPHAN, "kubernetes"}:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", name, detail)


def _no_new_finalizers(meta: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[FieldError]:
    extra = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if extra:
        shown = ", ".join(f'"{name}"' for name in extra)
        detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
        yield forbidden("metadata.finalizers", f"{detail}[]string{{{shown}}}")
