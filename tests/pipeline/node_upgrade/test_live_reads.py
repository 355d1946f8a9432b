"""Before a step that nothing undoes, the manager compares its cache with the API server, and sends the step once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.nodes import OPTIONS, PRE
from upgrade_manager.kube.errors import PreconditionFailed, Throttled, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, UPGRADE_PLANS
from upgrade_manager.kube.transport import Response
from upgrade_manager.pipeline.informers import WRITE_TIMEOUT
from upgrade_manager.pipeline.node_upgrade.missing_nodes import find_all_missing
from upgrade_manager.pipeline.selections import MANAGED_NODES

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.transport import Request
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.informers import InformerSpec

OLD_OS = "Harvester v1.6.1"


async def lose(stage: NodeUpgradeRun) -> None:
    await stage.report("n2", os=OLD_OS, ready="Unknown")


async def delete(stage: NodeUpgradeRun) -> None:
    await stage.client.delete(NODES, "n2")


async def nothing(_: NodeUpgradeRun) -> None:
    return


async def start(stage: NodeUpgradeRun) -> None:
    """Let the start of n1 be due."""
    await stage.begin("n1", "n2", "n3")
    await stage.rancher("n1", pre=OPTIONS)


async def drain(stage: NodeUpgradeRun) -> None:
    """Let the acknowledgement of n1's hook be due."""
    await start(stage)
    await stage.run()
    await stage.finish("n1", "pre-drain")


async def steps(stage: NodeUpgradeRun) -> tuple[int, dict[str, str]]:
    return len(await stage.jobs()), await stage.acknowledgements("n1")


@pytest.mark.rule("nodes: a watch of Nodes that hangs opens no gate")
@pytest.mark.parametrize("change", [lose, delete])
@pytest.mark.parametrize("prepare", [start, drain])
async def test_cache_behind_the_server_holds_the_step_back(stage: NodeUpgradeRun, prepare: Any, change: Any) -> None:
    await prepare(stage)
    before = await steps(stage)
    await stage.cluster.observed.freeze(MANAGED_NODES)
    await change(stage)
    with pytest.raises(Transient, match="the watch of nodes is behind the API server; no node is started or drained"):
        await stage.run()
    assert await steps(stage) == before


@pytest.mark.parametrize("prepare", [start, drain])
async def test_step_follows_once_the_cache_has_caught_up(stage: NodeUpgradeRun, prepare: Any) -> None:
    await prepare(stage)
    await stage.cluster.observed.freeze(MANAGED_NODES)
    await lose(stage)
    with pytest.raises(Transient):
        await stage.run()
    await stage.report("n2", os=OLD_OS)
    stage.cluster.observed.thaw()
    await stage.run()
    assert await steps(stage) == (1, {} if prepare is start else {PRE: OPTIONS})


class Throttling:
    """The API server, which first refuses a step with 429, as it does for a flow that sends too much."""

    def __init__(self, server: Any, step: str, meanwhile: Any) -> None:
        self.server, self.step, self.meanwhile = server, step, meanwhile
        self.open, self.refused = server.open, 0

    async def send(self, request: Request) -> Response:
        if f"{request.method} {request.path}".startswith(self.step) and not self.refused:
            self.refused += 1
            await self.meanwhile()
            return Response(status=429, headers={"retry-after": "5"}, body=b"{}")
        response: Response = await self.server.send(request)
        return response


@pytest.mark.rule("nodes: a step that the API server throttles is decided again, not repeated")
@pytest.mark.parametrize(
    ("prepare", "step"),
    [
        (start, "POST /apis/batch/v1/namespaces/harvester-system/jobs"),
        (drain, "PATCH /api/v1/namespaces/fleet-local/secrets"),
    ],
)
@pytest.mark.parametrize("change", [lose, nothing])
async def test_throttled_step_is_decided_again(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch, prepare: Any, step: str, change: Any
) -> None:
    await prepare(stage)
    before = await steps(stage)
    server = Throttling(stage.cluster.server, step, lambda: change(stage))
    monkeypatch.setattr(stage.client._rest, "_transport", server)
    with pytest.raises(Throttled):
        await stage.run()
    assert (server.refused, await steps(stage)) == (1, before)
    await stage.run()
    taken = (1, {} if prepare is start else {PRE: OPTIONS})
    assert await steps(stage) == (taken if change is nothing else before)


@pytest.mark.rule("nodes: the gate is passed again immediately before the step is written")
async def test_node_that_goes_down_during_a_decision_holds_the_step(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last decision lists the Nodes, because n3 has left."""
    await start(stage)
    await stage.client.delete(NODES, "n3")
    await stage.client.delete(MACHINES, "m-n3", namespace="fleet-local")
    lists = 0

    async def slow(ctx: ReconcileContext, nodes: list[str]) -> Any:
        nonlocal lists
        lists += 1
        if lists == 2:
            await lose(stage)
        return await find_all_missing(ctx, nodes)

    monkeypatch.setattr("upgrade_manager.pipeline.node_upgrade.missing_nodes.find_all_missing", slow)
    await stage.run()
    assert (lists > 2, await stage.jobs()) == (True, [])


@pytest.mark.rule("nodes: a plan that is being deleted acknowledges nothing")
async def test_plan_that_is_deleted_during_a_slow_comparison(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await drain(stage)
    held = MergePatch({"metadata": {"finalizers": ["example.com/held"]}})
    await stage.client.patch(UPGRADE_PLANS, "up", held)
    confirm = stage.cluster.observed._confirm

    async def slow(client: Client, spec: InformerSpec) -> None:
        await stage.client.delete(UPGRADE_PLANS, "up")
        await asyncio.sleep(WRITE_TIMEOUT)
        await confirm(client, spec)

    monkeypatch.setattr(stage.cluster.observed, "_confirm", slow)
    with pytest.raises(PreconditionFailed):
        await stage.run()
    assert await stage.acknowledgements("n1") == {}
