"""Requests of a healthy upgrade: none is repeated or useless, and each node costs the same in large clusters."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from hack import scenario as scenarios
from hack import virtual_time
from hack.apiserver.call import call_of
from hack.bench.in_process import MANAGER, upgraded
from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.pipeline.phases.test_iso_checksums_runs import OWN
from tests.support.managers.healthy_run import SETTLED, healthy_run
from tests.support.managers.manager_restarts import InClusterManager
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun
from tests.support.managers.write_hooks import NoopWrites
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from upgrade_manager.kube.transport import Request
from upgrade_manager.pipeline.outcome import Completed
from upgrade_manager.pipeline.phases import image_preload

pytestmark = pytest.mark.full

#: A VM that cannot migrate: it is shut down, and started again on request.
FIXED: dict[str, Any] = {"name": "fixed", "node": "node-1", "migratable": False}
PAUSED: dict[str, Any] = {**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": ["node-2"]}}
RESTORING: dict[str, Any] = {**BY_VERSION, "restoreVM": True}
#: At least so many patches has the upgrade of one node.
ENOUGH = 10
#: Requests for each further node: at most, and how much more on a larger cluster than on a smaller.
EACH_NODE, FLAT = 20, 1.1
#: All requests of an upgrade of three nodes, at most.
REQUESTS = {
    # A change of the phase, of a node's state or of the progress each, and the end of the clean-up. Rancher uncordons
    # the last node seconds after its acknowledgement. Four are of what is changed on all hosts around the nodes: its
    # entry, and the waits for both Plans and for a chart of RKE2.
    "patch upgradeplans/status": 30 + 1 + 5,
    # The start and the end of each phase, and the success.
    # Also the toolkit image, four steps of each node, and four settings, changed and given back.
    "create events": len(PHASE_VALUES) + 1 + 1 + 12 + 8,
    # A watch of each selection, after a list, because this server has no streaming lists, which is tried once.
    # Two show when Fleet has deployed the value of Harvester's chart, two what holds the cluster.
    "watch": 11 + 1 + 2 + 2,
    # Besides: the latest plans, for a new leader and for a new plan; API servers to check; nodes to clean up.
    # Five find leftovers when the manager becomes the leader. Four are of VMs, before each node and at the end:
    # Harvester's toolkit does not record the VMs that it stops. Six compare the Nodes before a node starts or is
    # drained.
    # Holders of the cluster: both watches, Jobs of earlier plans once, and Rancher's cluster before three steps.
    "list": 11 + 4 + 5 + 4 + 6 + 2 + 6,
    # For each node: its disk check, its pre-drain and post-drain, and its pending OS, set and removed.
    "create jobs": 6 + 1,
    "patch secrets": 6,
    # At the end, also SUC's labels.
    "patch nodes": 6 + 3,
    # The finalizer, set and removed, and the originals of settings.
    "patch upgradeplans": 3,
    # Settings, changed and given back; one is the cluster's version.
    **dict.fromkeys(("get settings", "patch settings", "patch addons", "patch clusters"), 2),
    **dict.fromkeys(("get addons", "get clusters", "get versions"), 1),
    # KubeVirt's update methods in Harvester's chart: read, and compared with their original. Harvester's toolkit adds
    # an exception, which is read and removed as well, and may write KubeVirt itself.
    "get managedcharts": 3,
    "patch managedcharts": 3,
    "get kubevirts": 2,
    # Objects that the upgrade creates, and removes by kind.
    **dict.fromkeys(("create virtualmachineimages", "create services", "create deployments", "create secrets"), 1),
    # Two of them change all hosts before the nodes, and after; the first one is removed before the second.
    "create plans": 2 + 2,
    "deletecollection": 6 + 1,
    # The history: read once, begun, and continued where the source of a row is about to be removed, or a row is old.
    **dict.fromkeys(("get configmaps", "create configmaps"), 1),
    "patch configmaps": 6,
    # RKE2's, of a chart that is upgraded after the last node.
    "get jobs": 1,
}
#: Reconciles of an upgrade of three nodes, at most.
RECONCILES = 120
#: The further requests of an upgrade whose nodes are surveyed, at most. The Jobs and their Plan are in watches that run
#: anyway.
SURVEY = {
    "create plans": 1,
    # Of the Pods, which carry the reports; and of the manager's Jobs, which the phases before and after it read.
    "watch": 2,
    "list": 2,
    # The progress of the survey: the first Job, and one write for the reports of each second. The record of what the
    # cluster upgrade changes is another write then.
    "patch upgradeplans/status": 4,
}
#: The same with Harvester's toolkit, of whose image each node is asked once.
IMAGE_SURVEY = {**SURVEY, "list": 3}
#: Without a preload.
NO_PRELOAD: dict[str, Any] = {"imagePreloadOption": {"concurrency": -1}}
#: Verbs that are counted for all kinds together.
TOGETHER = {"watch", "list", "deletecollection"}

THREE, ONE, TWO, WITNESS = (scenarios.load(name) for name in ("three-nodes", "one-node", "two-nodes", "witness"))
RUNS = [
    pytest.param(THREE, BY_IMAGE, id="three nodes by image"),
    pytest.param(ONE, BY_VERSION, id="one node by version"),
    pytest.param(ONE, BY_IMAGE, id="one node by image"),
    pytest.param(TWO, BY_VERSION, id="two nodes"),
    pytest.param(WITNESS, BY_VERSION, id="two nodes and a witness"),
    pytest.param(THREE, PAUSED, id="a paused node"),
    pytest.param(THREE.changed(vms={"count": 0, "machines": [FIXED]}), RESTORING, id="VMs started again"),
]


@contextlib.asynccontextmanager
async def living(stage: UpgradeRun) -> AsyncIterator[None]:
    """Run a manager that restarts with the only node's reboot."""
    if len(stage.simulation.scenario.nodes.names) > 1:
        async with stage.life():
            yield
    else:
        async with InClusterManager(stage, "node-0").running():
            yield


async def resume(stage: UpgradeRun) -> None:
    """Resume the node when it is paused and the cluster has settled."""
    await stage.until_node("UpgradePaused")
    await stage.settle()
    await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": []}})


def test_every_write_of_a_healthy_upgrade_changes_something() -> None:
    found = healthy_run()
    assert found.writes.compared > ENOUGH
    assert found.writes.unchanged == []
    assert found.conflicts == []


@pytest.mark.parametrize(("scenario", "spec"), RUNS)
async def test_every_write_changes_something_without_conflict(scenario: Scenario, spec: dict[str, Any]) -> None:
    async with Simulation(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        writes = simulation.middleware.hook = NoopWrites(simulation)
        async with living(stage):
            await stage.create_plan(spec)
            if spec is PAUSED:
                await resume(stage)
            await stage.succeed()
    assert writes.compared > ENOUGH
    assert writes.unchanged == []
    # A restarted manager replays events; the API server refuses those that exist.
    known = "/events" if len(scenario.nodes.names) == 1 else "none"
    assert [conflict for conflict in stage.ledger.conflicts if not conflict.endswith(known)] == []


async def test_write_that_changes_nothing_is_detected() -> None:
    async with Simulation("three-nodes", actors=False) as simulation:
        simulation.middleware.hook = writes = NoopWrites(simulation)
        client = Client(simulation.transport(), user_agent="wasteful", random=Random(0))
        for value in ("1", "1", "2"):
            await client.patch(NODES, "node-0", MergePatch({"metadata": {"annotations": {"example.org/a": value}}}))
    assert (writes.compared, writes.unchanged) == (3, ["patch /api/v1/nodes/node-0"])


async def _requests(nodes: int) -> int:
    scenario = THREE.changed(nodes={"count": nodes, "management": 3})
    async with upgraded(scenario) as upgrade:
        return len(upgrade.recorder.of(MANAGER))


def _kind(request: Request) -> str:
    call = call_of(request)
    resource = "/".join(filter(None, (call.resource.partition(".")[0], call.subresource)))
    return call.verb if call.verb in TOGETHER else f"{call.verb} {resource}"


async def _counted(**more: Any) -> Counter[str]:
    async with upgraded(THREE, **more) as upgrade:
        await asyncio.sleep(SETTLED)
        return Counter(_kind(exchange.request) for exchange in upgrade.recorder.of(MANAGER))


def test_healthy_upgrade_makes_no_other_requests() -> None:
    counted = Counter(_kind(one.request) for one in healthy_run().exchanges)
    assert counted - Counter(REQUESTS) == Counter()
    assert counted["create events"] == REQUESTS["create events"]


@pytest.mark.parametrize("is_own", [True, False], ids=["own", "harvester"])
@pytest.mark.thin
def test_survey_makes_no_other_requests(monkeypatch: pytest.MonkeyPatch, *, is_own: bool) -> None:
    options = OWN if is_own else RunOptions()
    counted = virtual_time.run(_counted(options=options, spec=NO_PRELOAD))
    monkeypatch.setattr(image_preload, "survey", _no_survey)
    without = virtual_time.run(_counted(options=options, spec=NO_PRELOAD))
    assert counted - without - Counter(SURVEY if is_own else IMAGE_SURVEY) == Counter()
    assert counted["create plans"] == without["create plans"] + 1


async def _no_survey(*_: object, **__: object) -> Completed:
    return Completed()


def test_requests_for_each_node_are_bounded() -> None:
    three, eight, twenty = (virtual_time.run(_requests(nodes)) for nodes in (3, 8, 20))
    fewer, more = (eight - three) / 5, (twenty - eight) / 12
    assert max(fewer, more) <= EACH_NODE
    assert more <= FLAT * fewer


def test_number_of_reconciles_is_bounded() -> None:
    """Each takes processor time; a change that only messages show causes none before the next second."""
    assert 75 < healthy_run().reconciles <= RECONCILES
