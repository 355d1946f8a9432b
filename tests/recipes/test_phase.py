"""CONTRIBUTING's recipe of a phase, followed with one that waits until no node is cordoned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.places import CHART_CRD, CRD
from tests.recipes.tree import Edit, Tree, changed_by, insert, named_in

PHASE = '''
from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName
from upgrade_manager.blockers.known_wait import CordonedNodeWait
from upgrade_manager.facts import node_obstacles
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.node_upgrade.waits import known_wait
from upgrade_manager.pipeline.outcome import Completed, Phase, Waiting
from upgrade_manager.pipeline.selections import MANAGED_NODES

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult


class NodeCheck(Phase):
    """Waits until no node is cordoned."""

    name = PhaseName.NODE_CHECK
    activity = "Checking the nodes"

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Return Waiting with the first node that is cordoned."""
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        cordoned = sorted(objects.name(node) for node in nodes if objects.is_true(node, "spec", "unschedulable"))
        if not cordoned:
            return Completed()
        node, obstacle = cordoned[0], node_obstacles.cordoned(cordoned[0])
        wait = known_wait(ctx, CordonedNodeWait, node, detail=obstacle.why, remedies=obstacle.ways_out)
        return Waiting(message=f"Node {node} is cordoned", waits=(wait,))
'''
TEST = '''
from __future__ import annotations

import io

from rich.console import Console

from hack import virtual_time
from hack.simulation import Simulation
from tests.support.managers.success_promise import SuccessPromise
from tests.support.managers.upgrade import UpgradeRun, condition
from upgrade_manager.display.page import to_html
from upgrade_manager.display.report import report
from upgrade_manager.display.tables import display
from upgrade_manager.display.view import build
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES


async def cordon(stage: UpgradeRun, *, on: bool) -> None:
    await stage.client.patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": on}}))


async def shown(stage: UpgradeRun) -> tuple[str, str]:
    """Return the row of the phase in the status, and the page."""
    plan, events, now = await stage.plan(), await stage.events(), virtual_time.virtual_now()
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(display(build(plan, events, now=now)))
    (row,) = [line for line in console.export_text().splitlines() if " NodeCheck " in line]
    return row, to_html(report(plan, events, [], [], now=now))


async def test_upgrade_waits_in_the_phase_and_shows_it() -> None:
    async with Simulation() as simulation:
        stage, promise = await UpgradeRun.set_up(simulation), await SuccessPromise.of(simulation)
        async with stage.life() as life:
            await cordon(stage, on=True)
            await stage.create_plan()
            await stage.until("NodeChecking")
            await stage.settle()
            assert condition(await stage.plan(), "Progressing") == ("True", "NodeChecking", "Node node-1 is cordoned")
            life.metrics.refresh()
            sample = life.metrics.registry.get_sample_value
            labels = {"plan": stage.name, "phase": "NodeCheck"}
            assert sample("harvester_upgrade_phase", labels) == 1
            assert sample("harvester_upgrade_stalled", labels) == 0
            row, page = await shown(stage)
            assert row.startswith("\\N{BLACK RIGHT-POINTING TRIANGLE}  NodeCheck")
            assert "NodeCheck" in page
            await cordon(stage, on=False)
            await stage.succeed()
            assert await promise.broken() == []
            labels = {"phase": "NodeCheck", "outcome": "completed"}
            assert sample("harvester_upgrade_phase_duration_seconds_count", labels) == 1
        row, _ = await shown(stage)
        assert row.startswith("\\N{CHECK MARK}  NodeCheck")
        messages = [event["message"] for event in await stage.events()]
        assert [one for one in messages if "NodeCheck" in one] == [
            "Entering phase NodeCheck",
            "Completed phase NodeCheck",
        ]
'''
NAME = insert(
    "upgrade_manager/api/phases.py",
    after='    METADATA_POPULATE = "MetadataPopulate"',
    new='    NODE_CHECK = "NodeCheck"',
)
ROW = """    PhaseSpec(
        name=PhaseName.NODE_CHECK,
        active="NodeChecking",
        completed="NodeChecked",
        weight=0.01,
        usual=300.0,
    ),
    PhaseSpec(
        name=PhaseName.IMAGE_PRELOAD,"""
EDITS = (
    NAME,
    Edit(file=NAME.file, old="    PhaseSpec(\n        name=PhaseName.IMAGE_PRELOAD,", new=ROW),
    Edit(file=NAME.file, old="weight=0.09,", new="weight=0.08,"),
    Edit(file="upgrade_manager/pipeline/phases/node_check.py", new=PHASE),
    Edit(
        file="upgrade_manager/pipeline/engine.py",
        old="from upgrade_manager.pipeline.phases.repo_create",
        new="from upgrade_manager.pipeline.phases.node_check import NodeCheck\n"
        "from upgrade_manager.pipeline.phases.repo_create",
    ),
    insert("upgrade_manager/pipeline/engine.py", after="    MetadataPopulate,", new="    NodeCheck,"),
    Edit(
        file="pyproject.toml", old="metadata_populate | repo_create", new="metadata_populate | node_check | repo_create"
    ),
    insert(
        "tests/api/test_phases.py",
        after='    ("MetadataPopulate", "MetadataPopulating", "MetadataPopulated"),',
        new='    ("NodeCheck", "NodeChecking", "NodeChecked"),',
    ),
    Edit(file="tests/pipeline/phases/test_node_check.py", new=TEST),
    Edit(
        file="tests/recipes/places.py",
        old='{"Initialize": "it waits for kubelets", ',
        new='{"NodeCheck": "a healthy upgrade does not wait", "Initialize": "it waits for kubelets", ',
    ),
    Edit(
        file="tests/recipes/places.py",
        old='{"Initialize": "it fails within a minute"}',
        new='{"Initialize": "it fails within a minute", "NodeCheck": "a user has to act"}',
    ),
)
MISSING = [
    "phase NodeCheck has no row in PHASE_SPECS in upgrade_manager/api/phases.py",
    "phase NodeCheck has no weight and usual time above 0 in upgrade_manager/api/phases.py",
    "phase NodeCheck has no class in PIPELINE in upgrade_manager/pipeline/engine.py",
    "phase NodeCheck has no count of its nodes in NODE_SHARES in upgrade_manager/api/progress.py",
    "phase NodeCheck has no value of the label phase in upgrade_manager/pipeline/metrics.py",
    f"phase NodeCheck has no value in a description in {CRD}",
    f"phase NodeCheck has no value in a description in {CHART_CRD}",
    "phase NodeCheck has no object in AWAITED in hack/bench/phase_changes.py",
    "phase NodeCheck has no stall in CELLS in tests/support/managers/stall_matrix.py",
]


def test_recipe_names_the_files_that_a_new_phase_changes() -> None:
    assert named_in("a phase", NAME="node_check") == changed_by(EDITS)


@pytest.mark.full
def test_new_phase_without_its_entries_is_named(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.apply([NAME])
    assert tree.gaps() == MISSING


@pytest.mark.full
def test_phase_by_the_recipe_runs_and_is_shown(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.apply(EDITS)
    tree.make_manifests()
    tests = ("tests/recipes/test_places.py", "tests/api/test_phases.py", "tests/pipeline/phases/test_node_check.py")
    tree.test(*tests, "-k", "not without_an_entry")
