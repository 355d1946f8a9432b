"""The permissions in deploy/rbac against all requests of an upgrade."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.bench.in_process import MANAGER, upgraded
from hack.cluster import scenario as scenarios
from hack.faults.call import call_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.faults.call import Call
    from upgrade_manager.kube.transport import Request

RBAC = Path(__file__).parents[2] / "deploy/rbac"
ROLES = [
    manifest
    for path in sorted(RBAC.glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text())
    if manifest["kind"].endswith("Role") and manifest["metadata"]["name"] == "harvester-upgrade-manager"
]
#: (namespace, resource, verb) that a healthy upgrade does not use, and what uses it.
RARELY_USED = {
    ("", "tokenreviews.authentication.k8s.io", "create"): "authorization of scrapers",
    ("", "subjectaccessreviews.authorization.k8s.io", "create"): "authorization of scrapers",
    ("", "upgradeplans.management.harvesterhci.io/finalizers", "update"): "admission of owner references",
    ("", "namespaces", "get"): "deletion of a plan without its namespace",
    ("default", "events", "patch"): "a repeated event",
    ("harvester-system", "leases.coordination.k8s.io", "get"): "leader election",
    ("harvester-system", "leases.coordination.k8s.io", "create"): "leader election",
    ("harvester-system", "leases.coordination.k8s.io", "update"): "leader election",
    ("harvester-system", "pods", "list"): "the termination message of a failed Job",
    ("harvester-system", "events", "list"): "a Job that has no Pod",
    ("cattle-system", "pods", "list"): "the termination message of a failed Job",
    ("cattle-system", "events", "list"): "a Plan whose Jobs do not start",
    ("cattle-system", "jobs.batch", "patch"): "the failed Jobs of a failed plan, to keep them",
    ("cattle-system", "jobs.batch", "deletecollection"): "the same, when the plan is deleted",
    ("harvester-system", "jobs.batch", "delete"): "the Jobs of a failed plan, less those that failed",
    ("harvester-system", "jobs.batch", "patch"): "a paused node, and the running Jobs of a deleted plan",
    ("fleet-local", "events", "create"): "a plan that ends before all nodes are upgraded",
    ("fleet-local", "events", "patch"): "the same, repeated",
    ("harvester-system", "configmaps", "get"): "restoreVM",
    ("harvester-system", "configmaps", "patch"): "the list of VMs of a failed plan, or for running restore-vm Jobs",
    ("harvester-system", "configmaps", "delete"): "the same, at the end",
    ("harvester-system", "persistentvolumeclaims", "get"): "the volume of spec.image",
    ("harvester-system", "jobs.batch", "get"): "an object that exists",
    ("harvester-system", "deployments.apps", "get"): "an object that exists",
    ("harvester-system", "deployments.apps", "patch"): "a repository that a user scaled down",
    ("cattle-system", "plans.upgrade.cattle.io", "get"): "nodes with an earlier Plan's label",
    ("harvester-system", "services", "get"): "a Service that has no endpoint, or exists",
    ("harvester-system", "virtualmachineimages.harvesterhci.io", "get"): "an object that exists",
}


def granted() -> Iterator[tuple[str, str, str, str]]:
    """Namespace (empty for all), resource, verb and name (empty for all) of every permission."""
    for role in ROLES:
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    plural, _, subresource = resource.partition("/")
                    qualified = f"{plural}.{group}" if group else plural
                    qualified += f"/{subresource}" if subresource else ""
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            yield role["metadata"].get("namespace", ""), qualified, verb, name


def permits(permission: tuple[str, str, str, str], call: Call) -> bool:
    namespace, resource, verb, name = permission
    # Of what lies behind a proxy only the proxy counts.
    subresource = call.subresource.partition("/")[0]
    requested = f"{call.resource}/{subresource}" if subresource else call.resource
    return namespace in {"", call.namespace} and (resource, verb) == (requested, call.verb) and name in {"", call.name}


def authorized(request: Request) -> Call:
    """Return the call as it is authorized: a list with a field selector for one name has that name."""
    selector = dict(request.query).get("fieldSelector", "")
    one = selector.removeprefix("metadata.name=") if selector.startswith("metadata.name=") else ""
    call = call_of(request)
    return replace(call, name=one) if one else call


@pytest.mark.rule(
    "nodes: acknowledging changes one annotation of the Secret, whose data is never read",
    "workloads: a Plan is never updated after its creation",
)
@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        pytest.param(
            "plans.upgrade.cattle.io", {"update", "patch"}, id="a Plan is not edited: its Jobs would start again"
        ),
        pytest.param("secrets", {"get", "update"}, id="a machine plan is not read, nor replaced as a whole"),
    ],
)
def test_forbidden_verbs_are_not_granted(resource: str, verbs: set[str]) -> None:
    granted_verbs = {verb for _, name, verb, _ in granted() if name == resource}
    assert granted_verbs
    assert not granted_verbs & {*verbs, "*"}


async def test_every_request_is_permitted_and_every_permission_used() -> None:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        calls = [authorized(exchange.request) for exchange in upgrade.recorder.of(MANAGER)]
    permissions = list(granted())
    assert [call for call in calls if not any(permits(permission, call) for permission in permissions)] == []
    unused = {permission[:3] for permission in permissions if not any(permits(permission, call) for call in calls)}
    assert unused == set(RARELY_USED)
