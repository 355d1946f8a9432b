from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.facts.rancher_cluster import not_ready
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from webhook.checks.cluster import CHECK

ABSENT = "Cluster fleet-local/local (provisioning.cattle.io) does not exist. Rancher creates it; show Rancher's log: "
NOT_READY = "Cluster fleet-local/local is not ready: {}. Wait until it is, or repair it: kubectl describe "
NOT_REPORTED = NOT_READY.format("Rancher does not report why")
LOST = {"type": "Ready", "status": "False", "message": "node lost.\n"}


def cluster(status: Any, name: str = "local", namespace: str = "fleet-local") -> Object:
    return named(name, namespace, status=status)


@pytest.mark.rule("admission: Rancher's cluster fleet-local/local must exist and be ready")
@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        pytest.param([cluster({"ready": True}), cluster({}, "other")], [], id="ready"),
        pytest.param([], [ABSENT], id="absent"),
        pytest.param([cluster({"ready": True}, "other")], [ABSENT], id="another name"),
        pytest.param([cluster({"ready": True}, namespace="default")], [ABSENT], id="another namespace"),
        pytest.param([cluster({"conditions": [LOST]})], [NOT_READY.format("Ready: node lost")], id="not ready"),
        pytest.param([cluster({"ready": False})], [NOT_REPORTED], id="no reason"),
        pytest.param([cluster(None)], [NOT_REPORTED], id="no status"),
        pytest.param([cluster({"ready": "true", "conditions": {}})], [NOT_REPORTED], id="wrong types"),
    ],
)
async def test_cluster(clusters: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({PROVISIONING_CLUSTERS: clusters})), expected)


@pytest.mark.rule("blockers: webhook and Jobs give the same reason for a cluster that is not ready")
@pytest.mark.parametrize("type_", ["Ready", "Updated", "Provisioned"])
async def test_every_unmet_condition_is_reported(type_: str) -> None:
    unmet = cluster({"conditions": [{**LOST, "type": type_}, {**LOST, "type": "Connected"}]})
    (message,) = await find(CHECK, MemoryReader({PROVISIONING_CLUSTERS: [unmet]}))
    assert message.startswith(f"{not_ready(unmet)}. ")
    assert not_ready(unmet) == f"Cluster fleet-local/local is not ready: {type_}: node lost"
