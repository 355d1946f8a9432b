from __future__ import annotations

from hack.bench.node_cost import each_node
from hack.bench.recorder import Exchange
from upgrade_manager.kube.transport import Request

STATUS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans/demo/status"


def asked(*upgraded: str, path: str = STATUS) -> Exchange:
    states = ",".join(f'"{node}":{{"state":"PostDrained"}}' for node in upgraded)
    return Exchange(
        request=Request(method="PATCH", path=path, body=f'{{"status":{{{states}}}}}'.encode()),
        status=200,
        began=0,
        ended=0,
    )


def test_a_node_costs_what_is_asked_from_the_end_of_one_to_the_end_of_the_next() -> None:
    other = asked(path="/api/v1/nodes/n1")
    exchanges = [*[other] * 20, asked("n1"), *[other] * 3, asked("n2"), *[other] * 7, asked("n3"), *[other] * 20]
    assert each_node(exchanges) == 6


def test_nodes_that_are_recorded_together_count_each() -> None:
    exchanges = [asked("n1"), asked(), asked(), asked(), asked("n2", "n3")]
    assert each_node(exchanges) == 2
