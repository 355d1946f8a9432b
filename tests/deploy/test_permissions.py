"""The permissions that ship, held against everything that an upgrade asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from hack.bench.in_process import MANAGER, upgraded
from hack.cluster import scenario as scenarios
from hack.faults.call import call_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.faults.call import Call

RBAC = Path(__file__).parents[2] / "deploy/rbac"
ROLES = [
    manifest
    for path in sorted(RBAC.glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text())
    if manifest["kind"].endswith("Role") and manifest["metadata"]["name"] == "harvester-upgrade-manager"
]
#: (namespace, resource, verb) that an undisturbed upgrade does not use, and what uses it.
RARELY_USED = {
    ("", "tokenreviews.authentication.k8s.io", "create"): "who scrapes /metrics",
    ("", "subjectaccessreviews.authorization.k8s.io", "create"): "who scrapes /metrics",
    (
        "",
        "upgradeplans.management.harvesterhci.io/finalizers",
        "update",
    ): "admission of owner references",
    ("", "namespaces", "get"): "deletion of a plan without its namespace",
    ("default", "events", "patch"): "an event that repeats itself",
    ("harvester-system", "leases.coordination.k8s.io", "get"): "leader election",
    ("harvester-system", "leases.coordination.k8s.io", "create"): "leader election",
    ("harvester-system", "leases.coordination.k8s.io", "update"): "leader election",
    ("harvester-system", "pods", "list"): "the last words of a failed Job",
    ("harvester-system", "events", "list"): "a Job that has no Pod",
    ("cattle-system", "pods", "list"): "the last words of a failed Job",
    ("cattle-system", "events", "list"): "a Plan whose Jobs do not start",
    ("cattle-system", "jobs.batch", "patch"): "the failed Jobs of a failed plan, to keep them",
    ("cattle-system", "jobs.batch", "deletecollection"): "the same, when the plan is deleted",
    ("harvester-system", "jobs.batch", "delete"): "the Jobs of a failed plan, less those that failed",
    ("harvester-system", "jobs.batch", "patch"): "a node that was held back",
    ("harvester-system", "configmaps", "get"): "VMs that are to be started again",
    ("harvester-system", "jobs.batch", "get"): "an object that is there already",
    ("harvester-system", "deployments.apps", "get"): "an object that is there already",
    ("cattle-system", "plans.upgrade.cattle.io", "get"): "nodes that carry an earlier Plan's label",
    ("harvester-system", "services", "get"): "a Service that has no endpoint, or is there already",
    ("harvester-system", "virtualmachineimages.harvesterhci.io", "get"): "an object that is there already",
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
    asked = f"{call.resource}/{subresource}" if subresource else call.resource
    return namespace in {"", call.namespace} and (resource, verb) == (asked, call.verb) and name in {"", call.name}


@pytest.fixture(scope="module")
def permissions() -> list[tuple[str, str, str, str]]:
    return list(granted())


async def calls() -> list[Call]:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        return [call_of(exchange.request) for exchange in upgrade.recorder.of(MANAGER)]


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
def test_what_must_never_be_done_is_not_granted(permissions: list[Any], resource: str, verbs: set[str]) -> None:
    granted_verbs = {verb for _, name, verb, _ in permissions if name == resource}
    assert granted_verbs
    assert not granted_verbs & {*verbs, "*"}


async def test_an_upgrade_asks_for_nothing_that_is_not_granted(permissions: list[Any]) -> None:
    refused = [call for call in await calls() if not any(permits(permission, call) for permission in permissions)]
    assert refused == []


async def test_every_permission_is_used_or_has_a_reason(permissions: list[Any]) -> None:
    made = await calls()
    idle = {permission[:3] for permission in permissions if not any(permits(permission, call) for call in made)}
    assert idle == set(RARELY_USED)
