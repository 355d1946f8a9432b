"""Plans that go on after a failure: one row for each way to fail, with all that the next attempt creates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.cluster.simulate import SECOND, RepairableScenario, Simulate, fault
from tests.support.cluster.survey_world import NO_STATE_PARTITION, report
from tests.support.managers.done_nodes import spared
from tests.support.managers.resumed_run import (
    Work,
    comparable,
    cut_short,
    forget,
    request_attempt,
    skip_a_day,
    undisturbed,
)
from tests.support.managers.toolkit_config import NEXT, OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states, phases_of
from tests.support.webhook.policy_prefixes import image_prefixes
from upgrade_manager.api.keys import LABEL_COMPONENT, LABEL_JOB_TYPE
from upgrade_manager.api.phases import PHASE_SPECS, PHASE_VALUES, PhaseName
from upgrade_manager.kube import objects

THIRD = "node-1"
#: The objects that each part of an upgrade creates, with our toolkit.
ISO = ["VirtualMachineImage iso", "Job checksums"]
REPOSITORY = ["Deployment repo", "Service repo"]
PRELOAD, SURVEY = ["Plan image-preload"], ["Plan survey"]
COMPONENTS = ["Plan agent-hold", "Job cluster-upgrade", "Plan agent-release"]
AROUND = ["Plan skip-on", "Plan skip-off", "Plan image-cleanup"]
SINGLE = ["single-node-upgrade node-0", "Plan image-cleanup"]


def nodes(*drained: str, os: str = "") -> list[str]:
    """Return the Jobs of nodes that are drained, and of one whose drain is done."""
    return [
        *(f"{job} {node}" for node in drained for job in ("pre-drain", "post-drain")),
        *([f"post-drain {os}"] * bool(os)),
    ]


NODES = [*AROUND, *nodes("node-0", THIRD, SECOND)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way to fail."""

    faults: dict[str, Any]
    #: The last phase value before the failure, and the states of nodes then.
    last: str
    states: dict[str, str] = field(default_factory=dict)
    #: The objects that the second attempt creates.
    left: list[str]
    scenario: str = "three-nodes"
    #: The user's change of the spec, together with the attempt.
    mend: dict[str, Any] = field(default_factory=dict)


PRELOADED = dict.fromkeys(("node-0", THIRD, SECOND), "ImagePreloaded")
FULL_DISK: dict[str, Any] = {"nodes": {"disks": {THIRD: {"used_gib": 290}}}}
NO_IMPORT = {"image_import": {"attempts": 99, "message": "unexpected EOF"}}
FINDING = {
    "faults": [{"work": "survey", "node": SECOND, "exit_code": 0, "message": report(SECOND, NO_STATE_PARTITION)}]
}
ROWS = {
    "a disk is full": Row(
        faults=FULL_DISK,
        last="Initializing",
        left=[*ISO, *REPOSITORY, *PRELOAD, *SURVEY, *COMPONENTS, *NODES],
    ),
    "the ISO cannot be imported": Row(
        faults=NO_IMPORT,
        last="ISODownloading",
        left=[*ISO, *REPOSITORY, *PRELOAD, *SURVEY, *COMPONENTS, *NODES],
    ),
    "the upgrade is not allowed": Row(
        faults={"release": {"metadata": {"minUpgradableVersion": "v1.7.5"}}},
        last="MetadataPopulated",
        left=[*PRELOAD, *SURVEY, *COMPONENTS, *NODES],
        mend={"force": True},
    ),
    "images cannot be preloaded on a node": Row(
        faults=fault("prepare", SECOND),
        last="ImagePreloading",
        states={**PRELOADED, SECOND: "ImagePreloadFailed"},
        left=["Plan image-preload without node-0, node-1", *SURVEY, *COMPONENTS, *NODES],
    ),
    "a node cannot be surveyed": Row(
        faults=fault("survey", SECOND),
        last="ImagePreloading",
        states=PRELOADED,
        left=[*SURVEY, *COMPONENTS, *NODES],
    ),
    "the survey finds a problem": Row(
        faults=FINDING,
        last="ImagePreloading",
        states=PRELOADED,
        left=[*SURVEY, *COMPONENTS, *NODES],
    ),
    "an agent cannot be held": Row(
        faults=fault("agent-hold", SECOND),
        last="ClusterUpgrading",
        states=PRELOADED,
        left=[*COMPONENTS, *NODES],
    ),
    "the components cannot be upgraded": Row(
        faults=fault("manifests"),
        last="ClusterUpgrading",
        states=PRELOADED,
        left=[*COMPONENTS, *NODES],
    ),
    "a chart cannot be held": Row(
        faults=fault("skip-on", SECOND),
        last="NodeUpgrading",
        states=PRELOADED,
        left=NODES,
    ),
    "the first node cannot be drained": Row(
        faults=fault("pre-drain", "node-0"),
        last="NodeUpgrading",
        states={**PRELOADED, "node-0": "PreDrainFailed"},
        left=NODES,
    ),
    "the second node cannot be drained": Row(
        faults=fault("pre-drain", SECOND),
        last="NodeUpgrading",
        states={"node-0": "PostDrained", SECOND: "PreDrainFailed", THIRD: "ImagePreloaded"},
        left=[*AROUND, *nodes(SECOND, THIRD)],
    ),
    "the last node cannot be drained": Row(
        faults=fault("pre-drain", THIRD),
        last="NodeUpgrading",
        states={"node-0": "PostDrained", SECOND: "PostDrained", THIRD: "PreDrainFailed"},
        left=[*AROUND, *nodes(THIRD)],
    ),
    "the first node's system cannot be upgraded": Row(
        faults=fault("post-drain", "node-0"),
        last="NodeUpgrading",
        states={**PRELOADED, "node-0": "PostDrainFailed"},
        left=[*AROUND, *nodes(SECOND, THIRD, os="node-0")],
    ),
    "the second node's system cannot be upgraded": Row(
        faults=fault("post-drain", SECOND),
        last="NodeUpgrading",
        states={"node-0": "PostDrained", SECOND: "PostDrainFailed", THIRD: "ImagePreloaded"},
        left=[*AROUND, *nodes(THIRD, os=SECOND)],
    ),
    "the last node's system cannot be upgraded": Row(
        faults=fault("post-drain", THIRD),
        last="NodeUpgrading",
        states={"node-0": "PostDrained", SECOND: "PostDrained", THIRD: "PostDrainFailed"},
        left=[*AROUND, *nodes(os=THIRD)],
    ),
    "the witness cannot be drained": Row(
        scenario="witness",
        faults=fault("pre-drain", SECOND),
        last="NodeUpgrading",
        states={"node-0": "PostDrained", SECOND: "PreDrainFailed", THIRD: "ImagePreloaded"},
        left=[*AROUND, *nodes(SECOND, THIRD)],
    ),
    "the witness's system cannot be upgraded": Row(
        scenario="witness",
        faults=fault("post-drain", SECOND),
        last="NodeUpgrading",
        states={"node-0": "PostDrained", SECOND: "PostDrainFailed", THIRD: "ImagePreloaded"},
        left=[*AROUND, *nodes(THIRD, os=SECOND)],
    ),
    "one of two nodes cannot be drained": Row(
        scenario="two-nodes",
        faults=fault("pre-drain", "node-1"),
        last="NodeUpgrading",
        states={"node-0": "PostDrained", "node-1": "PreDrainFailed"},
        left=[*AROUND, *nodes("node-1")],
    ),
    "the images of the only node cannot be preloaded": Row(
        scenario="one-node",
        faults=fault("prepare"),
        last="ImagePreloading",
        states={"node-0": "ImagePreloadFailed"},
        left=[*PRELOAD, *SURVEY, *COMPONENTS, *SINGLE],
    ),
    "the only node cannot be upgraded": Row(
        scenario="one-node",
        faults=fault("single-node-upgrade"),
        last="NodeUpgrading",
        states={"node-0": "SingleNodeUpgradeFailed"},
        left=SINGLE,
    ),
}
#: The row of the default tier.
DEFAULT = ["the second node cannot be drained"]


#: One row for each last phase value and each state of a node that has failed.
POINTS = {
    (row.last, *(one for one in row.states.values() if one.endswith("Failed"))): name for name, row in ROWS.items()
}
DAY, NEW_MANAGER = "after a day", "by another manager"


def _by_another(what: str) -> pytest.MarkDecorator:
    """Return the mark of an attempt by a later version: it begins like all, so that two rows show it."""
    shown = {"a chart cannot be held", "the second node cannot be drained"}
    return pytest.mark.full if what in shown else pytest.mark.exhaustive


#: The attempt that follows at once is swept (test_attempts_sweep.py).
CASES = [
    *(pytest.param(what, DAY, id=f"{what}, {DAY}", marks=() if what in DEFAULT else pytest.mark.full) for what in ROWS),
    *(
        pytest.param(what, NEW_MANAGER, id=f"{what}, {NEW_MANAGER}", marks=_by_another(what))
        for what in POINTS.values()
    ),
]


@pytest.mark.rule(
    "control: an attempt creates what is left, and repeats no download, preload or node that is done",
    "control: an upgrade that was resumed ends as one that has never failed, but for its attempts",
    "control: nothing of an attempt reaches a node that is done",
)
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("what", "when"), CASES)
async def test_attempt_does_what_is_left_and_nothing_else(what: str, when: str) -> None:
    row = ROWS[what]
    scenario = RepairableScenario.of(row.scenario, **row.faults)
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        work = simulation.middleware.hook = Work()
        async with stage.life():
            await stage.create_plan()
            failed = await stage.fail()
            assert phases_of(failed)[-2:] == [row.last, "Failed"]
            states = node_states(failed)
            assert states == states | row.states
            scenario.repair()
            if when == DAY:
                await skip_a_day()
                await forget(stage)
                await go_on(stage, work, row)
                entered = [event["message"] for event in await stage.events() if "Entering" in event["message"]]
                assert entered == [f"Entering phase {phase}" for phase in phases_after(row.last)]
                assert stage.ledger.conflicts == []
        if when == NEW_MANAGER:
            stage.options = NEXT
            async with stage.life(seed="another manager"):
                await go_on(stage, work, row)
            assert (await stage.plan())["status"]["toolkitImage"]["tag"] == NEXT.toolkit.tag
        # The scenario is repaired, so that this run never fails.
        golden = await undisturbed(scenario, {**BY_VERSION, **row.mend}, options=stage.options)
        assert await comparable(stage) == golden


async def go_on(stage: UpgradeRun, work: Work, row: Row) -> None:
    """Run the second attempt to its end."""
    async with spared(stage):
        await request_attempt(stage, work, **row.mend)
        plan = await stage.succeed()
    assert work.of(2) == sorted(row.left)
    assert [one["attempt"] for one in plan["status"]["attempts"]] == [1, 2]


def phases_after(last: str) -> list[PhaseName]:
    """Return the phases that begin after that value."""
    return [one.name for one in PHASE_SPECS if PHASE_VALUES.index(one.active) > PHASE_VALUES.index(last)]


@pytest.mark.servers
@pytest.mark.long
@pytest.mark.full
async def test_upgrade_goes_on_after_a_failure_in_each_phase(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**FULL_DISK, **fault("prepare", SECOND))
    async with simulate(scenario) as simulation:
        settings = await overridden_settings(simulation)
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        work = simulation.middleware.hook = Work()
        async with image_prefixes(simulation, "me/own"), stage.life():
            await stage.create_plan()
            for phase, cut, next_failure in (
                ("Initializing", "", scenario.fail_next_import),
                ("ISODownloading", "", partial(scenario.fail_next, "prepare", SECOND)),
                ("ImagePreloading", "", partial(scenario.fail_next, "survey")),
                ("ImagePreloading", "", partial(scenario.fail_next, "manifests")),
                ("ClusterUpgrading", f"{LABEL_COMPONENT}=cluster-upgrade", partial(scenario.fail_next, "pre-drain")),
                ("NodeUpgrading", f"{LABEL_JOB_TYPE}=pre-drain", partial(scenario.fail_next, "post-drain")),
                ("NodeUpgrading", f"{LABEL_JOB_TYPE}=post-drain", scenario.repair),
            ):
                if cut and simulation.backend.has_controllers:
                    await cut_short(stage, cut)
                failed = await stage.fail()
                assert phases_of(failed)[-2:] == [phase, "Failed"]
                next_failure()
                await request_attempt(stage, work)
            async with spared(stage):
                plan = await stage.succeed()
        assert work.of(2) == ["VirtualMachineImage iso"]
        assert work.of(3) == sorted([*ISO, *REPOSITORY, *PRELOAD])
        assert work.of(4) == sorted(["Plan image-preload without node-0, node-1", *SURVEY])
        assert work.of(5) == sorted([*SURVEY, *COMPONENTS])
        first = next(node for node, state in node_states(failed).items() if state == "PostDrainFailed")
        assert work.of(6) == sorted([*COMPONENTS, "Plan skip-on", "Plan skip-off", f"pre-drain {first}"])
        assert work.of(7) == sorted(["Plan skip-on", "Plan skip-off", *nodes(first)])
        others = {"node-0", SECOND, THIRD} - {first}
        assert work.of(8) == sorted([*AROUND, *nodes(*others, os=first)])
        assert [one["attempt"] for one in plan["status"]["attempts"]] == [*range(1, 9)]
        assert condition(plan, "Ready")[0] == "True"
        assert objects.condition(plan, "Stalled") == {}
        assert await overridden_settings(simulation) == settings
        assert await created_objects(simulation) == []
