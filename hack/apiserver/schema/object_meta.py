"""Validation of `metadata` for every kind: names, namespace, labels, annotations, owners, finalizers.

It follows ValidateObjectMetaAccessor and ValidateObjectMetaAccessorUpdate of apimachinery 1.35. The metadata must have
been decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import FieldError, forbidden, invalid, too_long
from hack.apiserver.schema.names import dns_subdomain, label_value, qualified_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The limit in bytes of all annotations of one object.
ANNOTATIONS_SIZE = 256 * 1024

#: Immutable fields in the order in which they are reported.
IMMUTABLE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def validate_create(meta: Mapping[str, Any], *, subdomain: bool = True) -> list[FieldError]:
    """Return the errors of a new object; `subdomain` if its name, which exists, must be a DNS subdomain."""
    return [*(_name(meta) if subdomain else ()), *_maps_and_owners(meta), *_finalizers(meta.get("finalizers") or [])]


def validate_update(meta: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldError]:
    """Return the errors of a changed object."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _no_new_finalizers(meta, old)
    for key in IMMUTABLE:
        if (meta.get(key) or None) != (old.get(key) or None):
            errors.append(invalid(f"metadata.{key}", meta.get(key), "field is immutable"))
    return [*errors, *_maps_and_owners(meta), *_finalizers(meta.get("finalizers") or [])]


def _name(meta: Mapping[str, Any]) -> Iterator[FieldError]:
    prefix = meta.get("generateName") or ""
    # A prefix may end in a dash.
    for error in dns_subdomain(prefix.rstrip("-")) if prefix else ():
        yield invalid("metadata.generateName", prefix, error)
    for error in dns_subdomain(meta["name"]):
        yield invalid("metadata.name", meta["name"], error)


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
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield invalid(f"metadata.ownerReferences.{key}", owner.get(key) or "", "must not be empty")


def _finalizers(finalizers: list[str]) -> Iterator[FieldError]:
    for name in finalizers:
        for error in qualified_name(name):
            yield invalid("metadata.finalizers", name, error)


def _no_new_finalizers(meta: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[FieldError]:
    extra = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if extra:
        shown = ", ".join(f'"{name}"' for name in extra)
        detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
        yield forbidden("metadata.finalizers", f"{detail}[]string{{{shown}}}")
