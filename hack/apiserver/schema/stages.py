"""The admission stages that know schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.builtins import builtin_errors, name_rule
from hack.apiserver.schema.celrules import validate_rules
from hack.apiserver.schema.correlation import ABSENT, Old
from hack.apiserver.schema.decode import mistyped_metadata, unknown_metadata
from hack.apiserver.schema.defaulting import apply_defaults
from hack.apiserver.schema.facets import facets
from hack.apiserver.schema.fielderror import BLOCKING, FieldError, invalid
from hack.apiserver.schema.listtypes import validate_lists
from hack.apiserver.schema.objectmeta import finalizer_warnings, validate_create, validate_update
from hack.apiserver.schema.pruning import prune
from hack.apiserver.schema.validation import validate as validate_schema
from hack.apiserver.status import bad_request
from hack.apiserver.status import invalid as invalid_object

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row

#: What fieldValidation means when a request does not say.
DEFAULT_FIELD_VALIDATION = "Warn"

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
        raise bad_request(_undecodable(row, fault))
    unknown = unknown_metadata(new.get("metadata") or {})
    if row.custom and row.schema is not None:
        new, dropped = prune(new, row.schema, old=old)
        unknown = sorted([*unknown, *dropped])
        defaults = facets(row.schema).defaults
        new = new if defaults is None else apply_defaults(new, defaults)
    _report([f'unknown field "{path}"' for path in unknown], options)
    return new


def _undecodable(row: Row, fault: str) -> str:
    resource = row.resource
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {fault}'


def _report(faults: list[str], options: WriteOptions) -> None:
    """Refuse, warn or be silent about fields that are lost, as the client asked."""
    mode = options.field_validation or DEFAULT_FIELD_VALIDATION
    if faults and mode == "Strict":
        raise bad_request("strict decoding error: " + ", ".join(faults))
    if mode == "Warn":
        options.warnings.extend(faults)


def validate(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Structural schema and CEL rules; a validating stage. Raises StatusError 422."""
    if operation == "DELETE":
        return new
    errors = _metadata(row, new, old)
    if row.schema is not None:
        errors += _schema(row, row.schema, new, old)
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


def _schema(row: Row, schema: dict[str, Any], new: Object, old: Object | None) -> list[FieldError]:
    before = ABSENT if old is None else Old(present=True, value=old)
    errors = validate_schema(new, schema, old=before)
    if not row.custom:
        return errors
    errors += _lists(facets(schema).lists, new, old)
    rules = facets(schema).rules
    if rules is None:
        return errors
    if any(error.fault in BLOCKING for error in errors):
        return [*errors, invalid("", None, _UNCHECKED)]
    return [*errors, *validate_rules(new, rules, old=before)]


def _lists(schema: dict[str, Any] | None, new: Object, old: Object | None) -> list[FieldError]:
    """Findings about sets and maps; none where the old state had some already."""
    if schema is None:
        return []
    errors = list(validate_lists(new, schema))
    return errors if old is None or not any(validate_lists(old, schema)) else []
