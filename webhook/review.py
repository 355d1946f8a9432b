"""The AdmissionReview of admission.k8s.io/v1: its request, and the response to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import GROUP, KIND
from webhook import fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.check import Finding

API_VERSION, REVIEW = "admission.k8s.io/v1", "AdmissionReview"
_INVALID = 422
#: Bytes of an annotation or message that the API server shows.
_MAX_NAME = 253


class BadReview(Exception):
    """The body is not an AdmissionReview of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """What is to be admitted; objects are as in the review, of any type."""

    uid: str
    operation: str
    kind: str
    subresource: str
    #: The name, or for a name that is not generated yet its prefix.
    name: str
    new: object
    old: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision: denied if there are findings."""

    findings: Sequence[Finding] = ()
    warnings: Sequence[str] = ()


def parse(body: bytes) -> AdmissionRequest:
    """Read a review. Raises BadReview, whose text is for the sender."""
    try:
        review = json.loads(body)
    # ValueError: no JSON, no UTF-8, or a number with too many digits.
    except (ValueError, RecursionError) as error:
        raise BadReview(f"the body is not JSON: {type(error).__name__}") from error
    if fields.text(review, "kind") != REVIEW or fields.text(review, "apiVersion") != API_VERSION:
        raise BadReview(f"the body is not an {REVIEW} of {API_VERSION}")
    request = fields.mapping(review, "request")
    if not fields.text(request, "uid"):
        raise BadReview(f"the {REVIEW} has no request with a uid")
    new, old = request.get("object"), request.get("oldObject")
    return AdmissionRequest(
        uid=fields.text(request, "uid"),
        operation=fields.text(request, "operation"),
        kind=fields.text(request, "kind", "kind"),
        subresource=fields.text(request, "subResource"),
        name=fields.text(request, "name") or fields.name(new) or fields.text(new, "metadata", "generateName"),
        new=new,
        old=old,
    )


def respond(request: AdmissionRequest, verdict: Verdict) -> dict[str, Any]:
    """Return the review with the response."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": not verdict.findings}
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    if verdict.findings:
        response["status"] = _status(request.name, verdict.findings)
    return {"apiVersion": API_VERSION, "kind": REVIEW, "response": response}


def _status(name: str, findings: Sequence[Finding]) -> Mapping[str, Any]:
    """Return the Status of an invalid object, as kube-apiserver reports one; kubectl prints the causes."""
    texts = [f"{one.field}: {one.message}" for one in findings]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": "FieldValueInvalid", "field": one.field, "message": one.message} for one in findings]
    return {
        "code": _INVALID,
        "reason": "Invalid",
        "message": f'{KIND}.{GROUP} "{name}" is invalid: {joined}',
        "details": {"group": GROUP, "kind": KIND, "name": name, "causes": causes},
    }
