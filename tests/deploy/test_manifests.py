"""The manifests in deploy: complete, with minimal permissions and a restricted Pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from upgrade_manager import __version__

DEPLOY = Path(__file__).parents[2] / "deploy"
KUSTOMIZATION = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for path in KUSTOMIZATION["resources"]
    if not path.startswith("crds/")
    for manifest in yaml.safe_load_all((DEPLOY / path).read_text())
]
ROLES = [manifest for manifest in MANIFESTS if manifest["kind"] in {"Role", "ClusterRole"}]


def one(kind: str) -> dict[str, Any]:
    (found,) = [manifest for manifest in MANIFESTS if manifest["kind"] == kind]
    return found


def title(manifest: dict[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def test_every_manifest_is_listed_and_every_listed_one_exists() -> None:
    files = {str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*.yaml")} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == files


def test_no_object_is_defined_twice() -> None:
    titles = [title(manifest) for manifest in MANIFESTS]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("role", ROLES, ids=title)
def test_role_has_no_wildcard_and_is_bound_unless_for_scrapers(role: dict[str, Any]) -> None:
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
    assert bound == ([] if metadata["name"].endswith("metrics-reader") else [[account]])


def test_secrets_are_read_in_fleet_local_only() -> None:
    places = [
        role["metadata"].get("namespace")
        for role in ROLES
        if any(
            "secrets" in rule.get("resources", ()) and {"get", "list", "watch"} & {*rule["verbs"]}
            for rule in role["rules"]
        )
    ]
    assert places == ["fleet-local"]


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


def test_service_port_is_a_container_port() -> None:
    ports = {port["name"] for port in one("Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in one("Service")["spec"]["ports"]} <= ports


def test_image_has_the_project_version() -> None:
    (image,) = KUSTOMIZATION["images"]
    assert image == {
        "name": one("Deployment")["spec"]["template"]["spec"]["containers"][0]["image"],
        "newTag": f"v{__version__}",
    }
