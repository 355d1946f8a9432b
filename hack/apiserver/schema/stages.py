"""The admission stages that know schemas."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.builtins import builtin_errors, name_rule
from hack.apiserver.schema.celrules import validate_rules
from hack.apiserver.schema.correlation import ABSENT, Old
from hack.apiserver.schema.decode import mistyped_metadata, unknown_metadata
from hack.apiserver.schema.defaulting import apply_defaults
from hack.apiserver.schema.facets import facets
from hack.apiserver.schema.fielderror import BLOCKING, Fault, FieldError, invalid
from hack.apiserver.schema.listtypes import validate_lists
from hack.apiserver.schema.objectmeta import finalizer_warnings, validate_create, validate_update
from hack.apiserver.schema.pruning import prune
from hack.apiserver.schema.validation import validate as validate_schema
from hack.apiserver.status import bad_request
from hack.apiserver.status import invalid as invalid_object

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row
    from hack.apiserver.status import StatusError

#: What fieldValidation means when a request does not say.
DEFAULT_FIELD_VALIDATION = "Warn"

#: What Go's decoder calls a JSON type, and, after "to", the type that it decodes to.
_GO_NAMES = {"integer": "number", "boolean": "bool", "to integer": "int32", "to boolean": "bool"}

_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def shape(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Unknown fields (fieldValidation), pruning and defaulting; a mutating stage. Raises StatusError 400."""
    if operation == "DELETE":
        return new
    fault = mistyped_metadata(new.get("metadata") or {})
    if fault:
        raise _undecodable(row, new, fault, options)
    unknown: list[str] = []
    sent = new
    if row.custom and row.schema is not None:
        new, unknown = prune(new, row.schema, old=old)
        defaults = facets(row.schema).defaults
        new = new if defaults is None else apply_defaults(new, defaults)
    _report(row, sent, unknown, options)
    return new


def _undecodable(row: Row, sent: Object, fault: str, options: WriteOptions) -> StatusError:
    """A body that does not fit the kind is a bad request; a patch that makes such an object is an invalid patch."""
    resource = row.resource
    if not options.patch:
        return bad_request(_unhandled(row, fault))
    cause = invalid("patch", json.dumps(sent, separators=(",", ":")), fault).cause()
    nameless = replace(resource, group="", kind="")
    return invalid_object(nameless, "", [cause])


def _unhandled(row: Row, fault: str) -> str:
    resource = row.resource
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {fault}'


def _report(row: Row, sent: Object, unknown: list[str], options: WriteOptions) -> None:
    """Refuse, warn or be silent about fields that are lost, as the client asked; metadata is only ever refused."""
    mode = options.field_validation or DEFAULT_FIELD_VALIDATION
    faults = [f'unknown field "{path}"' for path in unknown]
    if mode == "Strict":
        strange = [f'unknown field "{path}"' for path in unknown_metadata(sent.get("metadata") or {})] + faults
        if strange:
            raise _undecodable(row, sent, "strict decoding error: " + ", ".join(strange), options)
    elif mode == "Warn":
        options.warnings.extend(faults)


def validate(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Structural schema and CEL rules; a validating stage. Raises StatusError 422."""
    if operation == "DELETE":
        return new
    errors = _metadata(row, new, old)
    if row.schema is not None:
        errors += _schema(row, row.schema, new, old, options)
    errors += builtin_errors(row, new, old)
    if errors:
        raise invalid_object(row.resource, new["metadata"].get("name", ""), [error.cause() for error in errors])
    if row.custom and not options.subresource:
        options.warnings.extend(finalizer_warnings(new["metadata"], old["metadata"] if old else None))
    return new


def _metadata(row: Row, new: Object, old: Object | None) -> list[FieldError]:
    if old is None:
        return validate_create(new["metadata"], namespaced=row.resource.namespaced, name_rule=name_rule(row))
    return validate_update(new["metadata"], old["metadata"])


def _schema(
    row: Row, schema: dict[str, Any], new: Object, old: Object | None, options: WriteOptions
) -> list[FieldError]:
    before = ABSENT if old is None else Old(present=True, value=old)
    if not row.custom:
        return _builtin(row, validate_schema(new, schema, old=before))
    if options.subresource == "status":
        errors = _status(new, schema, before)
    else:
        errors = validate_schema(new, schema, old=before)
    errors += _lists(facets(schema).lists, new, old)
    rules = facets(schema).rules
    if rules is None:
        return errors
    if any(error.fault in BLOCKING for error in errors):
        return [*errors, invalid("", None, _UNCHECKED)]
    return [*errors, *validate_rules(new, rules, old=before)]


def _builtin(row: Row, errors: list[FieldError]) -> list[FieldError]:
    """The findings; a wrong type in a built-in kind is refused already where the object is decoded."""
    wrong = next((error for error in errors if error.fault is Fault.TYPE_INVALID), None)
    if wrong is None:
        return errors
    expected = wrong.detail.rpartition(" must be of type ")[2].partition(":")[0]
    fault = "illegal base64 data at input byte 0"
    if expected != "byte":
        given, wanted = _GO_NAMES.get(wrong.value, wrong.value), _GO_NAMES.get(f"to {expected}", expected)
        field = f"{row.resource.kind}.{wrong.field}"
        fault = f"json: cannot unmarshal {given} into Go struct field {field} of type {wanted}"
    raise bad_request(_unhandled(row, fault))


def _status(new: Object, schema: dict[str, Any], before: Old) -> list[FieldError]:
    """Findings about the status alone, whose texts name fields relative to it, as the real server's do."""
    if "status" not in new:
        return []
    part = (schema.get("properties") or {}).get("status") or {}
    found = validate_schema(new["status"], part, old=before.child("status"))
    return [replace(error, field=f"status.{error.field}" if error.field else "status") for error in found]


def _lists(schema: dict[str, Any] | None, new: Object, old: Object | None) -> list[FieldError]:
    """Findings about sets and maps; none where the old state had some already."""
    if schema is None:
        return []
    errors = list(validate_lists(new, schema))
    return errors if old is None or not any(validate_lists(old, schema)) else []
