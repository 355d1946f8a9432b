from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.errors import Forbidden, Transient
from upgrade_manager.kube.resources import PODS
from upgrade_manager.pipeline.podstate import describe, unready_pod

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.kube.errors import KubeError

PLACE = "harvester-system"


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"name": "apply", "state": {"waiting": {"reason": reason, "message": message}}}


def unmet(type_: str, **more: str) -> list[dict[str, str]]:
    return [{"type": type_, "status": "False", **more}]


UNSCHEDULABLE = unmet("PodScheduled", reason="Unschedulable", message="0/3 nodes are available")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        pytest.param({}, "is Pending", id="nobody has seen it yet"),
        pytest.param(
            {"phase": "Pending", "conditions": UNSCHEDULABLE},
            "is Pending (Unschedulable: 0/3 nodes are available)",
            id="it finds no node",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [waits("ImagePullBackOff", "no such image")]},
            "is Pending (ImagePullBackOff: no such image)",
            id="its image cannot be had",
        ),
        pytest.param(
            {"phase": "Pending", "initContainerStatuses": [waits("CreateContainerError")]},
            "is Pending (CreateContainerError)",
            id="a container before the others cannot start",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [waits("ContainerCreating")]},
            "is Pending",
            id="it is being made as a matter of course",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [waits("CrashLoopBackOff", "back-off 10s")]},
            "is running, but not ready (CrashLoopBackOff: back-off 10s)",
            id="it ends again and again",
        ),
        pytest.param({"phase": "Running"}, "is running, but not ready", id="its probe does not succeed yet"),
        pytest.param(
            {"phase": "Unknown", "reason": "NodeLost", "message": "node n1 is gone"},
            "is Unknown (NodeLost: node n1 is gone)",
            id="its node is gone",
        ),
        pytest.param(
            {"phase": None, "containerStatuses": [{"state": None}], "conditions": None}, "is Pending", id="nulls"
        ),
    ],
)
def test_a_pod_is_told_with_its_phase_and_what_holds_it_up(status: dict[str, Any], said: str) -> None:
    assert describe({"metadata": {"name": "p"}, "status": status}) == f"Pod p {said}"


async def put(cluster: Harvester, name: str, *, app: str = "x", **status: Any) -> None:
    manifest = {
        "metadata": {"name": name, "namespace": PLACE, "labels": {"app": app}},
        "spec": {"containers": [{"name": "apply", "image": "x"}]},
    }
    await cluster.put(PODS, manifest, status=status)


async def found(cluster: Harvester) -> str:
    return await unready_pod(cluster.client, namespace=PLACE, label_selector="app=x")


async def test_the_pod_that_somebody_says_something_about_comes_first(cluster: Harvester) -> None:
    await put(cluster, "a", phase="Pending")
    await put(cluster, "b", phase="Pending", conditions=UNSCHEDULABLE)
    assert (await found(cluster)).startswith("Pod b is Pending (Unschedulable")


async def test_pods_that_are_over_or_ready_or_others_are_passed_over(cluster: Harvester) -> None:
    await put(cluster, "a", phase="Failed", reason="Evicted")
    await put(cluster, "b", phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    await put(cluster, "c", app="y", phase="Pending", conditions=UNSCHEDULABLE)
    assert await found(cluster) == ""
    await put(cluster, "d", phase="Pending")
    assert await found(cluster) == "Pod d is Pending"


@pytest.mark.parametrize("error", [Transient("down"), Forbidden("no")], ids=["down", "forbidden"])
async def test_pods_that_cannot_be_read_are_no_error(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: KubeError
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(cluster.client, "list", refuse)
    assert await found(cluster) == ""
