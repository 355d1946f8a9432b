"""The example docs/examples/webhook-alone, with Prometheus, as kubectl renders it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.support.kustomize import DEFAULT, DEPLOY, rendered, title, with_components
from webhook.certificates.rotation import SERVICE

EXAMPLE = DEPLOY.parent / "docs/examples/webhook-alone"
MANAGER, ALONE = "harvester-upgrade-manager", "harvester-upgrade-manager-webhook"
#: Of Kubernetes: tokenreviews and subjectaccessreviews.
DELEGATOR = "system:auth-delegator"

#: Returns the spec of the object of a kind and a name.
Spec: TypeAlias = Callable[[str, str], Any]


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = with_components(tmp_path_factory.mktemp("alone"), ["prometheus"], base=EXAMPLE)
    return {title(manifest): manifest for manifest in rendered(folder)}


@pytest.fixture
def spec(manifests: dict[str, dict[str, Any]]) -> Spec:
    return lambda kind, name: manifests[f"{kind} harvester-system/{name}"]["spec"]


def test_account_has_the_webhook_roles_and_reviews_scrapers(manifests: dict[str, dict[str, Any]]) -> None:
    subject = {"kind": "ServiceAccount", "name": ALONE, "namespace": "harvester-system"}
    bindings = [one for one in manifests.values() if one["kind"].endswith("Binding")]
    of_account = [one for one in bindings if subject in one["subjects"]]
    assert {one["roleRef"]["name"] for one in of_account} == {ALONE, DELEGATOR}
    assert of_account == [one for one in bindings if one["roleRef"]["name"] in {ALONE, DELEGATOR}]
    assert all(one["subjects"] == [subject] for one in of_account)


def test_only_the_webhooks_pods_serve_it(spec: Spec) -> None:
    pods, manager = spec("Deployment", ALONE)["template"], spec("Deployment", MANAGER)["template"]
    assert spec("Service", SERVICE)["selector"] == pods["metadata"]["labels"] != manager["metadata"]["labels"]
    assert {"name": "ENABLE_WEBHOOKS", "value": "false"} in manager["spec"]["containers"][0]["env"]
    assert pods["spec"]["serviceAccountName"] == ALONE
    assert pods["spec"]["containers"][0]["args"] == ["webhook"]


def test_prometheus_scrapes_the_webhook_as_part_of_the_manager(
    manifests: dict[str, dict[str, Any]], spec: Spec
) -> None:
    """The alert WebhookDown needs it, and the dashboard shows one job."""
    monitor = spec("ServiceMonitor", MANAGER)
    wanted = monitor["selector"]["matchLabels"].items()
    services = [
        one
        for one in manifests.values()
        if one["kind"] == "Service" and wanted <= one["metadata"].get("labels", {}).items()
    ]
    assert {one["metadata"]["labels"][monitor["jobLabel"]] for one in services} == {MANAGER}
    assert {one["spec"]["selector"]["app.kubernetes.io/name"] for one in services} == {MANAGER, ALONE}
    (container,) = spec("Deployment", ALONE)["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"metrics": 8443, "probes": 8081, "webhook": 9443}
    for service in services:
        (port,) = service["spec"]["ports"]
        assert (port["name"], port["targetPort"]) == (monitor["endpoints"][0]["port"], "metrics")


@pytest.mark.parametrize(
    "field", ["priorityClassName", "securityContext", "terminationGracePeriodSeconds", "affinity", "tolerations"]
)
def test_pods_are_like_the_managers(spec: Spec, field: str) -> None:
    pods, manager = spec("Deployment", ALONE)["template"]["spec"], spec("Deployment", MANAGER)["template"]["spec"]
    assert pods[field] == manager[field]


def test_containers_are_like_the_managers(spec: Spec) -> None:
    (container,), (manager,) = (spec("Deployment", name)["template"]["spec"]["containers"] for name in (ALONE, MANAGER))
    equal = manager.keys() - {"name", "args", "env"}
    assert {key: container[key] for key in equal} == {key: manager[key] for key in equal}


def test_replicas_run_apart_and_are_evicted_one_by_one(spec: Spec) -> None:
    deployment, manager = spec("Deployment", ALONE), spec("Deployment", MANAGER)
    selector = {"matchLabels": deployment["template"]["metadata"]["labels"]}
    assert (deployment["selector"], deployment["replicas"]) == (selector, 2)
    assert deployment["strategy"] == manager["strategy"]
    assert spec("PodDisruptionBudget", ALONE) == {**spec("PodDisruptionBudget", MANAGER), "selector": selector}
    assert deployment["template"]["spec"]["topologySpreadConstraints"] == [
        {**entry, "labelSelector": selector} for entry in manager["template"]["spec"]["topologySpreadConstraints"]
    ]


def test_other_objects_are_those_of_the_default(manifests: dict[str, dict[str, Any]]) -> None:
    assert {title(manifest) for manifest in rendered(DEFAULT)} <= manifests.keys()
