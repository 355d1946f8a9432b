from __future__ import annotations

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
