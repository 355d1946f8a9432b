"""What a webhook configuration has to look like, and what of it this server does not offer and therefore refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.expression import ExpressionError, compiled, uses
from hack.apiserver.matching import CONFIGURATIONS
from hack.apiserver.schema.field_error import FieldError, invalid, not_supported, required
from hack.apiserver.status import forbidden
from hack.apiserver.status import invalid as invalid_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
_EFFECTS = ("None", "NoneOnDryRun")
_POLICIES = ("Fail", "Ignore")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_VERSIONS = ("v1", "v1beta1")
_SECONDS = range(1, 31)
_SEGMENTS = 3


def hook_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """A validating stage for webhook configurations. Raises StatusError 403 or 422."""
    _ = (old, operation, options)
    if row.resource.name not in CONFIGURATIONS:
        return new
    hooks = new.get("webhooks") or []
    faults = [fault for index, hook in enumerate(hooks) for fault in _faults(hook, f"webhooks[{index}]")]
    if faults:
        raise invalid_object(row.resource, new["metadata"]["name"], faults)
    if hooks and row.resource.name == MUTATING:
        why = "this API server calls no mutating webhooks"
        raise forbidden(row.resource, new["metadata"]["name"], why)
    return new


def _faults(hook: Object, path: str) -> Iterator[FieldError]:
    if hook["name"].count(".") < _SEGMENTS - 1:
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
    yield from _versions(hook.get("admissionReviewVersions"), f"{path}.admissionReviewVersions")
    for index, rule in enumerate(hook.get("rules") or ()):
        for place, operation in enumerate(rule.get("operations") or ()):
            if operation not in _OPERATIONS:
                yield not_supported(f"{path}.rules[{index}].operations[{place}]", operation, _OPERATIONS)
    yield from _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    for index, condition in enumerate(hook.get("matchConditions") or ()):
        yield from _condition(condition, f"{path}.matchConditions[{index}]")


def _versions(versions: list[str] | None, path: str) -> Iterator[FieldError]:
    known = ", ".join(_VERSIONS)
    if not versions:
        yield required(path, f"must specify one of {known}")
    elif not set(versions) & set(_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {known}")


def _client(config: Object, path: str) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if bool(url) == bool(service):
        yield required(path, "exactly one of url or service is required")
    elif url and not url.startswith("https://"):
        scheme = url.partition("://")[0]
        yield invalid(
            f"{path}.url", scheme, "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        )


def _condition(condition: Object, path: str) -> Iterator[FieldError]:
    source = condition.get("expression", "")
    try:
        compiled(source)
    except ExpressionError as error:
        yield invalid(f"{path}.expression", source, f"compilation failed: {error}")
        return
    if uses(source, "authorizer"):
        yield invalid(f"{path}.expression", source, "this API server offers no authorizer in conditions")
