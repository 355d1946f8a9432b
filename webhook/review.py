"""The AdmissionReview of admission.k8s.io/v1: its request, and the response to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn

from upgrade_manager.api.keys import API_VERSION as PLAN_API_VERSION
from upgrade_manager.api.keys import GROUP, KIND
from upgrade_manager.api.spec import MAX_OBJECT_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.check import CheckResult, Finding

API_VERSION, REVIEW = "admission.k8s.io/v1", "AdmissionReview"
#: The kind of the objects to review, as `AdmissionRequest.kind` shows it.
PLAN_KIND = f"{PLAN_API_VERSION}, Kind={KIND}"
#: Bytes of a message; kube-apiserver itself cuts warnings to fewer bytes.
MAX_MESSAGE = 1024
#: Of Harvester's own upgrades.
UPGRADE_KIND = f"{UPGRADES.api_version}, Kind={UPGRADES.kind}"
_MAX_UID = 128
#: The most lists and mappings of a review, counted by opening brackets, also in its texts: 3 MiB of brackets would hold
#: up other requests for 0.6 s. A plan of 5,000 nodes has fewer, including its managed fields.
MAX_BRACKETS = 100_000
_UNPROCESSABLE = 422


class BadReview(Exception):
    """The request is not an AdmissionReview of this version; the text is for the sender."""

    def __init__(self, message: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The user who sent the request to the API server, as authenticated by the API server."""

    name: str = ""
    uid: str = ""
    #: The number of groups.
    groups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """The request to admit; its objects are the review's unchecked values of any type."""

    uid: str
    operation: str
    #: Group, version and kind, as in PLAN_KIND.
    kind: str
    subresource: str
    #: The plan's name, or the prefix of a name that the API server has not generated yet.
    name: str
    new: object
    old: object
    user: Requester = Requester()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision: denied if there are findings."""

    findings: Sequence[Finding] = ()
    warnings: Sequence[str] = ()
    #: The results of the checks behind the decision, for metrics.
    checks: Sequence[CheckResult] = ()

    @property
    def is_allowed(self) -> bool:
        """True without findings."""
        return not self.findings


def parse(body: bytes) -> AdmissionRequest:
    """Read a review. Raises BadReview."""
    if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
        raise BadReview(f"the body has more than {MAX_BRACKETS:,} lists and mappings")
    try:
        text = body.decode()
        review = json.loads(text, parse_constant=_reject)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(review, ensure_ascii=False).encode()
    # ValueError: not JSON, not UTF-8, a number with too many digits, or an escape that is half a character.
    except (ValueError, RecursionError) as error:
        raise BadReview(f"the body is not JSON: {type(error).__name__}") from error
    if objects.text(review, "kind") != REVIEW or objects.text(review, "apiVersion") != API_VERSION:
        raise BadReview(f"the body is not an {REVIEW} of {API_VERSION}")
    request = objects.mapping(review, "request")
    uid = objects.text(request, "uid")
    if not 0 < len(uid) <= _MAX_UID:
        raise BadReview(f"the {REVIEW} has no request with a uid")
    new, old = request.get("object"), request.get("oldObject")
    return AdmissionRequest(
        uid=uid,
        operation=objects.text(request, "operation"),
        kind=_kind(objects.mapping(request, "kind")),
        subresource=objects.text(request, "subResource"),
        # The deletion of a collection sends requests without a name.
        name=objects.text(request, "name") or objects.name(new) or _prefix(new) or objects.name(old),
        new=new,
        old=old,
        user=_requester(request.get("userInfo")),
        dry_run=objects.is_true(request, "dryRun"),
    )


def respond(request: AdmissionRequest, verdict: Verdict) -> dict[str, Any]:
    """Return the review with the response."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": verdict.is_allowed}
    if verdict.warnings:
        response["warnings"] = [printable(warning) for warning in verdict.warnings]
    if verdict.findings:
        group, kind = (UPGRADES.group, UPGRADES.kind) if request.kind == UPGRADE_KIND else (GROUP, KIND)
        name = printable(request.name, limit=MAX_OBJECT_NAME)
        response["status"] = _status(name, verdict.findings, group=group, kind=kind)
    return {"apiVersion": API_VERSION, "kind": REVIEW, "response": response}


def printable(text: str, *, limit: int = MAX_MESSAGE) -> str:
    """Return the text for a terminal, without control characters and lone surrogates, in at most `limit` bytes."""
    shown = "".join(char if char.isprintable() else "?" for char in text[:limit])
    data = shown.encode()
    if len(data) <= limit and len(text) <= limit:
        return shown
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"


def _status(name: str, findings: Sequence[Finding], *, group: str, kind: str) -> Mapping[str, Any]:
    """Return the Status of an invalid object, as kube-apiserver reports one; kubectl prints the causes."""
    causes = [
        {
            "reason": "FieldValueInvalid",
            "field": printable(one.field, limit=MAX_OBJECT_NAME),
            "message": printable(one.message),
        }
        for one in findings
    ]
    texts = [": ".join(filter(None, (cause["field"], cause["message"]))) for cause in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return {
        "code": _UNPROCESSABLE,
        "reason": "Invalid",
        "message": f'{kind}.{group} "{name}" is invalid: {joined}',
        "details": {"group": group, "kind": kind, "name": name, "causes": causes},
    }


def _kind(kind: Mapping[str, Any]) -> str:
    group, version, name = (objects.text(kind, key) for key in ("group", "version", "kind"))
    return f"{group}/{version}, Kind={name}"


def _requester(info: object) -> Requester:
    name, uid = objects.text(info, "username"), objects.text(info, "uid")
    return Requester(name=name, uid=uid, groups=len(objects.items(info, "groups")))


def _prefix(obj: object) -> str:
    return objects.text(obj, "metadata", "generateName")


def _reject(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
