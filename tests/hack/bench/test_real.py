from __future__ import annotations

import pytest

from hack.bench.real import requests_per_node
from hack.bench.recorder import Exchange
from upgrade_manager.kube.transport import Request

STATUS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans/demo/status"


def write(*upgraded: str, path: str = STATUS) -> Exchange:
    states = ",".join(f'"{node}":{{"state":"PostDrained"}}' for node in upgraded)
    return Exchange(
        request=Request(method="PATCH", path=path, body=f'{{"status":{{{states}}}}}'.encode()),
        status=200,
        began=0,
        ended=0,
    )


def test_requests_are_counted_from_record_to_record() -> None:
    other = write(path="/api/v1/nodes/n1")
    exchanges = [*[other] * 20, write("n1"), *[other] * 3, write("n2"), *[other] * 7, write("n3"), *[other] * 20]
    assert requests_per_node(exchanges) == 6


def test_nodes_in_one_record_count_separately() -> None:
    exchanges = [write("n1"), write(), write(), write(), write("n2", "n3")]
    assert requests_per_node(exchanges) == 2


PLANS, EVENTS = "/apis/upgrade.cattle.io/v1/namespaces/cattle-system/plans", "/api/v1/namespaces/default/events"
HISTORY = "/api/v1/namespaces/harvester-system/configmaps"


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "is_of_pair"),
    [
        ("GET", "/apis/management.cattle.io/v3/namespaces/fleet-local/managedcharts/harvester", "", "", True),
        ("GET", "/apis/kubevirt.io/v1/namespaces/harvester-system/kubevirts", "metadata.name=kubevirt", "", True),
        ("GET", "/apis/kubevirt.io/v1/virtualmachineinstances", "", "", False),
        ("POST", PLANS, "", '{"metadata":{"name":"demo-skip-on"}}', True),
        ("POST", PLANS, "", '{"metadata":{"name":"demo-image-preload"}}', False),
        ("DELETE", PLANS, "upgrade-component=skip-on", "", True),
        ("POST", EVENTS, "", '{"message":"ManagedChart fleet-local/harvester: restored"}', True),
        ("POST", EVENTS, "", '{"message":"Completed phase ClusterUpgrade"}', False),
        ("GET", "/apis/batch/v1/namespaces/kube-system/jobs/helm-install-rke2-multus", "", "", True),
        ("POST", HISTORY, "", '{"data":{"demo":"ManagedChart fleet-local/harvester: restored"}}', False),
        ("PATCH", STATUS, "", '{"status":{"message":"ManagedChart fleet-local/harvester"}}', False),
    ],
)
def test_requests_of_the_release_pair(*, method: str, path: str, query: str, body: str, is_of_pair: bool) -> None:
    selected = (("fieldSelector", query),) if query else ()
    request = Request(method=method, path=path, query=selected, body=body.encode())
    assert Exchange(request=request, status=200, began=0, ended=0).is_of_release_pair is is_of_pair
