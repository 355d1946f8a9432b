"""The commands `upgrade-manager pause` and `resume`, as processes with a kubeconfig; and what they do beside others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.served import served
from tests.support.cluster.sessions import session
from tests.support.managers.displayed import MANIFEST
from upgrade_manager.cli.pause import change_list, listed, node_names, paused_lines, resumed_lines
from upgrade_manager.cli.plan_change import ATTEMPTS
from upgrade_manager.cli.session import CommandError
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import NODES, UPGRADE_PLANS

TURN = "is cordoned and paused when its turn comes, and nodes after it wait, until you resume it"


@pytest.mark.full
@pytest.mark.rule("nodes: pause and resume change the list by name, keep what others change, and say what happens")
@pytest.mark.real_loop
async def test_nodes_are_paused_and_resumed_by_name(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        run = cluster.run

        async def pauses() -> list[str]:
            return listed(await cluster.client.get(UPGRADE_PLANS, "demo"))

        missing = await run("pause", "demo", "node-2")
        assert missing.line.endswith(": UpgradePlan demo not found. Run kubectl get upgradeplans")
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        unknown = await run("pause", "demo", "node-2", "nod-1")
        assert (unknown.code, unknown.line) == (1, "upgrade-manager: Node nod-1 does not exist. Did you mean node-1?")
        assert await pauses() == []
        strange = await run("pause", "demo", "x")
        assert strange.line.endswith("Node x does not exist. The nodes are node-0, node-1, node-2")
        for _ in range(2):
            paused = await run("pause", "demo", "node-2", "node-1", "node-2")
            assert (paused.code, paused.err) == (0, "")
            assert paused.out.splitlines() == [f"node-2 {TURN}", f"node-1 {TURN}"]
            assert await pauses() == ["node-2", "node-1"]
        states = {"node-0": {"state": "PreDraining"}, "node-2": {"state": "UpgradePaused"}}
        await cluster.set(currentPhase="NodeUpgrading", nodeUpgradeStatuses=states)
        late = await run("pause", "demo", "node-0")
        warning = "Warning: Node node-0 is in pauseNodes and is not paused: its upgrade has started (PreDraining)"
        assert (late.code, late.out, late.line) == (0, "", f"upgrade-manager: {warning}")
        for _ in range(2):
            resumed = await run("resume", "demo", "node-2", "node-1")
            assert (resumed.code, resumed.err) == (0, "")
            lines = ["node-2 is resumed: its upgrade goes on", "node-1 is not paused when its turn comes"]
            assert resumed.out.splitlines() == lines
            assert await pauses() == ["node-0"]
        await cluster.set(currentPhase="Succeeded")
        ended = await run("resume", "demo", "node-0")
        assert ended.line.endswith("demo has ended (Succeeded): its nodes can be neither paused nor resumed")


async def test_changes_of_others_meanwhile_are_kept() -> None:
    async with Simulation(actors=False) as simulation:
        stale = await simulation.apply(MANIFEST)
        await change_list(session(simulation), stale, ["node-0"], pauses=True)
        plan = await change_list(session(simulation), stale, ["node-1"], pauses=True)
        assert listed(plan) == ["node-0", "node-1"]
        assert listed(await change_list(session(simulation), stale, ["node-0"], pauses=False)) == []


async def test_plan_that_changes_all_the_time_ends_the_command() -> None:
    async with Simulation(actors=False) as simulation:
        plan = await simulation.apply(MANIFEST)
        conflict = Refuse(status=409, reason="Conflict", message="the object has been modified")
        simulation.middleware.add(Rule(match=Match(verbs=("patch",)), action=conflict))
        with pytest.raises(CommandError, match="the object has been modified"):
            await change_list(session(simulation), plan, ["node-0"], pauses=True)
        assert simulation.middleware.counts.total(verb="patch") == ATTEMPTS


async def test_names_are_of_the_status_without_rights_on_nodes() -> None:
    async with Simulation(actors=False) as simulation:
        plan: Object = {"status": {"nodeUpgradeStatuses": {"node-7": {}}}}
        assert await node_names(session(simulation), plan) == {"node-0", "node-1", "node-2"}
        refuse = Refuse(status=403, reason="Forbidden")
        simulation.middleware.add(Rule(match=Match(resource=NODES.name), action=refuse))
        assert await node_names(session(simulation), plan) == {"node-7"}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        pytest.param({"nodeUpgradeStatuses": {"a": {"state": "ImagePreloaded"}}}, f"a {TURN}", id="waits"),
        pytest.param(
            {"nodeUpgradeStatuses": {"a": {"state": "UpgradePaused"}}}, "a is cordoned and paused, ", id="held"
        ),
        pytest.param({"singleNode": "a"}, "a is paused when its turn comes", id="the only node"),
    ],
)
def test_text_says_what_happens(status: dict[str, object], text: str) -> None:
    [(line, is_late)] = paused_lines({"status": status}, ["a"])
    assert line.startswith(text)
    assert not is_late


@pytest.mark.rule("nodes: pause and resume change the list by name, keep what others change, and say what happens")
@pytest.mark.parametrize(
    ("state", "text"),
    [
        pytest.param("", "n is not paused when its turn comes", id="not recorded"),
        pytest.param("ImagePreloaded", "n is not paused when its turn comes", id="waits"),
        pytest.param("UpgradePaused", "n is resumed: its upgrade goes on", id="paused"),
        pytest.param("PreDraining", "n is under way (PreDraining): it was not paused", id="under way"),
        pytest.param("PreDrainFailed", "n is under way (PreDrainFailed): it was not paused", id="failed"),
        pytest.param("PostDrained", "n is upgraded already", id="upgraded"),
        pytest.param("ImageCleaned", "n is upgraded already", id="cleaned"),
    ],
)
def test_resume_says_what_becomes_of_a_node(state: str, text: str) -> None:
    plan: Object = {"status": {"nodeUpgradeStatuses": {"n": {"state": state}}}}
    assert resumed_lines(plan, ["n"]) == [(text, False)]


def test_pause_of_an_upgraded_node_is_too_late() -> None:
    plan: Object = {"status": {"nodeUpgradeStatuses": {"n": {"state": "PostDrained"}}}}
    text = "Node n is in pauseNodes and is not paused: it is upgraded already"
    assert paused_lines(plan, ["n"]) == [(text, True)]
