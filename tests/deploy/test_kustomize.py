"""The layout of deploy: every file is used once, and the components fit the default, webhook-in-manager too."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs.helm import Helm, without_release
from tests.support.programs.kustomize import (
    COMPONENTS,
    DEFAULT,
    DEPLOY,
    IN_MANAGER,
    files,
    rendered,
    title,
    with_components,
)
from upgrade_manager import __version__
from webhook.certificates.rotation import SECRET, SERVICE

NAME, WEBHOOK_GROUP = "harvester-upgrade-manager", "admissionregistration.k8s.io"
FOLDERS = sorted(path.parent for path in DEPLOY.rglob("kustomization.yaml"))


def named(kind: str, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return found


def containers(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the containers of all Deployments."""
    pods = [one["spec"]["template"]["spec"] for one in manifests if one["kind"] == "Deployment"]
    return [container for pod in pods for container in pod["containers"]]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_kustomization_names_its_files_and_folders_that_exist(folder: Path) -> None:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    resources = kustomization.get("resources", [])
    assert all((folder / name).exists() for name in resources)
    own = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    # A second plan at a time is refused.
    unlisted = {"image-plan.yaml"} if folder.name == "samples" else set()
    assert own - unlisted == {name for name in resources if name.endswith(".yaml")}


def test_the_default_holds_the_objects_of_its_bases() -> None:
    manifests = rendered(DEFAULT)
    assert rendered(DEPLOY) == manifests
    sources = [title(manifest) for path in files(DEFAULT) for manifest in yaml.safe_load_all(path.read_text())]
    assert sorted(map(title, manifests)) == sorted(sources)
    assert [one["image"] for one in containers(manifests)] == [f"{NAME}:v{__version__}"] * 2


def test_digest_of_the_kustomization_pins_the_image(tmp_path: Path) -> None:
    """As docs/releasing.md describes it: digest instead of newTag."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    file = tmp_path / "deploy/default/kustomization.yaml"
    file.write_text(file.read_text().replace(f"newTag: v{__version__}", f"digest: sha256:{'a' * 64}"))
    images = [one["image"] for one in containers(rendered(tmp_path / "deploy"))]
    assert images == [f"{NAME}@sha256:{'a' * 64}"] * 2


def test_comments_of_the_default_name_the_components() -> None:
    text = (DEFAULT / "kustomization.yaml").read_text()
    assert tuple(re.findall(r"^#   - \.\./(\S+) #", text, re.MULTILINE)) == (IN_MANAGER, *COMPONENTS)


@pytest.mark.parametrize("components", [COMPONENTS, (IN_MANAGER, *COMPONENTS)], ids=["separate", "in the manager"])
def test_components_fit_the_default_and_each_other(tmp_path: Path, components: tuple[str, ...]) -> None:
    manifests = rendered(with_components(tmp_path, components))
    service = next(one["spec"] for one in manifests if one["metadata"]["name"] == SERVICE and one["kind"] == "Service")
    (pod,) = [
        one["spec"]["template"]
        for one in manifests
        if one["kind"] == "Deployment"
        and service["selector"].items() <= one["spec"]["template"]["metadata"]["labels"].items()
    ]
    # One Certificate in place of the Secret that the webhook fills.
    certificate, secrets = named("Certificate", manifests), {one["kind"] for one in manifests} & {"Secret"}
    assert secrets == set()
    assert certificate["spec"]["secretName"] != SECRET
    assert f"{SERVICE}.harvester-system.svc" in certificate["spec"]["dnsNames"]
    assert certificate["spec"]["issuerRef"]["name"] == named("Issuer", manifests)["metadata"]["name"]
    configurations = [one for one in manifests if one["kind"].endswith("WebhookConfiguration")]
    assert len(configurations) == 3
    for configuration in configurations:
        injected = configuration["metadata"]["annotations"]
        assert injected == {"cert-manager.io/inject-ca-from": f"harvester-system/{certificate['metadata']['name']}"}
    (volume,) = [one for one in pod["spec"]["volumes"] if "secret" in one]
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]
    (mount,) = [one for one in pod["spec"]["containers"][0]["volumeMounts"] if one["name"] == volume["name"]]
    assert f"--webhook-cert-path={mount['mountPath']}" in pod["spec"]["containers"][0]["args"]
    mounted = [one for one in containers(manifests) if "--webhook-cert-path=/certificates" in one["args"]]
    assert mounted == pod["spec"]["containers"]
    # API servers exempt these kinds from admission policies, so that no right to change them is left.
    roles = [one for one in manifests if one["kind"] in {"ClusterRole", "Role"}]
    about = [rule for role in roles for rule in role["rules"] if WEBHOOK_GROUP in rule.get("apiGroups", ())]
    # The end of a plan lists the configurations that a remedy has advised to delete.
    assert [rule["verbs"] for rule in about] == [["list"]]
    policies_admit_every_port(manifests)


def policies_admit_every_port(manifests: list[dict[str, Any]]) -> None:
    policies = [one["spec"] for one in manifests if one["kind"] == "NetworkPolicy"]
    for pod in [one["spec"]["template"] for one in manifests if one["kind"] == "Deployment"]:
        labels = pod["metadata"]["labels"].items()
        rules = [one["ingress"] for one in policies if one["podSelector"]["matchLabels"].items() <= labels]
        admitted = {port["port"] for ingress in rules for rule in ingress for port in rule["ports"]}
        # The kubelet of a Pod's own node is always admitted to the probes.
        assert admitted == {port["name"] for port in pod["spec"]["containers"][0]["ports"]} - {"probes"}


def test_samples_are_the_manifests_of_the_readme() -> None:
    pages = (DEPLOY.parent / "README.md", DEPLOY.parent / "docs/metrics.md")
    readme = "".join(page.read_text() for page in pages)
    shown = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", readme, re.DOTALL))
    samples = {path.name: path.read_text() for path in (DEPLOY / "samples").glob("*.yaml")}
    del samples["kustomization.yaml"]
    assert samples == {name: shown[name] for name in samples}


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


@pytest.mark.rule("workloads: a removal by label with kubectl keeps the CRD and all plans, as with Helm")
@pytest.mark.parametrize("components", [(), COMPONENTS])
def test_the_label_of_the_removal_leaves_the_crd_out_alone(tmp_path: Path, components: tuple[str, ...]) -> None:
    manifests = rendered(with_components(tmp_path, components)) if components else rendered(DEFAULT)
    kept = [one["kind"] for one in manifests if "app.kubernetes.io/name" not in one["metadata"].get("labels", {})]
    assert kept == ["CustomResourceDefinition"]
