"""The layout of deploy: every file is used once, and the components fit the default."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support.kustomize import COMPONENTS, DEFAULT, DEPLOY, files, rendered, title, with_components
from upgrade_manager import __version__
from webhook.certificates.rotation import SECRET, SERVICE

if TYPE_CHECKING:
    from pathlib import Path

NAME = "harvester-upgrade-manager"
FOLDERS = sorted(path.parent for path in DEPLOY.rglob("kustomization.yaml"))


def named(kind: str, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return found


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
    (container,) = named("Deployment", manifests)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{NAME}:v{__version__}"


def test_comments_of_the_default_name_the_components() -> None:
    text = (DEFAULT / "kustomization.yaml").read_text()
    assert tuple(re.findall(r"^#   - \.\./(\S+) #", text, re.MULTILINE)) == COMPONENTS


def test_components_fit_the_default_and_each_other(tmp_path: Path) -> None:
    manifests = rendered(with_components(tmp_path, COMPONENTS))
    pod = named("Deployment", manifests)["spec"]["template"]
    ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    # One Certificate in place of the Secret that the manager fills.
    certificate, secrets = named("Certificate", manifests), {one["kind"] for one in manifests} & {"Secret"}
    assert secrets == set()
    assert certificate["spec"]["secretName"] != SECRET
    assert f"{SERVICE}.harvester-system.svc" in certificate["spec"]["dnsNames"]
    assert certificate["spec"]["issuerRef"]["name"] == named("Issuer", manifests)["metadata"]["name"]
    injected = named("ValidatingWebhookConfiguration", manifests)["metadata"]["annotations"]
    assert injected == {"cert-manager.io/inject-ca-from": f"harvester-system/{certificate['metadata']['name']}"}
    (volume,) = [one for one in pod["spec"]["volumes"] if "secret" in one]
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]
    (mount,) = [one for one in pod["spec"]["containers"][0]["volumeMounts"] if one["name"] == volume["name"]]
    assert f"--webhook-cert-path={mount['mountPath']}" in pod["spec"]["containers"][0]["args"]
    # The ServiceMonitor selects one Service by its labels, and a port by its name.
    monitor = named("ServiceMonitor", manifests)["spec"]
    labels = monitor["selector"]["matchLabels"].items()
    (service,) = [one for one in manifests if one["kind"] == "Service" and labels <= one["metadata"]["labels"].items()]
    assert [monitor["endpoints"][0]["port"]] == [port["name"] for port in service["spec"]["ports"]]
    policy = named("NetworkPolicy", manifests)["spec"]
    assert policy["podSelector"] == {"matchLabels": pod["metadata"]["labels"]}
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == ports


def test_samples_are_the_manifests_of_the_readme() -> None:
    readme = (DEPLOY.parent / "README.md").read_text()
    shown = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", readme, re.DOTALL))
    samples = {path.name: path.read_text() for path in (DEPLOY / "samples").glob("*.yaml")}
    del samples["kustomization.yaml"]
    assert samples == {name: shown[name] for name in samples}
