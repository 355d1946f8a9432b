"""How Pods get their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.wire import Wire

PODS = "/api/v1/namespaces/default/pods"
BINDINGS = "/api/v1/namespaces/default/bindings"


def binding(pod: str = "one", node: str = "node-0") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}


@pytest.fixture
async def pod(wire: Wire) -> Wire:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert (await wire.post(PODS, {"metadata": {"name": "one"}, "spec": spec})).status == 201
    return wire


async def test_a_pod_gets_its_node_and_says_so(pod: Wire) -> None:
    answer = await pod.post(BINDINGS, binding())
    assert (answer.status, answer.body["status"]) == (201, "Success")
    bound = (await pod.get(f"{PODS}/one")).body
    assert bound["spec"]["nodeName"] == "node-0"
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]


async def test_a_pod_that_has_a_node_keeps_it(pod: Wire) -> None:
    await pod.post(BINDINGS, binding())
    answer = await pod.post(BINDINGS, binding(node="node-1"))
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert 'already assigned to node "node-0"' in answer.body["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(binding(pod="none"), 404, id="no such Pod"),
        pytest.param(binding(node=""), 400, id="no node"),
    ],
)
async def test_what_cannot_be_bound_is_refused(pod: Wire, body: dict[str, Any], status: int) -> None:
    assert (await pod.post(BINDINGS, body)).status == status
