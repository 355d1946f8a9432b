"""Validation of webhook configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.expression import ExpressionError, compiled
from hack.apiserver.matching import CONFIGURATIONS
from hack.apiserver.schema.field_error import FieldError, invalid, not_supported, required
from hack.apiserver.status import invalid as invalid_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row

_EFFECTS = ("None", "NoneOnDryRun")
_POLICIES = ("Fail", "Ignore")
_SECONDS = range(1, 31)


def hook_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Check a webhook configuration; a validating stage. Raises StatusError 422."""
    _ = (old, operation, options)
    if row.resource.name not in CONFIGURATIONS:
        return new
    hooks = new.get("webhooks") or []
    errors = [error for index, hook in enumerate(hooks) for error in _hook_errors(hook, f"webhooks[{index}]")]
    if errors:
        raise invalid_object(row.resource, new["metadata"]["name"], errors)
    return new


def _hook_errors(hook: Object, path: str) -> Iterator[FieldError]:
    if hook["name"].count(".") < 2:  # noqa: PLR2004  # three segments
        detail = "should be a domain with at least three segments separated by dots"
        yield invalid(f"{path}.name", hook["name"], detail)
    if hook.get("failurePolicy", "Fail") not in _POLICIES:
        yield not_supported(f"{path}.failurePolicy", hook["failurePolicy"], _POLICIES)
    if not hook.get("sideEffects"):
        yield required(f"{path}.sideEffects", f"must specify one of {', '.join(_EFFECTS)}")
    elif hook["sideEffects"] not in _EFFECTS:
        yield not_supported(f"{path}.sideEffects", hook["sideEffects"], _EFFECTS)
    if hook.get("timeoutSeconds", 1) not in _SECONDS:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], detail)
    if "v1" not in (hook.get("admissionReviewVersions") or ()):
        yield required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
    config = hook.get("clientConfig") or {}
    if bool(config.get("url")) == bool(config.get("service")):
        yield required(f"{path}.clientConfig", "exactly one of url or service is required")
    for index, condition in enumerate(hook.get("matchConditions") or ()):
        try:
            compiled(condition["expression"])
        except ExpressionError as error:
            yield invalid(f"{path}.matchConditions[{index}].expression", condition["expression"], str(error))
