"""The manifests in deploy: complete, with minimal permissions and a restricted Pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from upgrade_manager import __version__
from upgrade_manager.runtime.manager import GRACEFUL_SHUTDOWN_TIMEOUT
from webhook.certificates.rotation import SECRET

DEPLOY = Path(__file__).parents[2] / "deploy"
KUSTOMIZATION = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for path in KUSTOMIZATION["resources"]
    if not path.startswith("crds/")
    for manifest in yaml.safe_load_all((DEPLOY / path).read_text())
]
ROLES = [manifest for manifest in MANIFESTS if manifest["kind"] in {"Role", "ClusterRole"}]


def one(kind: str, name: str = "") -> dict[str, Any]:
    found = [manifest for manifest in MANIFESTS if manifest["kind"] == kind and name in manifest["metadata"]["name"]]
    (only,) = found
    return only


def container() -> dict[str, Any]:
    (only,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(only)


def title(manifest: dict[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


EXAMPLES = DEPLOY.parent / "docs/examples"
ALONE = "harvester-upgrade-manager-webhook"


def test_webhook_alone_has_only_the_webhook_roles() -> None:
    overlay = yaml.safe_load((EXAMPLES / "webhook-alone/kustomization.yaml").read_text())
    account, deployment = yaml.safe_load_all((EXAMPLES / "webhook-alone/webhook.yaml").read_text())
    assert (account["kind"], account["metadata"]["name"]) == ("ServiceAccount", ALONE)
    pod, manager = deployment["spec"]["template"]["spec"], one("Deployment")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == ALONE
    assert pod["securityContext"] == manager["securityContext"]
    assert pod["containers"][0]["securityContext"] == container()["securityContext"]
    patches = {entry["target"]["kind"]: yaml.safe_load(entry["patch"]) for entry in overlay["patches"]}
    assert {entry["target"]["name"] for entry in overlay["patches"]} == {ALONE, "harvester-upgrade-manager"}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert patches[kind] == [{"op": "replace", "path": "/subjects/0/name", "value": ALONE}]
    (selector,) = patches["Service"]
    assert selector["value"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert selector["value"] != one("Deployment")["spec"]["selector"]["matchLabels"]
    (disabled,) = patches["Deployment"]
    assert disabled["value"] == {"name": "ENABLE_WEBHOOKS", "value": "false"}
    index = int(disabled["path"].rpartition("/")[2])
    assert container()["env"][index]["name"] == "ENABLE_WEBHOOKS"


def test_network_policy_restricts_only_the_webhook_port() -> None:
    policy = yaml.safe_load((EXAMPLES / "network-policy.yaml").read_text())["spec"]
    pods = one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"] == {"matchLabels": pods}
    reviews, others = policy["ingress"]
    assert [port["port"] for port in reviews["ports"]] == ["webhook"]
    assert all("ipBlock" in source for source in reviews["from"])
    assert "from" not in others
    assert {port["port"] for port in reviews["ports"] + others["ports"]} == {
        port["name"] for port in container()["ports"]
    }


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


def test_image_has_the_project_version() -> None:
    (image,) = KUSTOMIZATION["images"]
    assert image == {
        "name": container()["image"],
        "newTag": f"v{__version__}",
    }
