"""Rows of the conformance table: existing objects, a request, and the response of every API server.

Paths and bodies may contain `$ns` (the test's namespace), `$word` (unique to the test) and `$0.metadata.uid` (a value
of the first response). Responses contain `$ns`, `$uid`, `$time` and `$version` instead of values that vary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.programs.polling import eventually
from tests.support.server.apiserver import DEFINITIONS
from tests.support.server.bareapi import BareApi
from tests.support.server.raw_client import PATCHES, JsonResponse, parse
from tests.support.server.shapes import GROUP, SHAPES
from upgrade_manager.kube.transport import Request

_REFUSED = 400
_CREATED = 201
_CONFLICT = 409
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
#: Beginning of a cause's message -> its reason.
_REASONS = {
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Invalid value": "FieldValueInvalid",
    "Not found": "FieldValueNotFound",
    "Required value": "FieldValueRequired",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Unsupported value": "FieldValueNotSupported",
}
_VARIABLE = re.compile(r"\$(ns|word|\d+\.[A-Za-z.]+)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: A patched object that cannot be decoded; the order of its fields differs between servers.
_MADE = re.compile(r'patch: Invalid value: \\"\{.*?\}\\": ')
_MADE_CAUSE = re.compile(r'"Invalid value: \\"\{.*?\}\\": (?=json|strict|illegal|parsing|unable|converting)')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One request."""

    method: str
    path: str
    #: JSON, or bytes; None for no body.
    body: Any = None
    media_type: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)


def post(path: str, body: Any, **query: str) -> ApiCall:
    return ApiCall(method="POST", path=path, body=body, query=query)


def put(path: str, body: Any, **query: str) -> ApiCall:
    return ApiCall(method="PUT", path=path, body=body, query=query)


def merge(path: str, body: Any, **query: str) -> ApiCall:
    """Patch by a merge patch."""
    return ApiCall(method="PATCH", path=path, body=body, media_type=PATCHES["merge"], query=query)


def json_patch(path: str, body: Any, **query: str) -> ApiCall:
    """Patch by a list of operations."""
    return ApiCall(method="PATCH", path=path, body=body, media_type=PATCHES["json"], query=query)


def strategic(path: str, body: Any, **query: str) -> ApiCall:
    """Patch by a strategic merge patch."""
    return ApiCall(method="PATCH", path=path, body=body, media_type=PATCHES["strategic"], query=query)


def delete(path: str, body: Any = None, **query: str) -> ApiCall:
    return ApiCall(method="DELETE", path=path, body=body, query=query)


def get(path: str, **query: str) -> ApiCall:
    return ApiCall(method="GET", path=path, query=query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One behaviour."""

    #: Requests that must succeed first.
    given: tuple[ApiCall, ...] = ()
    when: ApiCall
    #: The code, the warnings, and of a success these fields by dotted path; errors are compared whole.
    then: dict[str, Any]


def merged(groups: Mapping[str, Mapping[str, Row]]) -> dict[str, Row]:
    """Return the rows of all groups by `group: title`."""
    return {f"{group}: {title}": row for group, rows in groups.items() for title, row in rows.items()}


def refused(code: int, reason: str, message: str, details: Any = None) -> dict[str, Any]:
    return {"code": code, "reason": reason, "message": message, "details": details}


def not_found(kind: str, name: str = "one") -> dict[str, Any]:
    """Return the expected error for a missing object; `kind` is `kinds` or `kinds.group`."""
    return refused(404, "NotFound", f'{kind} "{name}" not found', _object(kind, name))


def already_exists(kind: str, prefix: str = "") -> dict[str, Any]:
    """Return the expected error for the taken name "one"; `kind` is `kinds.group`."""
    return refused(409, "AlreadyExists", f'{prefix}{kind} "one" already exists', _object(kind, "one"))


def invalid(kind: str, *causes: tuple[str, ...], name: str = "one") -> dict[str, Any]:
    """Return the expected error for an invalid object; a cause is field, message and, if unusual, reason.

    `kind` is `Kind` or `Kind.group`.
    """
    texts = list(dict.fromkeys(f"{field}: {message}" for field, message, *_ in causes))
    found = [
        {"reason": reason[0] if reason else _REASONS[message.partition(":")[0]], "message": message, "field": field}
        for field, message, *reason in causes
    ]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return refused(422, "Invalid", f'{kind} "{name}" is invalid: {joined}', _object(kind, name) | {"causes": found})


def conflict(kind: str, message: str = MODIFIED) -> dict[str, Any]:
    """Return the expected conflict for the object "one"; `kind` is `Kind` or `Kind.group`."""
    text = f'Operation cannot be fulfilled on {kind} "one": {message}'
    return refused(409, "Conflict", text, _object(kind, "one"))


async def play(api: BareApi, row: Row) -> dict[str, Any]:
    """Send a row's requests and return the last response in the form of `Row.then`."""
    if any(GROUP in ask.path for ask in (*row.given, row.when)):
        await shaped(api)
    answers: list[JsonResponse] = []
    for ask in row.given:
        answers.append(await send(api, ask, answers))
        assert answers[-1].status < _REFUSED, answers[-1].body
    answer = await send(api, row.when, answers)
    seen = _refusal(answer) if answer.status >= _REFUSED else _parts(answer, row.then)
    warnings = re.findall(r'299 - "((?:[^"\\]|\\.)*)"', answer.headers.get("warning", ""))
    if warnings:
        seen["warnings"] = [text.replace('\\"', '"').replace("\\\\", "\\") for text in warnings]
    text = _blanked(json.dumps(seen, ensure_ascii=False), api, [*answers, answer])
    prefix = re.escape(str(_at(row.when.body, "metadata.generateName")))
    if prefix != "absent":
        text = re.sub(rf"(?<={prefix})[b-z2-9]{{5}}\b", "$suffix", text)
    plain: dict[str, Any] = json.loads(text)
    return plain


def _object(kind: str, name: str) -> dict[str, Any]:
    """Return the object's part of an error's details."""
    plain, _, group = kind.partition(".")
    return {key: value for key, value in {"name": name, "group": group, "kind": plain}.items() if value}


async def send(api: BareApi, ask: ApiCall, answers: list[JsonResponse]) -> JsonResponse:
    """Send one request of a row; `answers` are the responses so far."""
    body = b""
    if ask.body is not None:
        text = ask.body if isinstance(ask.body, bytes) else json.dumps(ask.body).encode()
        body = _filled(text.decode("utf-8", "surrogateescape"), api, answers).encode("utf-8", "surrogateescape")
    query = tuple((key, _filled(value, api, answers)) for key, value in ask.query.items())
    headers = {"accept": "application/json"}
    if ask.body is not None and ask.media_type:
        headers["content-type"] = ask.media_type
    path = _filled(ask.path, api, answers)
    return parse(
        await api.transport.send(Request(method=ask.method, path=path, query=query, headers=headers, body=body))
    )


async def shaped(api: BareApi) -> None:
    """Create the custom kinds of `tests.support.server.shapes`."""
    for definition in SHAPES:
        await served(api, definition)


async def served(api: BareApi, definition: dict[str, Any]) -> None:
    """Create a CustomResourceDefinition and wait until its kind is served."""
    spec = definition["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    if (await api.admin.get(path, limit="1")).status < _REFUSED:
        return
    answer = await api.admin.post(DEFINITIONS, definition)
    assert answer.status in {_CREATED, _CONFLICT}, answer.body

    async def is_served() -> bool:
        return (await api.admin.get(path, limit="1")).status < _REFUSED

    await eventually(is_served, seconds=10, pause=0.02)


def _filled(text: str, api: BareApi, answers: list[JsonResponse]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] in {"ns", "word"}:
            return api.namespace if match[1] == "ns" else api.word
        number, _, path = match[1].partition(".")
        return str(_at(answers[int(number)].body, path))

    return _VARIABLE.sub(value, text)


def _blanked(text: str, api: BareApi, answers: list[JsonResponse]) -> str:
    text = _TIME.sub("$time", _UID.sub("$uid", text.replace(api.namespace, "$ns")))
    for answer in answers:
        version = str(_at(answer.body, "metadata.resourceVersion"))
        text = re.sub(
            rf'(resourceVersion": "|n precondition: |object meta: |in record \(){version}\b', r"\1$version", text
        )
    text = _MADE.sub("patch: Invalid value: $object: ", text)
    return _MADE_CAUSE.sub('"Invalid value: $object: ', text)


def _at(value: Any, path: str) -> Any:
    """Return the value at a dotted path, or `absent`."""
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return "absent"
    return value


def _refusal(answer: JsonResponse) -> dict[str, Any]:
    body = answer.body
    if not isinstance(body, dict):
        return {"code": answer.status, "text": body.decode("utf-8", "replace")}
    seen = {"code": answer.status, "reason": body.get("reason", ""), "message": body.get("message", "")}
    seen["details"] = body.get("details")
    _ordered(seen)
    assert (body.get("status"), body.get("code")) == ("Failure", answer.status), body
    return seen


def _ordered(seen: dict[str, Any]) -> None:
    """Sort and deduplicate the causes: kube-apiserver's order is random, and some are repeated."""
    causes = (seen["details"] or {}).get("causes")
    if not causes:
        return
    unique = {(cause.get("field", ""), cause["message"]): cause for cause in causes}
    seen["details"] = seen["details"] | {"causes": [unique[key] for key in sorted(unique)]}
    texts = [f"{field}: {message}" for field, message in sorted(unique)]
    start = seen["message"].find(": [")
    whole = seen["message"][start:]
    if start > 0 and len(whole) == len(f": [{', '.join(texts)}]") and all(text in whole for text in texts):
        seen["message"] = f"{seen['message'][:start]}: [{', '.join(texts)}]"


def _parts(answer: JsonResponse, expected: Mapping[str, Any]) -> dict[str, Any]:
    fields = [key for key in expected if key not in {"code", "warnings"}]
    return {"code": answer.status} | {path: _plain(_at(answer.body, path)) for path in fields}


def _plain(value: Any) -> Any:
    """Drop managedFields, which the embedded server does not have."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "managedFields"}
    return [_plain(item) for item in value] if isinstance(value, list) else value
