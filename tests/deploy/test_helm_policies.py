"""Roles and policies by the chart's values."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml

from tests.support.programs.helm import CHART, MANAGER, WEBHOOK, Helm, pod

pytestmark = pytest.mark.assets

SERVED = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
POLICIES = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


@pytest.mark.parametrize(
    ("kinds", "missing"),
    [
        pytest.param([], set[str](), id="no server"),
        pytest.param(["v1/Pod", SERVED], set[str](), id="a server with policies"),
        pytest.param(["v1/Pod", SERVED.replace("v1/", "v1beta1/")], POLICIES, id="a server without"),
    ],
)
def test_policies_are_left_out_where_they_are_not_served(helm: Helm, kinds: list[str], missing: set[str]) -> None:
    flags = ["x", str(CHART), *(flag for kind in kinds for flag in ("--api-versions", kind))]
    rendered_kinds = {one["kind"] for one in yaml.safe_load_all(helm.run("template", *flags).stdout) if one}
    assert POLICIES - rendered_kinds == missing


def notes(helm: Helm, *flags: str, chart: Path = CHART) -> str:
    return helm.run("install", "x", str(chart), "--dry-run=client", *flags).stdout.partition("NOTES:")[2]


def test_notes_warn_of_missing_policies(helm: Helm, tmp_path: Path) -> None:
    """A client-side dry run takes no list of kinds, so a kind is replaced that Helm knows without a server."""
    chart = tmp_path / "chart"
    copytree(CHART, chart)
    helpers = chart / "templates/_helpers.tpl"
    helpers.write_text(helpers.read_text().replace('"v1/Pod"', '"v1"'))
    missing = "WARNING: the API server does not serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy"
    assert missing in notes(helm, chart=chart)


def test_notes_warn_of_who_may_choose_code(helm: Helm) -> None:
    warnings = {
        "admissionPolicies.enabled=false": "admissionPolicies.enabled is false",
        "rbac.aggregateToBuiltInRoles=true": "run any image as root on its nodes",
    }
    default = notes(helm)
    assert "ValidatingAdmissionPolicy" not in default
    for setting, warning in warnings.items():
        assert warning not in default
        assert warning in notes(helm, "--set", setting)


def test_roles_are_added_to_those_of_kubernetes(helm: Helm) -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    added = {
        one["metadata"]["name"].rpartition("-")[2]: [
            key.removeprefix(prefix) for key in one["metadata"]["labels"] if key.startswith(prefix)
        ]
        for one in helm.rendered("rbac.aggregateToBuiltInRoles=true")
        if one["kind"] == "ClusterRole"
    }
    assert {role: to for role, to in added.items() if to} == {
        "viewer": ["view"],
        "operator": ["edit"],
        "editor": ["edit"],
        "admin": ["admin"],
    }


def test_values_reach_the_policies(helm: Helm) -> None:
    variables = [{"name": f"UPGRADE_{kind}_SERVICE_ACCOUNT", "value": kind.lower()} for kind in ("JOB", "PLAN")]
    settings = ("toolkit.image.repository=registry:5000/a/toolkit", f"env={json.dumps(variables)}")
    default, manifests = (
        helm.rendered(*settings, *more) for more in ((), ('toolkit.imagePrefixes=["registry:5000/a", "b"]',))
    )
    found = policy_variables(manifests)
    for policy in ("pods", "suc-plans", "plan-status"):
        published = '["registry:5000/a/toolkit","rancher/harvester-upgrade-toolkit"]'
        assert policy_variables(default)[policy, "prefixes"] == published
        assert found[policy, "prefixes"] == '["registry:5000/a","b"]'
    assert found["pods", "accounts"] == 'request.resource.resource == "jobs" ? ["job"] : ["", "default"]'
    assert found["suc-plans", "account"] == '"plan"'


def policy_variables(manifests: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    return {
        (one["metadata"]["name"].removeprefix("harvester-upgrade-manager-"), variable["name"]): variable["expression"]
        for one in manifests
        if one["kind"] == "ValidatingAdmissionPolicy"
        for variable in one["spec"].get("variables", ())
    }


def policy(manifests: list[dict[str, Any]], name: str) -> dict[str, Any]:
    kind = ("NetworkPolicy", name)
    (found,) = [one["spec"] for one in manifests if (one["kind"], one["metadata"]["name"]) == kind]
    return dict(found)


def test_api_servers_alone_reach_the_webhook(helm: Helm) -> None:
    manifests = helm.rendered('networkPolicy.apiServers=["192.0.2.11/32"]')
    policies = [one["spec"] for one in manifests if one["kind"] == "NetworkPolicy"]
    (rule,) = [rule for one in policies for rule in one["ingress"] if {"port": "webhook"} in rule["ports"]]
    assert rule["from"] == [{"ipBlock": {"cidr": "192.0.2.11/32"}}]


def test_more_ports_are_added_to_those_of_the_default(helm: Helm) -> None:
    default, changed = helm.rendered(), helm.rendered("networkPolicy.egressPorts={8080,443}")
    for name in (MANAGER, WEBHOOK):
        (rule,) = policy(default, name)["egress"]
        assert policy(changed, name)["egress"] == [{"ports": [*rule["ports"], {"port": 8080}, {"port": 443}]}]


@pytest.mark.rule("pipeline: nodes/proxy is granted for older kubelets only, by a value of the chart")
@pytest.mark.parametrize(
    ("settings", "resources", "flags"),
    [
        ([], ["nodes/stats", "nodes/configz"], []),
        (["kubelets.viaProxy=true"], ["nodes/proxy"], ["--kubelet-access=proxy"]),
    ],
    ids=["directly", "through the API server"],
)
def test_kubelets_are_read_by_the_value(
    helm: Helm, settings: list[str], resources: list[str], flags: list[str]
) -> None:
    manifests = helm.rendered(*settings)
    rules = [rule for one in manifests if one["kind"].endswith("Role") for rule in one["rules"]]
    named = [rule["resources"] for rule in rules if any(name[:6] == "nodes/" for name in rule.get("resources", ()))]
    (container,) = pod(manifests)["containers"]
    assert named == [resources]
    assert [flag for flag in container["args"] if "kubelet" in flag] == flags
