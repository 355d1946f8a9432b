"""The component webhook-in-manager, as kubectl renders it: the manager's Pods serve the webhook."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.programs.helm import Helm, without_release
from tests.support.programs.kustomize import COMPONENTS, DEFAULT, IN_MANAGER, rendered, title, with_components
from webhook.certificates.rotation import SERVICE

MANAGER, ALONE = "harvester-upgrade-manager", "harvester-upgrade-manager-webhook"
OF_THE_WEBHOOK = {
    f"ServiceAccount harvester-system/{ALONE}",
    f"Deployment harvester-system/{ALONE}",
    f"PodDisruptionBudget harvester-system/{ALONE}",
    f"Service harvester-system/{ALONE}-metrics",
}


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = with_components(tmp_path_factory.mktemp("in-manager"), [IN_MANAGER])
    return {title(manifest): manifest for manifest in rendered(folder)}


def test_objects_of_the_webhooks_deployment_are_left_out(manifests: dict[str, dict[str, Any]]) -> None:
    assert {title(manifest) for manifest in rendered(DEFAULT)} - manifests.keys() == OF_THE_WEBHOOK


def test_manager_has_the_webhooks_permissions(manifests: dict[str, dict[str, Any]]) -> None:
    subject = {"kind": "ServiceAccount", "name": MANAGER, "namespace": "harvester-system"}
    bindings = [one for one in manifests.values() if one["kind"].endswith("RoleBinding")]
    assert {one["roleRef"]["name"] for one in bindings} == {MANAGER, ALONE, f"{ALONE}-certificates"}
    assert all(one["subjects"] == [subject] for one in bindings)


def test_managers_pods_serve_the_webhook(manifests: dict[str, dict[str, Any]]) -> None:
    pods = manifests[f"Deployment harvester-system/{MANAGER}"]["spec"]["template"]
    selector = manifests[f"Service harvester-system/{SERVICE}"]["spec"]["selector"]
    (container,) = pods["spec"]["containers"]
    assert selector.items() <= pods["metadata"]["labels"].items()
    assert {"name": "webhook", "containerPort": 9443} in container["ports"]
    assert "--webhook-bind-address=:9443" in container["args"]
    assert {"name": "ENABLE_WEBHOOKS", "value": "true"} in container["env"]


def test_service_never_selects_pods_that_lose_their_rights(manifests: dict[str, dict[str, Any]]) -> None:
    """The webhook's bindings and its Service change together, in either direction."""
    default = {title(one): one for one in rendered(DEFAULT)}
    old = default[f"Deployment harvester-system/{ALONE}"]["spec"]["template"]["metadata"]["labels"]
    served = manifests[f"Service harvester-system/{SERVICE}"]["spec"]["selector"]
    assert not served.items() <= old.items()
    old = manifests[f"Deployment harvester-system/{MANAGER}"]["spec"]["template"]["metadata"]["labels"]
    served = default[f"Service harvester-system/{SERVICE}"]["spec"]["selector"]
    assert not served.items() <= old.items()


@pytest.mark.assets
@pytest.mark.parametrize(
    ("components", "settings"),
    [
        pytest.param((), (), id="alone"),
        pytest.param(
            COMPONENTS,
            (
                "webhook.certificates=cert-manager",
                "serviceMonitor.enabled=true",
                "prometheusRule.enabled=true",
                "dashboard.enabled=true",
                "networkPolicy.enabled=true",
            ),
            id="with all components",
        ),
    ],
)
def test_chart_renders_the_same_objects(
    tmp_path_factory: pytest.TempPathFactory, components: tuple[str, ...], settings: tuple[str, ...]
) -> None:
    folder = with_components(tmp_path_factory.mktemp("all"), (IN_MANAGER, *components))
    chart = Helm(tmp_path_factory.mktemp("helm")).rendered("webhook.separate=false", *settings)
    assert {title(one): without_release(one) for one in chart} == {title(one): one for one in rendered(folder)}
