"""What is installed in a cluster: it builds, it may do what it must and no more, and its Pod is a restricted one."""

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


def test_no_object_is_there_twice() -> None:
    titles = [title(manifest) for manifest in MANIFESTS]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("role", ROLES, ids=title)
class TestRole:
    def test_it_grants_nothing_by_wildcard(self, role: dict[str, Any]) -> None:
        granted = [word for rule in role["rules"] for words in rule.values() for word in words]
        assert "*" not in granted

    def test_it_is_bound_to_the_manager_unless_it_is_for_scrapers(self, role: dict[str, Any]) -> None:
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


class TestPod:
    """The rules of the `restricted` Pod Security level, and a read-only root file system."""

    pod = one("Deployment")["spec"]["template"]["spec"]

    def test_it_runs_unprivileged_with_the_default_seccomp_profile(self) -> None:
        context = self.pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}

    def test_its_containers_have_no_privileges(self) -> None:
        assert [container["securityContext"] for container in self.pod["containers"]] == [
            {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
        ]

    def test_it_takes_nothing_from_its_host(self) -> None:
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(self.pod)
        assert [volume for volume in self.pod["volumes"] if "emptyDir" not in volume] == []

    def test_it_has_longer_to_stop_than_the_manager_takes(self) -> None:
        assert self.pod["terminationGracePeriodSeconds"] > 30


def test_the_services_port_is_the_containers() -> None:
    ports = {port["name"] for port in one("Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in one("Service")["spec"]["ports"]} <= ports


def test_the_image_has_the_projects_version() -> None:
    (image,) = KUSTOMIZATION["images"]
    assert image == {
        "name": one("Deployment")["spec"]["template"]["spec"]["containers"][0]["image"],
        "newTag": f"v{__version__}",
    }
