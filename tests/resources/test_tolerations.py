from __future__ import annotations

import pytest

from upgrade_manager.resources.tolerations import tolerations


@pytest.mark.rule("workloads: nine tolerations cover drains, unreachable nodes, roles, architectures and add-ons")
def test_they_are_the_contracts_nine() -> None:
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


def test_each_caller_gets_his_own() -> None:
    tolerations()[0]["key"] = "changed"
    assert tolerations()[0]["key"] == "node.kubernetes.io/unschedulable"
