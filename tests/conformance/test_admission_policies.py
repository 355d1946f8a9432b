"""ValidatingAdmissionPolicies as stored objects; only the real server enforces them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.server.bareapi import BareApi

pytestmark = pytest.mark.servers

ROOT = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
POLICIES, BINDINGS = f"{ROOT}ies", f"{ROOT}ybindings"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
MATCHED = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
CHECKED = {
    "variables": [{"name": "a", "expression": "object.metadata.?annotations[?'a'].orValue('')"}],
    "validations": [{"expression": "true", "messageExpression": "'no ' + variables.a", "reason": "Forbidden"}],
    "auditAnnotations": [{"key": "a", "valueExpression": "variables.a"}],
    "matchConditions": [{"name": "user", "expression": "request.userInfo.username != 'a'"}],
}


def policy(api: BareApi, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": api.word}, "spec": {"matchConstraints": {"resourceRules": [RULE]}, **CHECKED, **spec}}


async def test_policy_is_stored_with_its_defaults(api: BareApi) -> None:
    answer = await api.admin.post(POLICIES, policy(api) | {"status": {"observedGeneration": 5}})
    assert answer.status == 201, answer.body
    constraints = {**MATCHED, "resourceRules": [RULE | {"scope": "*"}]}
    assert answer.body["spec"] == {"failurePolicy": "Fail", "matchConstraints": constraints, **CHECKED}
    assert (answer.body["metadata"]["generation"], answer.body["status"]) == (1, {})
    changed = await api.admin.patch(f"{POLICIES}/{api.word}", {"spec": {"failurePolicy": "Ignore"}}, kind="strategic")
    assert (changed.status, changed.body["metadata"]["generation"]) == (200, 2)
    assert api.word in (await api.admin.get(POLICIES)).names
    assert (await api.admin.delete(f"{POLICIES}/{api.word}")).status == 200


async def test_binding_is_stored_with_its_defaults(api: BareApi) -> None:
    spec = {"policyName": api.word, "validationActions": ["Deny"], "matchResources": {"resourceRules": [RULE]}}
    answer = await api.admin.post(BINDINGS, {"metadata": {"name": api.word}, "spec": spec})
    assert answer.status == 201, answer.body
    resources = {**MATCHED, "resourceRules": [RULE | {"scope": "*"}]}
    assert answer.body["spec"] == spec | {"matchResources": resources}
    assert answer.body["metadata"]["generation"] == 1
    assert (await api.admin.delete(f"{BINDINGS}/{api.word}")).status == 200


async def test_unknown_field_of_a_policy_is_refused(api: BareApi) -> None:
    answer = await api.admin.post(POLICIES, policy(api, typo=1), fieldValidation="Strict")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert 'unknown field "spec.typo"' in answer.body["message"]
