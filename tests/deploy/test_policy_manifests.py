"""The policies for plans and for the manager's account, against permissions and against what the manager writes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.support.managers.manager_policies import manager_policies
from tests.support.managers.upgrade import ACCOUNT
from tests.support.programs.kustomize import DEPLOY
from tests.support.webhook.permissions import granted
from upgrade_manager.api.annotations import TOOLKIT_ANNOTATIONS, WAIVER_ANNOTATIONS
from upgrade_manager.api.keys import (
    ADMISSION_ANNOTATIONS,
    DEFAULT_TOOLKIT_IMAGE,
    FINALIZER,
    FLEET_LOCAL,
    GROUP,
    MACHINE_PLAN_SECRET_TYPE,
    MANAGER_ANNOTATIONS,
    SUC_NODE_LABEL_PREFIX,
    TAINT_KUBEVIRT_DRAIN,
)
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.settings.overrides import DESCHEDULER, INTERVAL

POLICIES = {
    one["metadata"]["name"].removeprefix("harvester-upgrade-manager-"): one
    for one in manager_policies()
    if one["kind"] == "ValidatingAdmissionPolicy"
}
BINDINGS = {
    one["spec"]["policyName"]: one["spec"]
    for one in manager_policies()
    if one["kind"] == "ValidatingAdmissionPolicyBinding"
}
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
#: Resources that the account writes without a policy, with the reason.
BY_RBAC = {
    "events": "they change nothing",
    "leases.coordination.k8s.io": "bound by name, but for their creation",
    "tokenreviews.authentication.k8s.io": "not stored",
    "subjectaccessreviews.authorization.k8s.io": "not stored",
    "upgradeplans.management.harvesterhci.io/finalizers": "a permission of another check, without requests",
}


def matched() -> set[str]:
    """Return the resources of the policies, as `Permission` names them."""
    return {
        (f"{plural}.{group}" if group else plural) + slash + subresource
        for policy in POLICIES.values()
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for plural, slash, subresource in [resource.partition("/")]
    }


def variable(policy: str, name: str) -> str:
    (found,) = [one["expression"] for one in POLICIES[policy]["spec"]["variables"] if one["name"] == name]
    return str(found)


def literals(expression: str) -> list[str]:
    return re.findall(r"""["']([^"']*)["']""", expression)


@pytest.mark.rule("permissions: each kind that the manager writes has a policy, or is bound by its name")
def test_every_written_kind_has_a_policy() -> None:
    written = {one.resource for one in granted("harvester-upgrade-manager") if one.verb in WRITES}
    assert written - matched() == BY_RBAC.keys()


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
def test_policy_denies_and_costs_other_users_nothing(policy: dict[str, Any]) -> None:
    spec = policy["spec"]
    assert spec["failurePolicy"] == "Fail"
    first = spec["matchConditions"][0]
    assert first == {"name": "manager", "expression": f"request.userInfo.username == '{ACCOUNT}'"}
    assert BINDINGS[policy["metadata"]["name"]]["validationActions"] == ["Deny"]


def test_only_refusals_that_may_pass_are_invalid() -> None:
    """The manager repeats a creation that is refused as Invalid, the default (pipeline/plan_objects.py)."""
    reasons = {
        name: {one.get("reason", "Invalid") for one in policy["spec"]["validations"]}
        for name, policy in POLICIES.items()
    }
    assert reasons.pop("active-plan") == {"Invalid"}
    assert all(found == {"Forbidden"} for found in reasons.values())


def test_literals_are_those_of_the_manager() -> None:
    assert literals(variable("plans", "own")) == [*MANAGER_ANNOTATIONS]
    assert literals(variable("plans", "finalizer")) == [FINALIZER]
    text = {name: str(policy) for name, policy in POLICIES.items()}
    assert SUC_NODE_LABEL_PREFIX in text["nodes"]
    assert TAINT_KUBEVIRT_DRAIN in text["nodes"]
    assert MACHINE_PLAN_SECRET_TYPE in text["machine-plans"]
    assert f"field == '{DESCHEDULER.field.removeprefix('spec.')}'" in text["addons"]
    assert f"field in ['metadata', '{INTERVAL.field}']" in text["longhorn-settings"]
    assert f"request.namespace != '{FLEET_LOCAL}'" in text["objects"]


def test_defaults_are_those_of_the_options() -> None:
    options = RunOptions()
    for policy in ("pods", "suc-plans", "plan-status"):
        assert literals(variable(policy, "prefixes")) == [DEFAULT_TOOLKIT_IMAGE]
    assert literals(variable("pods", "accounts")) == ["jobs", options.job_service_account, "", "default"]
    assert literals(variable("suc-plans", "account")) == [options.plan_service_account]


POLICY, BINDING = yaml.safe_load_all((DEPLOY / "admission-policies/upgradeplans.yaml").read_text())
SPEC = POLICY["spec"]
VARIABLES = {one["name"]: one["expression"] for one in SPEC["variables"]}


def keys(text: str) -> set[str]:
    return set(re.findall(rf"{GROUP}/[-a-z]+", text))


def test_policy_decides_about_each_change_of_a_plan() -> None:
    (rule,) = SPEC["matchConstraints"]["resourceRules"]
    assert rule == {
        "apiGroups": [GROUP],
        "apiVersions": [UPGRADE_PLANS.version],
        "resources": [UPGRADE_PLANS.plural],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Cluster",
    }
    assert SPEC["failurePolicy"] == "Fail"
    assert "matchConditions" not in SPEC
    assert BINDING["spec"] == {"policyName": POLICY["metadata"]["name"], "validationActions": ["Deny"]}


def test_policy_lists_the_annotations_of_the_tables() -> None:
    assert keys(VARIABLES["codeChanges"]) == {*TOOLKIT_ANNOTATIONS}
    assert keys(VARIABLES["waiverChanges"]) == {*WAIVER_ANNOTATIONS}
    assert "spec.?force" in VARIABLES["waiverChanges"]
    assert keys(yaml.safe_dump(SPEC)) >= {*TOOLKIT_ANNOTATIONS, *WAIVER_ANNOTATIONS, *ADMISSION_ANNOTATIONS}


def test_verbs_are_those_of_the_roles() -> None:
    checked = {verb for one in SPEC["validations"] for verb in re.findall(r"check\('([-a-z]+)'\)", one["expression"])}
    roles = yaml.safe_load_all((DEPLOY / "rbac/upgradeplan-roles.yaml").read_text())
    verbs = {verb for role in roles for verb in role["rules"][0]["verbs"]}
    assert checked == {"delete", "set-toolkit-image", "waive"} <= verbs
