"""The commands `upgrade-manager pause` and `continue` about a whole plan, as processes; and beside other users."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hack.simulation import Simulation
from tests.support.cluster.served import served
from tests.support.cluster.sessions import session
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.api.keys import ANNOTATION_CONTINUE
from upgrade_manager.cli.hold import change, continued_line, continuing, held_line, letting_past, pausing
from upgrade_manager.cli.session import CommandError
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

TIME = "2026-01-01T00:00:00Z"
HELD = "demo holds before {}; what has begun is finished first. To continue: upgrade-manager continue demo"


@pytest.mark.full
@pytest.mark.rule("control: pause and continue set and remove spec.paused, and say where the plan holds")
@pytest.mark.real_loop
async def test_plan_is_paused_and_continued(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        run = cluster.run

        async def is_paused() -> bool:
            return objects.is_true(await cluster.client.get(UPGRADE_PLANS, "demo"), "spec", "paused")

        for command in ("pause", "continue"):
            missing = await run(command, "demo")
            assert (missing.code, missing.line) == (
                1,
                f"upgrade-manager: {cluster_of(missing)}: UpgradePlan demo not found. Run kubectl get upgradeplans",
            )
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        early = await run("continue", "demo")
        assert (early.code, early.line) == (1, "upgrade-manager: demo is not paused")
        for _ in range(2):
            paused = await run("pause", "demo")
            assert (paused.code, paused.out, paused.err) == (0, f"{HELD.format('phase ISODownload')}\n", "")
            assert await is_paused()
        await cluster.set(currentPhase="NodeUpgrading")
        assert (await run("pause", "demo")).out == f"{HELD.format('the next node')}\n"
        ended = await run("continue", "demo")
        assert (ended.code, ended.out, ended.err) == (0, "demo goes on\n", "")
        assert not await is_paused()
        await cluster.set(currentPhase="CleaningUp")
        late = await run("pause", "demo")
        assert late.line.endswith("demo is in its last phase, ImageCleanup: nothing of it is left to hold")
        await cluster.set(currentPhase="Succeeded")
        ended = await run("pause", "demo")
        assert (ended.code, ended.line) == (
            1,
            "upgrade-manager: demo has ended (Succeeded): nothing of it is left to hold",
        )
        assert not await is_paused()


def cluster_of(found: ProcessResult) -> str:
    return found.line.split(": ")[1]


async def test_two_users_at_once_each_see_the_plan_of_their_write() -> None:
    async with Simulation(actors=False) as simulation:
        await simulation.apply(MANIFEST)
        client = simulation.client()
        calls: list[bool] = []

        def decided(plan: Object) -> Object:
            calls.append(objects.is_true(plan, "spec", "paused"))
            return continuing(plan)

        await change(session(simulation), "demo", pausing)
        await change(session(simulation), "demo", decided)
        with pytest.raises(CommandError, match="demo is not paused"):
            await change(session(simulation), "demo", decided)
        await client.patch(UPGRADE_PLANS, "demo", MergePatch({"spec": {"paused": True}}))
        assert await change(session(simulation), "demo", pausing)
        assert calls == [True, False]


def waiting(**spec: object) -> Object:
    """Return a plan that has failed."""
    return {"metadata": {"name": "demo"}, "spec": spec, "status": {"currentPhase": "Failed"}}


def test_attempt_that_has_not_begun_holds_and_begins() -> None:
    plan = waiting(attempt=2)
    assert pausing(plan) == {"spec": {"paused": True}}
    line = "Attempt 2 of demo, which has not begun, waits. To begin it: upgrade-manager continue demo"
    assert held_line(plan) == line
    assert continued_line(plan) == "Attempt 2 of demo begins, unless something else holds the cluster"
    with pytest.raises(CommandError, match="demo has ended"):
        pausing(waiting())
    failed = "demo has failed, and is not paused any more. To go on: upgrade-manager retry demo"
    assert continued_line(waiting()) == failed


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param({}, ". To request it: upgrade-manager retry demo", id="failed"),
        pytest.param({"attempt": 2}, "", id="requested"),
    ],
)
def test_node_of_a_failed_plan_does_not_go_on(spec: dict[str, object], text: str) -> None:
    plan = waiting(**spec)
    plan["status"]["nodeUpgradeStatuses"] = HELD_NODES
    with pytest.raises(CommandError) as error:
        letting_past(plan, node="node-0")
    assert str(error.value) == f"demo has failed: node-0 goes on in its next attempt{text}"
    with pytest.raises(CommandError, match=r"^demo is not paused$"):
        continuing(plan)


@pytest.mark.rule("control: pause and continue set and remove spec.paused, and say where the plan holds")
@pytest.mark.parametrize(
    ("status", "where"),
    [
        pytest.param(
            {"currentPhase": "NodeUpgrading"}, "the next node; what has begun is finished first", id="it runs"
        ),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "nodeUpgradeStatuses": {"node-0": {"state": "PostDraining"}}},
            "phase ImageCleanup; what has begun is finished first",
            id="the last node runs",
        ),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "holds": "before the drain of node-1"},
            "the drain of node-1, and nothing of it runs",
            id="it holds already",
        ),
    ],
)
def test_pause_names_where_the_plan_holds(status: Object, where: str) -> None:
    plan = {"metadata": {"name": "demo"}, "spec": {"paused": True}, "status": status}
    assert held_line(plan) == f"demo holds before {where}. To continue: upgrade-manager continue demo"


@pytest.mark.rule("control: pause and continue set and remove spec.paused, and say where the plan holds")
@pytest.mark.parametrize(
    ("after", "nodes", "line"),
    [
        pytest.param(
            1,
            {"node-0": {"state": "PostDrained"}, "node-1": {"state": "ImagePreloaded"}},
            "demo is not paused any more, and holds by pauseAfter. To continue: upgrade-manager continue demo",
            id="a canary is done",
        ),
        pytest.param(1, {"node-0": {"state": "PostDraining"}}, "demo goes on", id="a canary is under way"),
        pytest.param(
            None,
            {"node-0": {"state": "PostDraining", "holds": "Reboot"}},
            "demo is not paused any more; node-0 holds: upgrade-manager continue demo node-0",
            id="a node holds",
        ),
        pytest.param(None, {}, "demo goes on", id="nothing else"),
    ],
)
def test_continuation_names_what_still_holds(after: int | None, nodes: Object, line: str) -> None:
    spec = {"nodeUpgradeOption": {"pauseAfter": after}} if after else {}
    status = {"currentPhase": "NodeUpgrading", "nodeUpgradeStatuses": nodes}
    assert continued_line({"metadata": {"name": "demo"}, "spec": spec, "status": status}) == line


HELD_NODES = {"node-0": {"state": "PostDraining", "holds": "Reboot"}, "node-1": {"state": "ImagePreloaded"}}


@pytest.mark.rule("control: continue with a node adds its entry, and refuses a node that does not hold")
async def test_node_is_let_past_once() -> None:
    async with Simulation(actors=False) as simulation:
        await simulation.apply(MANIFEST)
        client = simulation.client()

        async def entries() -> str:
            plan = await client.get(UPGRADE_PLANS, "demo")
            return objects.annotations_of(plan).get(ANNOTATION_CONTINUE, "")

        first, second = partial(letting_past, node="node-0"), partial(letting_past, node="node-1")
        with pytest.raises(CommandError, match="node-0 does not hold before a step; no node holds"):
            await change(session(simulation), "demo", first)
        status = MergePatch({"status": {"nodeUpgradeStatuses": HELD_NODES}})
        await client.patch(UPGRADE_PLANS, "demo", status, subresource="status")
        with pytest.raises(CommandError, match="node-1 does not hold before a step; what holds is node-0"):
            await change(session(simulation), "demo", second)
        with pytest.raises(
            CommandError, match="demo is not paused; node-0 holds: upgrade-manager continue demo node-0"
        ):
            await change(session(simulation), "demo", continuing)
        for _ in range(2):
            await change(session(simulation), "demo", first)
            assert await entries() == "node-0:Reboot"


async def test_canary_is_removed_by_the_continuation() -> None:
    condition = {"type": "Paused", "status": "True", "reason": "PauseAfter", "message": "", "lastTransitionTime": TIME}
    async with Simulation(actors=False) as simulation:
        spec = {"version": "v1.8.0", "nodeUpgradeOption": {"pauseAfter": 1}}
        await simulation.apply({**MANIFEST, "spec": spec})
        client = simulation.client()
        with pytest.raises(CommandError, match="demo is not paused"):
            await change(session(simulation), "demo", continuing)
        status = MergePatch({"status": {"conditions": [condition]}})
        await client.patch(UPGRADE_PLANS, "demo", status, subresource="status")
        plan = await change(session(simulation), "demo", continuing)
        assert "pauseAfter" not in objects.mapping(plan, "spec", "nodeUpgradeOption")
