"""The mutating webhook: it sets the annotations that name a plan's creator and the user of its last change.

It warns of what a failed plan has left, when a user deletes it (debts.py).

`server` calls it; `upgrade_manager.api.attribution` has the hash, and the manager's half. The mutating webhook denies
no request. The admission policy (deploy/admission-policies) refuses names that are not the user's own.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.attribution import digest, signed
from upgrade_manager.api.keys import ANNOTATION_CREATED_BY, ANNOTATION_LAST_CHANGED_BY
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.kube import objects
from webhook import debts
from webhook.review import API_VERSION, PLAN_KIND, REVIEW

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.review import AdmissionRequest

PATH = "/mutate-management-harvesterhci-io-v1beta1-upgradeplan"
#: Bytes of all keys and values that Kubernetes allows: a change must not fail because its user is recorded.
MAX_ANNOTATIONS = 256 << 10


def respond(request: AdmissionRequest) -> dict[str, Any]:
    """Return the review with the response: allowed, with a JSON patch if there is something to record."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": True}
    if operations := _operations(request):
        patch = base64.b64encode(json.dumps(operations).encode()).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    if warnings := debts.warnings_of(request):
        response["warnings"] = warnings
    return {"apiVersion": API_VERSION, "kind": REVIEW, "response": response}


def _operations(request: AdmissionRequest) -> Sequence[Mapping[str, Any]]:
    present = objects.strings(request.new, "metadata", "annotations")
    added = _annotations(request)
    if not added or _size({**present, **added}) > MAX_ANNOTATIONS:
        return []
    # The object that is reviewed may have no annotations, or null.
    if not present:
        return [{"op": "add", "path": "/metadata/annotations", "value": added}]
    return [{"op": "add", "path": _pointer(key), "value": value} for key, value in added.items()]


def _annotations(request: AdmissionRequest) -> dict[str, str]:
    """Return the annotations to set; nothing for a request that does not change the recorded fields."""
    if request.kind != PLAN_KIND or request.subresource or not request.user.name:
        return {}
    is_new = request.operation == "CREATE"
    if not objects.mapping(request.new, "metadata") or not (is_new or request.operation == "UPDATE"):
        return {}
    spec, annotations = _recorded(request.new)
    if not is_new and digest(spec, annotations) == digest(*_recorded(request.old)):
        return {}
    changed = {ANNOTATION_LAST_CHANGED_BY: signed(request.user.name, spec, annotations)}
    return {ANNOTATION_CREATED_BY: request.user.name, **changed} if is_new else changed


def _recorded(plan: object) -> tuple[UpgradePlanSpec, Mapping[str, str]]:
    return UpgradePlanSpec.read(objects.mapping(plan, "spec")), objects.strings(plan, "metadata", "annotations")


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def _pointer(key: str) -> str:
    """Return the JSON pointer of an annotation (RFC 6901)."""
    return f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}"
