"""The manifests in deploy: complete, with minimal permissions and a restricted Pod."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.programs.kustomize import DEFAULT, DEPLOY, objects, title
from upgrade_manager.api.keys import GROUP, LEASE, TAINT_KUBEVIRT_DRAIN
from upgrade_manager.resources import repository
from upgrade_manager.runtime.manager import GRACEFUL_SHUTDOWN_TIMEOUT
from webhook.certificates.rotation import SECRET, SERVICE

MANIFESTS = objects(DEFAULT)
#: Suffixes of the roles that users bind.
FOR_USERS = ("-preflight", "metrics-reader", "viewer", "operator", "editor", "admin")
ROLES = [manifest for manifest in MANIFESTS if manifest["kind"] in {"Role", "ClusterRole"}]


MANAGER, WEBHOOK = "harvester-upgrade-manager", "harvester-upgrade-manager-webhook"
#: Both Deployments have what a test of one of them names.
of_both = pytest.mark.parametrize("name", [MANAGER, WEBHOOK])


def one(kind: str, name: str) -> dict[str, Any]:
    (only,) = [one for one in MANIFESTS if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return only


def template(name: str) -> dict[str, Any]:
    return dict(one("Deployment", name)["spec"]["template"])


def container(name: str) -> dict[str, Any]:
    (only,) = template(name)["spec"]["containers"]
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
    name = metadata["name"].removesuffix("-certificates")
    account = {"kind": "ServiceAccount", "name": name, "namespace": "harvester-system"}
    assert bound == ([] if metadata["name"].endswith(FOR_USERS) else [[account]])


READ = {"get", "list", "watch"}
OPERATE = READ | {"patch"}
EDIT = OPERATE | {"create", "delete", "waive"}


@pytest.mark.rule("security: of the roles for users only the viewer is part of a role of Kubernetes")
@pytest.mark.parametrize(
    ("role", "verbs", "aggregated"),
    [
        ("viewer", READ, ["rbac.authorization.k8s.io/aggregate-to-view"]),
        ("operator", OPERATE, []),
        ("editor", EDIT, []),
        ("admin", EDIT | {"deletecollection", "set-toolkit-image"}, []),
    ],
    ids=["viewer", "operator", "editor", "admin"],
)
def test_user_role_has_its_verbs_and_never_writes_the_status(role: str, verbs: set[str], aggregated: list[str]) -> None:
    manifest = one("ClusterRole", f"{MANAGER}-{role}")
    labels = [key for key in manifest["metadata"]["labels"] if key.startswith("rbac.authorization.k8s.io/")]
    assert labels == aggregated
    plans, status, lease, deployment = manifest["rules"]
    assert (plans["apiGroups"], plans["resources"]) == ([GROUP], ["upgradeplans"])
    assert {*plans["verbs"]} == verbs
    assert status == {"apiGroups": [GROUP], "resources": ["upgradeplans/status"], "verbs": ["get"]}
    assert (lease["resources"], lease["resourceNames"], lease["verbs"]) == (["leases"], [LEASE], ["get"])
    assert (deployment["resources"], deployment["resourceNames"], deployment["verbs"]) == (
        ["deployments"],
        [MANAGER],
        ["get"],
    )


def test_secrets_are_read_and_created_in_few_places() -> None:
    granted = [
        (role["metadata"].get("namespace"), rule.get("resourceNames"), {*rule["verbs"]})
        for role in ROLES
        for rule in role["rules"]
        if "secrets" in rule.get("resources", ())
    ]
    read = [(namespace, names) for namespace, names, verbs in granted if READ & verbs]
    # The hooks on machine-plan Secrets, for the manager and for the webhook.
    assert sorted(read) == [("fleet-local", None), ("fleet-local", None), ("harvester-system", [SECRET])]
    # Lists of images to remove; the webhook's Secret is installed.
    assert [namespace for namespace, _, verbs in granted if "create" in verbs] == ["cattle-system"]
    # Applied again, it changes neither the data nor the immutable type.
    assert set(one("Secret", SECRET)) == {"apiVersion", "kind", "metadata"}


@of_both
def test_pod_meets_the_restricted_level(name: str) -> None:
    pod = template(name)["spec"]
    assert (pod["serviceAccountName"], pod["enableServiceLinks"]) == (name, False)
    context = pod["securityContext"]
    assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert context["runAsUser"] > 0
    assert [container["securityContext"] for container in pod["containers"]] == [
        {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    ]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert [volume for volume in pod["volumes"] if "emptyDir" not in volume] == []


@pytest.mark.parametrize(
    ("service", "name"),
    [(f"{MANAGER}-metrics", MANAGER), (f"{WEBHOOK}-metrics", WEBHOOK), (SERVICE, WEBHOOK)],
)
def test_service_selects_the_pods_and_their_port(service: str, name: str) -> None:
    spec = one("Service", service)["spec"]
    labels = {other: template(other)["metadata"]["labels"].items() for other in (MANAGER, WEBHOOK)}
    selected = [other for other in labels if spec["selector"].items() <= labels[other]]
    assert selected == [name]
    (port,) = spec["ports"]
    assert port["targetPort"] in {port["name"] for port in container(name)["ports"]}


@pytest.mark.parametrize(
    ("name", "command", "ports"),
    [
        pytest.param(MANAGER, ["run", "--leader-elect"], {"metrics", "probes"}, id="manager"),
        pytest.param(WEBHOOK, ["webhook"], {"metrics", "probes", "webhook"}, id="webhook"),
    ],
)
def test_container_serves_every_port(name: str, command: list[str], ports: set[str]) -> None:
    found = container(name)
    served = {port["name"]: port["containerPort"] for port in found["ports"]}
    flags = [argument.rpartition(":")[2] for argument in found["args"] if "-bind-address=:" in argument]
    assert (found["args"][: len(command)], {*served}) == (command, ports)
    assert sorted(map(int, flags)) == sorted(served.values())
    assert ({"name": "ENABLE_WEBHOOKS", "value": "false"} in found["env"]) == (name == MANAGER)
    assert ("--webhook-bind-address=0" in found["args"]) == (name == MANAGER)


MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "cattle-monitoring-system"}}}
DNS, API_SERVER, KUBELET = {(53, "UDP"), (53, "TCP")}, (6443, "TCP"), (10250, "TCP")


@pytest.mark.rule("security: the NetworkPolicy admits requests to the webhook, and Prometheus to the metrics")
@pytest.mark.parametrize(("name", "open_to_all"), [(MANAGER, []), (WEBHOOK, [{"ports": [{"port": "webhook"}]}])])
def test_policy_admits_the_webhooks_clients_and_prometheus(name: str, open_to_all: list[object]) -> None:
    policy = one("NetworkPolicy", name)["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= template(name)["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    # None for the probes: the kubelet of a Pod's own node is always admitted.
    assert policy["ingress"] == [*open_to_all, {"ports": [{"port": "metrics"}], "from": [MONITORING]}]
    admitted = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    assert admitted == {port["name"] for port in container(name)["ports"]} - {"probes"}


@pytest.mark.rule("security: the NetworkPolicy limits connections by port")
@pytest.mark.parametrize(
    ("name", "ports"),
    [(MANAGER, {*DNS, API_SERVER, KUBELET, (repository.PORT, "TCP")}), (WEBHOOK, {*DNS, API_SERVER})],
)
def test_policy_limits_connections_by_port_to_any_address(name: str, ports: set[tuple[int, str]]) -> None:
    (rule,) = one("NetworkPolicy", name)["spec"]["egress"]
    # An address would be compared with that of the Pod or node behind a Service.
    assert rule.keys() == {"ports"}
    assert {(port["port"], port.get("protocol", "TCP")) for port in rule["ports"]} == ports


def test_flow_schema_matches_the_accounts_rights_on_leases() -> None:
    (manifest,) = [one for one in MANIFESTS if one["kind"] == "FlowSchema"]
    (rule,) = manifest["spec"]["rules"]
    account = template(MANAGER)["spec"]["serviceAccountName"]
    assert [subject["serviceAccount"] for subject in rule["subjects"]] == [
        {"name": account, "namespace": "harvester-system"}
    ]
    (resources,) = rule["resourceRules"]
    verbs = {
        verb
        for role in ROLES
        for granted in role["rules"]
        if granted.get("resources") == ["leases"] and role["metadata"].get("namespace") in resources["namespaces"]
        for verb in granted["verbs"]
    }
    assert {*resources["verbs"]} == verbs


@of_both
def test_pod_outlives_the_drain_of_its_servers(name: str) -> None:
    hooks = container(name).get("lifecycle", {})
    before_stop = hooks["preStop"]["sleep"]["seconds"] if hooks else 0
    assert template(name)["spec"]["terminationGracePeriodSeconds"] > before_stop + GRACEFUL_SHUTDOWN_TIMEOUT
    # Until no API server sends requests to the webhook of this Pod any more.
    assert (before_stop > 0) == (name == WEBHOOK)


@of_both
def test_replicas_run_apart_and_while_nodes_are_drained(name: str) -> None:
    deployment, budget = one("Deployment", name)["spec"], one("PodDisruptionBudget", name)["spec"]
    selector, spec = deployment["selector"], deployment["template"]["spec"]
    assert selector["matchLabels"] == {"app.kubernetes.io/name": name}
    assert selector["matchLabels"].items() <= template(name)["metadata"]["labels"].items()
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    # With minAvailable, one replica would hold every drain.
    assert (budget["maxUnavailable"], budget["selector"]) == (1, selector)
    spread = {entry["topologyKey"]: entry for entry in spec["topologySpreadConstraints"]}
    assert spread.keys() == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    for entry in spread.values():
        assert (entry["whenUnsatisfiable"], entry["labelSelector"]) == ("ScheduleAnyway", selector)
    tolerated = {toleration["key"] for toleration in spec["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in tolerated
    # The taint of a node that is drained: tolerated, the Pod would return to the node that reboots.
    assert TAINT_KUBEVIRT_DRAIN not in tolerated
    assert spec["priorityClassName"] == "system-cluster-critical"


def test_webhooks_pods_are_like_the_managers() -> None:
    manager, webhook = (template(name)["spec"] for name in (MANAGER, WEBHOOK))
    fields = ("securityContext", "terminationGracePeriodSeconds", "affinity", "tolerations", "volumes")
    assert {field: webhook[field] for field in fields} == {field: manager[field] for field in fields}
    equal = container(MANAGER).keys() - {"name", "args", "env", "ports"}
    assert {key: container(WEBHOOK)[key] for key in equal} == {key: container(MANAGER)[key] for key in equal}


def test_monitor_scrapes_both_deployments() -> None:
    """The alert WebhookDown needs the webhook's metrics, and the dashboard shows one job."""
    monitor = yaml.safe_load((DEPLOY / "prometheus/service-monitor.yaml").read_text())["spec"]
    wanted = monitor["selector"]["matchLabels"].items()
    services = [one for one in MANIFESTS if one["kind"] == "Service" and wanted <= one["metadata"]["labels"].items()]
    assert [one["metadata"]["name"] for one in services] == [f"{MANAGER}-metrics", f"{WEBHOOK}-metrics"]
    assert {one["metadata"]["labels"][monitor["jobLabel"]] for one in services} == {MANAGER}
    assert {port["name"] for one in services for port in one["spec"]["ports"]} == {monitor["endpoints"][0]["port"]}
