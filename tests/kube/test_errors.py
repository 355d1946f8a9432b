from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.server.kube_server import status_object
from upgrade_manager.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Terminal,
    Throttled,
    Transient,
    error_from_response,
    error_from_status,
    is_too_large_resource_version,
    parse_retry_after,
    policy_refusal,
)

CLASSES: dict[str, tuple[int, str, type[KubeError]]] = {
    "400": (400, "BadRequest", Invalid),
    "401, credentials may be renewed": (401, "Unauthorized", Transient),
    "403": (403, "Forbidden", Forbidden),
    "404": (404, "NotFound", NotFound),
    "405": (405, "MethodNotAllowed", Terminal),
    "408": (408, "", Transient),
    "409 Conflict": (409, "Conflict", Conflict),
    "409 AlreadyExists": (409, "AlreadyExists", AlreadyExists),
    "410 Gone": (410, "Gone", Gone),
    "410 Expired": (410, "Expired", Gone),
    "410 without a reason": (410, "", Gone),
    "415": (415, "UnsupportedMediaType", Terminal),
    "422": (422, "Invalid", Invalid),
    "429": (429, "TooManyRequests", Throttled),
    "500": (500, "InternalError", Transient),
    "503": (503, "ServiceUnavailable", Transient),
    "504": (504, "Timeout", Transient),
}


@pytest.mark.parametrize(("code", "reason", "kind"), CLASSES.values(), ids=CLASSES.keys())
@pytest.mark.parametrize("is_event", [False, True], ids=["response", "event"])
def test_status_and_reason_choose_the_class(code: int, reason: str, kind: type[KubeError], *, is_event: bool) -> None:
    obj = status_object(code, reason, message="because", details={"name": "x"})
    if is_event:
        error = error_from_status("watch nodes", obj)
    else:
        error = error_from_response("watch nodes", code, {}, json.dumps(obj).encode())
    assert type(error) is kind
    assert (error.status, error.reason, error.details) == (code, reason, {"name": "x"})
    assert str(error) == f"watch nodes: {code} {reason + ': ' if reason else ''}because"


BODIES = {
    "text": b"upstream failed",
    "nothing": b"",
    "a list": b"[]",
    "another object": b'{"kind":"Pod","reason":"Gone"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_body_that_is_not_a_status_object_is_ignored(body: bytes) -> None:
    error = error_from_response("get pods x", 502, {}, body)
    assert (type(error), str(error)) == (Transient, "get pods x: 502")


RETRY_AFTER: dict[str, tuple[int, Mapping[str, str], Any, float | None]] = {
    "429 with a header": (429, {"retry-after": "7"}, None, 7),
    "429 without": (429, {}, None, 1),
    "429 with details": (429, {}, {"retryAfterSeconds": 4}, 4),
    "the header counts before details": (429, {"retry-after": "7"}, {"retryAfterSeconds": 4}, 7),
    "503 with a header": (503, {"retry-after": "2"}, None, 2),
    "503 with a date": (503, {"retry-after": "Fri, 21 Nov 2025 09:00:00 GMT"}, None, None),
    "503 with details": (503, {}, {"retryAfterSeconds": 4}, 4),
    "503 with details of another type": (503, {}, {"retryAfterSeconds": "4"}, None),
    "503 with details that are none": (503, {}, "x", None),
    "404 with a header": (404, {"retry-after": "2"}, None, None),
}


@pytest.mark.parametrize(("code", "headers", "details", "wait"), RETRY_AFTER.values(), ids=RETRY_AFTER.keys())
def test_retry_after_of_an_error(code: int, headers: Mapping[str, str], details: Any, wait: float | None) -> None:
    error = error_from_response("x", code, headers, json.dumps(status_object(code, details=details)).encode())
    assert (error.retry_after if isinstance(error, Throttled) else None) == wait


def test_retry_after_is_whole_seconds() -> None:
    assert parse_retry_after({"retry-after": " 5 "}) == 5
    assert parse_retry_after({"retry-after": "0"}) == 0
    assert [parse_retry_after({"retry-after": text}) for text in ("", "-1", "1.5", "²", "soon")] == [None] * 5


OLD_CAUSE = {"causes": [{"reason": "x", "message": "Too large resource version"}]}
TOO_LARGE: dict[str, tuple[KubeError, bool]] = {
    "the cause": (Transient("x", details={"causes": ["x", {"reason": "ResourceVersionTooLarge"}]}), True),
    "the cause of an old server": (Transient("x", reason="Timeout", details=OLD_CAUSE), True),
    "the message of a very old server": (Transient("x: Too large resource version: 7", reason="Timeout"), True),
    "another timeout": (Transient("x", reason="Timeout"), False),
    "no causes": (Transient("x", reason="Timeout", details={"causes": None}), False),
    "causes of another type": (Transient("x", reason="Timeout", details={"causes": 7}), False),
    "another cause": (Transient("x", reason="Timeout", details={"causes": [{"reason": "x"}]}), False),
    "the message without the reason": (Transient("Too large resource version", details=OLD_CAUSE), False),
}


@pytest.mark.parametrize(("error", "expected"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_too_large_version_is_found_as_client_go_does(error: KubeError, *, expected: bool) -> None:
    assert is_too_large_resource_version(error) is expected


DENIED = "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no"
FIELD = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.template"}
#: As kube-apiserver 1.35 responds; tests/deploy/test_manager_policies.py checks the first and the RBAC rows.
REFUSALS: dict[str, tuple[Any, str]] = {
    "a policy": ({"name": "x", "causes": [{"message": DENIED}]}, DENIED),
    "a schema": ({"name": "x", "causes": [FIELD]}, ""),
    "a policy after a schema": ({"causes": [FIELD, {"message": DENIED}]}, DENIED),
    "RBAC": ({"name": "x", "kind": "jobs"}, ""),
    "causes of another type": ({"causes": 7}, ""),
    "a cause of another type": ({"causes": ["message"]}, ""),
}


@pytest.mark.parametrize(("details", "refusal"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal_of_a_policy_is_found_by_its_cause(details: Any, refusal: str) -> None:
    assert policy_refusal(Invalid("x", details=details)) == refusal


def test_status_without_code_and_reason_is_transient() -> None:
    error = error_from_status("watch nodes", {"code": "x", "reason": 7, "message": None})
    assert (type(error), str(error)) == (Transient, "watch nodes: 0")
