"""The admission stages that use schemas."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.crds import CRDS
from hack.apiserver.rbac import GROUP as RBAC
from hack.apiserver.schema.cel_rules import validate_rules
from hack.apiserver.schema.correlation import ABSENT, Old
from hack.apiserver.schema.decoding import DecodingError, completed, decode
from hack.apiserver.schema.defaulting import apply_defaults, without_nulls
from hack.apiserver.schema.definition import unoffered
from hack.apiserver.schema.facets import facets
from hack.apiserver.schema.field_error import BLOCKING, FieldError, invalid
from hack.apiserver.schema.go_types import object_meta, type_of
from hack.apiserver.schema.list_types import validate_lists
from hack.apiserver.schema.object_meta import validate_create, validate_update
from hack.apiserver.schema.pruning import prune
from hack.apiserver.schema.validation import validate as validate_schema
from hack.apiserver.status import bad_request, invalid_patch
from hack.apiserver.status import invalid as invalid_object

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row
    from hack.apiserver.status import StatusError

#: The default of fieldValidation.
DEFAULT_FIELD_VALIDATION = "Warn"

_METADATA = object_meta()

_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def shape(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Check types, prune and default by the schema; a mutating stage. Raises StatusError 400."""
    if operation == "DELETE":
        return new
    unknown: list[str] = []
    sent = new
    try:
        new = _shaped(row, new, old, unknown)
    except DecodingError as error:
        message = str(error)
        raise _undecodable(row, sent, message, options) from error
    _report(row, sent, unknown, options)
    return new


def _shaped(row: Row, new: Object, old: Object | None, unknown: list[str]) -> Object:
    kind = None if row.custom else type_of(row.resource.name)
    if kind is not None:
        head = {key: new[key] for key in ("kind", "apiVersion")}
        rest = {key: value for key, value in new.items() if key not in head}
        decoded: Object = decode(rest, kind, unknown=unknown, old=old)
        return head | {"metadata": {}} | decoded
    metadata = new.get("metadata") or {}
    strange: list[str] = []
    decode(metadata, _METADATA, unknown=strange)
    unknown += [f"metadata.{path}" for path in strange]
    if row.schema is not None:
        new, pruned = prune(new, row.schema, old=old)
        unknown += pruned
        defaults = facets(row.schema).defaults
        new = new if defaults is None else apply_defaults(new, defaults)
        new = without_nulls(new, row.schema, old=old)
    return new


def _undecodable(row: Row, sent: Object, message: str, options: WriteOptions) -> StatusError:
    """Return the error for a body that cannot be decoded: 400, or 422 for a patch."""
    if options.patch:
        return invalid_patch(json.dumps(sent, separators=(",", ":")), message)
    return bad_request(_unhandled(row, message))


def _unhandled(row: Row, message: str) -> str:
    resource = row.resource
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {message}'


def _report(row: Row, sent: Object, unknown: list[str], options: WriteOptions) -> None:
    """Refuse, warn of or ignore dropped fields, by fieldValidation."""
    mode = options.field_validation or DEFAULT_FIELD_VALIDATION
    if mode == "Ignore" or not unknown:
        return
    errors = [f'unknown field "{path}"' for path in unknown]
    if mode == "Strict":
        raise _undecodable(row, sent, "strict decoding error: " + ", ".join(errors), options)
    options.warnings.extend(errors)


def validate(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Validate by structural schema and CEL rules; a validating stage. Raises StatusError 422."""
    if operation == "DELETE":
        return new
    new = _of_kind(row, new)
    errors = _metadata(row, new, old)
    if row.schema is not None:
        errors += _schema(row.schema, new, old, options)
    if row.resource.name == CRDS.name:
        errors += unoffered(new)
    if errors:
        raise invalid_object(row.resource, new["metadata"].get("name", ""), errors)
    return new


def _of_kind(row: Row, new: Object) -> Object:
    """Check the kind of a custom object; complete a built-in one."""
    if not row.custom:
        kind = type_of(row.resource.name)
        return new if kind is None else completed(new, kind)
    errors = [
        invalid(key, new[key], f"must be {expected}")
        for key, expected in (("apiVersion", row.resource.api_version), ("kind", row.resource.kind))
        if new[key] != expected
    ]
    if errors:
        group = new["apiVersion"].rpartition("/")[0]
        given = replace(row.resource, kind=new["kind"], group=group)
        raise invalid_object(given, new["metadata"].get("name", ""), errors)
    return new


def _metadata(row: Row, new: Object, old: Object | None) -> list[FieldError]:
    if old is None:
        # The names of roles and bindings may contain colons.
        return validate_create(new["metadata"], subdomain=row.resource.group != RBAC)
    return validate_update(new["metadata"], old["metadata"])


def _schema(schema: dict[str, Any], new: Object, old: Object | None, options: WriteOptions) -> list[FieldError]:
    before = ABSENT if old is None else Old(present=True, value=old)
    if options.subresource == "status":
        errors = _status(new, schema, before)
    else:
        errors = validate_schema(new, schema, old=before)
    errors += _lists(facets(schema).lists, new, old)
    rules = facets(schema).rules
    if rules is None:
        return errors
    if any(error.error_type in BLOCKING for error in errors):
        return [*errors, invalid("", None, _UNCHECKED)]
    return [*errors, *validate_rules(new, rules, old=before)]


def _status(new: Object, schema: dict[str, Any], before: Old) -> list[FieldError]:
    """Return the errors of the status alone, with paths relative to it, as kube-apiserver does."""
    if "status" not in new:
        return []
    part = (schema.get("properties") or {}).get("status") or {}
    found = validate_schema(new["status"], part, old=before.child("status"))
    return [replace(error, field=f"status.{error.field}" if error.field else "status") for error in found]


def _lists(schema: dict[str, Any] | None, new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of sets and maps; none where the old state had some already."""
    if schema is None:
        return []
    errors = list(validate_lists(new, schema))
    return errors if old is None or not any(validate_lists(old, schema)) else []
