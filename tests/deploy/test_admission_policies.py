"""The admission policy beside the tables of annotations; tests/kubectl tries it on the real API server."""

from __future__ import annotations

import re

import yaml

from tests.support.programs.kustomize import DEPLOY
from upgrade_manager.api.annotations import TOOLKIT_ANNOTATIONS, WAIVER_ANNOTATIONS
from upgrade_manager.api.keys import ADMISSION_ANNOTATIONS, GROUP
from upgrade_manager.kube.resources import UPGRADE_PLANS

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
