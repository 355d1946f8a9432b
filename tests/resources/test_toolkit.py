from __future__ import annotations

import pytest

from upgrade_manager.resources.toolkit import ToolkitImage, tolerations

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("tag", "digest", "image"),
    [
        pytest.param("v1.7.0", "", "registry:5000/toolkit:v1.7.0", id="a release"),
        pytest.param("v1.7.0+dev", "", "registry:5000/toolkit:v1.7.0-dev", id="a plus is replaced"),
        pytest.param("v1.7.0", DIGEST, f"registry:5000/toolkit@{DIGEST}", id="a digest, without the tag"),
    ],
)
def test_image_name(tag: str, digest: str, image: str) -> None:
    assert str(ToolkitImage(repository="registry:5000/toolkit", tag=tag, digest=digest)) == image


@pytest.mark.rule("workloads: nine tolerations cover drains, unreachable nodes, roles, architectures and add-ons")
def test_tolerations() -> None:
    assert [tuple(entry.get(key) for key in ("key", "operator", "value", "effect")) for entry in tolerations()] == [
        ("node.kubernetes.io/unschedulable", "Exists", None, "NoSchedule"),
        ("node.kubernetes.io/unreachable", "Exists", None, "NoExecute"),
        ("node-role.kubernetes.io/control-plane", "Exists", None, "NoExecute"),
        ("node-role.kubernetes.io/etcd", "Exists", None, "NoExecute"),
        ("kubernetes.io/arch", "Equal", "amd64", "NoSchedule"),
        ("kubernetes.io/arch", "Equal", "arm64", "NoSchedule"),
        ("kubernetes.io/arch", "Equal", "arm", "NoSchedule"),
        ("kubevirt.io/drain", "Exists", None, "NoSchedule"),
        ("CriticalAddonsOnly", "Exists", None, None),
    ]


def test_tolerations_are_a_copy() -> None:
    tolerations()[0]["key"] = "changed"
    assert tolerations()[0]["key"] == "node.kubernetes.io/unschedulable"
