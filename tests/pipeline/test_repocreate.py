from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.kinds import DEPLOYMENTS, ENDPOINT_SLICES, SERVICES
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.phase import Completed, Waiting
from upgrade_manager.pipeline.repocreate import RepoCreate
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from tests.support.harvester import Harvester

STATUS = {"isoImageID": "up-iso"}
PLACE = "harvester-system"


@pytest.mark.parametrize(
    ("ordinary", "witnesses", "replicas"),
    [
        pytest.param(1, 0, 1, id="one node"),
        pytest.param(3, 0, 2, id="three nodes"),
        pytest.param(2, 1, 2, id="two nodes and a witness"),
        pytest.param(1, 1, 1, id="one node and a witness"),
        pytest.param(0, 1, 1, id="a witness alone"),
    ],
)
async def test_there_are_two_replicas_where_two_nodes_can_run_them(
    cluster: Harvester, ordinary: int, witnesses: int, replicas: int
) -> None:
    await cluster.nodes(*(f"n{number}" for number in range(ordinary)))
    witness = {"node-role.harvesterhci.io/witness": "true"}
    await cluster.nodes(*(f"w{number}" for number in range(witnesses)), **witness)
    scope = cluster.scope(await cluster.plan(status=STATUS))
    outcome = await RepoCreate().run(scope)
    assert outcome == Waiting(
        message=f"waiting for Deployment harvester-system/up-repo: 0 of {replicas} replicas ready"
    )
    deployment = await cluster.find(DEPLOYMENTS, "up-repo", PLACE)
    assert deployment["spec"]["replicas"] == replicas
    (volume,) = deployment["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "up-iso"
    assert await cluster.names(SERVICES, PLACE) == ["up-repo"]


async def endpoints(cluster: Harvester, *ready: bool | None, service: str = "up-repo") -> None:
    manifest = {
        "metadata": {"name": "up-repo-x", "namespace": PLACE, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.0.0.1"], **({} if state is None else {"conditions": {"ready": state}})}
            for state in ready
        ],
    }
    await cluster.put(ENDPOINT_SLICES, manifest)


@pytest.mark.parametrize(
    ("available", "ready", "outcome"),
    [
        pytest.param(1, [True], "1 of 2 replicas ready", id="a replica is missing"),
        pytest.param(2, None, "no endpoint is ready", id="no EndpointSlice"),
        pytest.param(2, [], "no endpoint is ready", id="an empty one"),
        pytest.param(2, [False, False], "no endpoint is ready", id="none that is ready"),
        pytest.param(2, [False, True], "", id="one that is ready"),
        pytest.param(2, [None], "", id="one that does not say counts as ready"),
    ],
)
async def test_it_is_there_when_the_replicas_are_and_the_service_leads_to_one(
    cluster: Harvester, available: int, ready: list[bool | None] | None, outcome: str
) -> None:
    await cluster.nodes("n1", "n2")
    scope = cluster.scope(await cluster.plan(status=STATUS))
    await RepoCreate().run(scope)
    status = {"availableReplicas": available, "readyReplicas": available, "replicas": 2}
    await cluster.finish(DEPLOYMENTS, "up-repo", PLACE, status)
    if ready is not None:
        await endpoints(cluster, *ready)
    found = await RepoCreate().run(scope)
    assert isinstance(found, Waiting if outcome else Completed)
    if isinstance(found, Waiting):
        assert outcome in found.message


async def test_the_endpoints_of_another_service_do_not_count(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    scope = cluster.scope(await cluster.plan(status=STATUS))
    await RepoCreate().run(scope)
    await cluster.finish(DEPLOYMENTS, "up-repo", PLACE, {"availableReplicas": 1, "readyReplicas": 1, "replicas": 1})
    await endpoints(cluster, True, service="another")  # noqa: FBT003  # ready
    assert isinstance(await RepoCreate().run(scope), Waiting)


async def test_a_crash_between_service_and_deployment_changes_nothing(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    scope = cluster.scope(await cluster.plan(status=STATUS))
    await RepoCreate().run(scope)
    await cluster.client.delete(DEPLOYMENTS, "up-repo", namespace=PLACE)
    await RepoCreate().run(scope)
    assert await cluster.names(DEPLOYMENTS, PLACE) == await cluster.names(SERVICES, PLACE) == ["up-repo"]


@pytest.mark.parametrize("labelled", [True, False])
async def test_a_namesakes_deployment_is_not_adopted(cluster: Harvester, labelled: bool) -> None:  # noqa: FBT001  # a table
    await cluster.nodes("n1")
    scope = cluster.scope(await cluster.plan(status=STATUS))
    image = ToolkitImage(repository="r", tag="t")
    foreign: dict[str, Any] = repository_deployment(Owner(name="up", uid="old"), image=image, claim="c", replicas=1)
    if not labelled:
        foreign["metadata"]["labels"] = {}
    await cluster.put(DEPLOYMENTS, foreign)
    with pytest.raises(ForeignObject, match="belongs to UpgradePlan up"):
        await RepoCreate().run(scope)
