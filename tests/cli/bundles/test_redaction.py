"""No secret gets into a bundle."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.cli.bundles.redaction import redacted_object, redacted_text
from upgrade_manager.runtime.logging import REDACTED

SECRET = "hunter2"  # noqa: S105  # planted
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"  # noqa: S105  # planted
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.rule("bundle: no data of a Secret, no token, no password and no key is in it")
@pytest.mark.parametrize(
    "text",
    [
        f"password={SECRET} retry",
        f"REGISTRY_PASSWORD='{SECRET}'",
        f'{{"password": "{SECRET}", "a": 1}}',
        f'"{{\\"adminPassword\\":\\"{SECRET}\\"}}"',
        f"--token {SECRET} --a b",
        f"--registry-password={SECRET}",
        f"token: {SECRET}",
        f"secretAccessKey={SECRET}",
        f"client_secret={SECRET}",
        f"apiKey: {SECRET}",
        f"get https://admin:{SECRET}@registry.example.org/v2",
        f"Authorization: Bearer {SECRET}",
        f"Authorization: Basic {'aHVudGVyMjpodW50ZXIy'}",
        f"found {TOKEN} in it",
        KEY,
    ],
)
def test_secret_in_a_text_is_removed(text: str) -> None:
    found = redacted_text(f"before {text} after")
    for secret in (SECRET, "aHVudGVyMjpodW50ZXIy", TOKEN):
        assert secret not in found
    assert REDACTED in found
    assert found.startswith("before ")


@pytest.mark.parametrize(
    "text",
    [
        "Secret fleet-local/custom-1-machine-plan: pre-drain hook is pending",
        "Secret cattle-system/token-a: not found",
        "Secret cattle-system/a-token: not found",
        "the Pod has no token",
        "https://registry.example.org/v2: 401 Unauthorized",
        "node node-0 upgrade failed: exit code 1",
    ],
)
def test_text_without_secrets_stays(text: str) -> None:
    assert redacted_text(text) == text


def of(kind: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **more}


@pytest.mark.parametrize(
    "obj",
    [
        of("Secret", data={"a": SECRET}, stringData={"a": SECRET}),
        of("Pod", spec={"containers": [{"env": [{"name": "DB_PASSWORD", "value": SECRET}]}]}),
        of("Pod", spec={"containers": [{"args": ["--token", f"--password={SECRET}"]}]}),
        of("ManagedChart", spec={"values": {"grafana": {"adminPassword": SECRET}}}),
        of("Cluster", spec={"rkeConfig": {"registries": {"configs": {"a": {"auth": {"token": [SECRET]}}}}}}),
        of("Pod", status={"message": f"pull https://u:{SECRET}@registry/x"}),
    ],
)
def test_secret_in_an_object_is_removed(obj: dict[str, Any]) -> None:
    assert SECRET not in str(redacted_object(obj))


@pytest.mark.parametrize("key", ["kubectl.kubernetes.io/last-applied-configuration", "objectset.rio.cattle.io/applied"])
def test_copy_of_an_object_is_removed(key: str) -> None:
    obj = of("Deployment")
    obj["metadata"] |= {"annotations": {key: SECRET, "a": "b"}, "managedFields": [SECRET]}
    assert redacted_object(obj)["metadata"] == {"name": "a", "annotations": {"a": "b"}}


def test_of_a_secret_only_drains_are_kept() -> None:
    obj = of("Secret", type="rke.cattle.io/machine-plan", data={"plan": SECRET})
    obj["metadata"]["annotations"] = {"rke.cattle.io/pre-drain": "{}", "example.org/a": SECRET}
    assert redacted_object(obj) == {
        **of("Secret"),
        "metadata": {"name": "a", "annotations": {"rke.cattle.io/pre-drain": "{}"}},
    }


def test_other_values_stay() -> None:
    spec = {
        "env": [{"name": "NODE", "value": "node-0"}],
        "replicas": 2,
        "automountServiceAccountToken": False,
        "a": None,
    }
    assert redacted_object(of("Pod", spec=spec))["spec"] == spec


def test_images_of_a_node_are_left_out() -> None:
    found = redacted_object(of("Node", status={"images": [{}], "nodeInfo": {"osImage": "x"}}))
    assert found["status"] == {"nodeInfo": {"osImage": "x"}}


@pytest.mark.parametrize("value", ["", [], {}, 7, "x" * 10000, [[[[{}]]]]])
def test_object_of_any_content_is_read(value: Any) -> None:
    assert redacted_object({"kind": "Pod", "metadata": {"annotations": value}, "spec": value})
