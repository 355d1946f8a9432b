"""The manifests in deploy: complete, with minimal permissions and a restricted Pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kustomize import DEFAULT, objects, title
from upgrade_manager.api.keys import GROUP, TAINT_KUBEVIRT_DRAIN
from upgrade_manager.runtime.manager import GRACEFUL_SHUTDOWN_TIMEOUT
from webhook.certificates.rotation import SECRET

MANIFESTS = objects(DEFAULT)
#: Suffixes of the roles that users bind.
FOR_USERS = ("metrics-reader", "viewer", "editor", "admin")
ROLES = [manifest for manifest in MANIFESTS if manifest["kind"] in {"Role", "ClusterRole"}]


def one(kind: str, name: str = "") -> dict[str, Any]:
    found = [manifest for manifest in MANIFESTS if manifest["kind"] == kind and name in manifest["metadata"]["name"]]
    (only,) = found
    return only


def container() -> dict[str, Any]:
    (only,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(only)


def test_no_object_is_defined_twice() -> None:
    titles = [title(manifest) for manifest in MANIFESTS]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("role", ROLES, ids=title)
def test_role_has_no_wildcard_and_is_bound_unless_for_users(role: dict[str, Any]) -> None:
    assert "*" not in [word for rule in role["rules"] for words in rule.values() for word in words]
    metadata = role["metadata"]
    bound = [
        binding["subjects"]
        for binding in MANIFESTS
        if binding["kind"] == f"{role['kind']}Binding"
        and binding["metadata"].get("namespace") == metadata.get("namespace")
        and binding["roleRef"]["name"] == metadata["name"]
    ]
    account = {"kind": "ServiceAccount", "name": "harvester-upgrade-manager", "namespace": "harvester-system"}
    assert bound == ([] if metadata["name"].endswith(FOR_USERS) else [[account]])


@pytest.mark.parametrize(
    ("role", "aggregate", "more"),
    [
        pytest.param("viewer", "view", set(), id="viewer"),
        pytest.param("editor", "edit", {"create", "update", "patch", "delete"}, id="editor"),
        pytest.param("admin", "admin", {"create", "update", "patch", "delete", "deletecollection"}, id="admin"),
    ],
)
def test_user_role_is_aggregated_and_never_writes_the_status(role: str, aggregate: str, more: set[str]) -> None:
    manifest = one("ClusterRole", role)
    assert manifest["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{aggregate}"] == "true"
    plans, status = manifest["rules"]
    assert (plans["apiGroups"], plans["resources"]) == ([GROUP], ["upgradeplans"])
    assert {*plans["verbs"]} == {"get", "list", "watch"} | more
    assert status == {"apiGroups": [GROUP], "resources": ["upgradeplans/status"], "verbs": ["get"]}


def test_secrets_are_read_in_fleet_local_and_one_by_name() -> None:
    places = [
        (role["metadata"].get("namespace"), rule.get("resourceNames"))
        for role in ROLES
        for rule in role["rules"]
        if "secrets" in rule.get("resources", ()) and {"get", "list", "watch"} & {*rule["verbs"]}
    ]
    assert sorted(places) == [("fleet-local", None), ("harvester-system", [SECRET])]


def test_webhook_secret_is_installed_and_not_created() -> None:
    creating = [
        role["metadata"].get("namespace")
        for role in ROLES
        for rule in role["rules"]
        if "secrets" in rule.get("resources", ()) and "create" in rule["verbs"]
    ]
    # Lists of images to remove.
    assert creating == ["cattle-system"]
    # Applied again, it changes neither the data nor the immutable type.
    assert set(one("Secret", SECRET)) == {"apiVersion", "kind", "metadata"}


def test_pod_meets_the_restricted_level_and_can_stop_in_time() -> None:
    pod = one("Deployment")["spec"]["template"]["spec"]
    context = pod["securityContext"]
    assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert context["runAsUser"] > 0
    assert [container["securityContext"] for container in pod["containers"]] == [
        {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    ]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert [volume for volume in pod["volumes"] if "emptyDir" not in volume] == []
    assert pod["terminationGracePeriodSeconds"] > 30


@pytest.mark.parametrize("name", ["metrics", "webhook"])
def test_service_selects_the_pods_and_their_port(name: str) -> None:
    pods, service = one("Deployment")["spec"]["template"], one("Service", name)["spec"]
    assert service["selector"] == pods["metadata"]["labels"]
    (port,) = service["ports"]
    assert port["targetPort"] in {port["name"] for port in container()["ports"]}


def test_container_serves_every_port() -> None:
    flags = [argument.rpartition(":")[2] for argument in container()["args"] if "-bind-address=" in argument]
    assert sorted(map(int, flags)) == sorted(port["containerPort"] for port in container()["ports"])
    assert {"name": "ENABLE_WEBHOOKS", "value": "true"} in container()["env"]


def test_pod_outlives_the_drain_of_its_servers() -> None:
    pod = one("Deployment")["spec"]["template"]["spec"]
    before_stop = container()["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > before_stop + GRACEFUL_SHUTDOWN_TIMEOUT


def test_replicas_run_apart_and_while_nodes_are_drained() -> None:
    deployment, budget = one("Deployment")["spec"], one("PodDisruptionBudget")["spec"]
    pods, spec = deployment["template"]["metadata"]["labels"], deployment["template"]["spec"]
    assert deployment["replicas"] == 2
    assert "--leader-elect" in container()["args"]
    # With minAvailable, one replica would hold every drain.
    assert (budget["maxUnavailable"], budget["selector"]) == (1, {"matchLabels": pods})
    spread = {entry["topologyKey"]: entry for entry in spec["topologySpreadConstraints"]}
    assert spread.keys() == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    for entry in spread.values():
        assert (entry["whenUnsatisfiable"], entry["labelSelector"]) == ("ScheduleAnyway", {"matchLabels": pods})
    tolerated = {toleration["key"] for toleration in spec["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in tolerated
    # The taint of a node that is drained: tolerated, the Pod would return to the node that reboots.
    assert TAINT_KUBEVIRT_DRAIN not in tolerated
    assert spec["priorityClassName"] == "system-cluster-critical"
