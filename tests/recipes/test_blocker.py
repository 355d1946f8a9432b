"""CONTRIBUTING's recipe of a blocker, followed with nodes that a user has marked as in maintenance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.places import CHART_CRD, CRD
from tests.recipes.tree import Edit, Tree, changed_by, insert, named_in

FINDER = '''"""Nodes that a user has marked as in maintenance. MetadataPopulate waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.deadlines import from_start
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.wait import MaintenanceWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.object_view import View

_KEY = "example.com/maintenance"


def _find(view: View, wait: MaintenanceWait) -> Iterator[Blocker]:
    for node in view.objects(Selection(resource=NODES, field_selector=f"metadata.name={wait.name}")):
        ticket = objects.labels(node).get(_KEY, "")
        yield Blocker(
            reason=BlockerReason.NODE_IN_MAINTENANCE,
            kind="Node",
            name=wait.name,
            node=wait.name,
            message=f"Node {wait.name}: it is in maintenance ({ticket})",
            remedies=(Remedy("Remove the label", command=f"kubectl label node {wait.name} {_KEY}-"),),
            since=wait.since,
        )


FINDERS = (
    Finder(
        wait=MaintenanceWait,
        reasons=(BlockerReason.NODE_IN_MAINTENANCE,),
        overdue=from_start,
        find=_find,
    ),
)
'''
WAITING = """

async def _maintenance(ctx: ReconcileContext) -> Waiting | None:
    for node in (await ctx.watch(MANAGED_NODES)).list():
        if "example.com/maintenance" in objects.labels(node):
            name = objects.name(node)
            wait = MaintenanceWait(name=name, node=name, since=first_seen(ctx, MaintenanceWait, name))
            return Waiting(message=f"Node {name} is in maintenance", waits=(wait,))
    return None
"""
BREAK = """
async def _maintained(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    name = min(objects.name(node) for node in (await client.list(NODES)).items)

    def patch(value: str | None) -> Patch:
        return Patch(resource=NODES, name=name, body={"metadata": {"labels": {"example.com/maintenance": value}}})

    return [patch("fans")], [patch(None)]

"""
TEST = """
from __future__ import annotations

from hack.simulation import Simulation
from tests.support.managers.success_promise import SuccessPromise
from tests.support.managers.upgrade import UpgradeRun, condition
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES

REASON = "NodeInMaintenance"


async def label(stage: UpgradeRun, value: str | None) -> None:
    await stage.client.patch(
        NODES, "node-1", MergePatch({"metadata": {"labels": {"example.com/maintenance": value}}})
    )


async def test_node_in_maintenance_is_named_until_it_is_not() -> None:
    async with Simulation() as simulation:
        stage, promise = await UpgradeRun.set_up(simulation), await SuccessPromise.of(simulation)
        async with stage.life() as life:
            def blocked() -> float | None:
                life.metrics.refresh()
                labels = {"plan": stage.name, "reason": REASON}
                return life.metrics.registry.get_sample_value("harvester_upgrade_blocked", labels)

            await label(stage, "fans")
            await stage.create_plan()
            plan = await stage.until_plan(lambda plan: objects.is_condition_true(plan, "Stalled"))
            (blocker,) = objects.status(plan)["blockers"]
            assert (blocker["kind"], blocker["name"], blocker["reason"]) == ("Node", "node-1", REASON)
            assert blocker["remedy"] == "Remove the label: kubectl label node node-1 example.com/maintenance-"
            assert condition(plan, "Stalled")[:2] == ("True", REASON)
            assert condition(plan, "Stalled")[2].startswith("Node node-1: it is in maintenance (fans)")
            assert blocked() == 1
            await label(stage, None)
            await stage.until_plan(lambda plan: not objects.is_condition_true(plan, "Stalled"), seconds=30)
            assert blocked() == 0
            await stage.succeed()
            assert await promise.broken() == []
        events = [event["reason"] for event in await stage.events()]
        assert (events.count(REASON), events.count("BlockerCleared")) == (1, 1)
"""
REASON = insert(
    "upgrade_manager/api/blockers.py",
    after='    LEFTOVER_HOOK = "LeftoverHook"',
    new='    NODE_IN_MAINTENANCE = "NodeInMaintenance"',
)
WAIT = insert(
    "upgrade_manager/blockers/wait.py",
    after='    LOST_HOOK = "Cluster", "hook"',
    new='    MAINTENANCE = "Node", "maintenance"',
)
CLASS = insert(
    "upgrade_manager/blockers/wait.py",
    after='    counted: str = ""',
    new="""

@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWait(Wait):
    \"\"\"For a user who has marked the node as in maintenance.\"\"\"

    kind = WaitKind.MAINTENANCE""",
)
PHASE = "upgrade_manager/pipeline/phases/metadata_populate.py"
EDITS = (
    REASON,
    WAIT,
    CLASS,
    Edit(file="upgrade_manager/blockers/maintenance.py", new=FINDER),
    insert("upgrade_manager/blockers/table.py", after="    known,", new="    maintenance,"),
    insert("upgrade_manager/blockers/table.py", after="    *known.FINDERS,", new="    *maintenance.FINDERS,"),
    Edit(
        file=PHASE,
        old="from upgrade_manager.pipeline.outcome import Completed, Phase\n",
        new="from upgrade_manager.blockers.wait import MaintenanceWait\n"
        "from upgrade_manager.kube import objects\n"
        "from upgrade_manager.pipeline.blocker_report import first_seen\n"
        "from upgrade_manager.pipeline.outcome import Completed, Phase, Waiting\n"
        "from upgrade_manager.pipeline.selections import MANAGED_NODES\n",
    ),
    Edit(
        file=PHASE,
        old="        waiting = await iso_checksums.compute(ctx)\n",
        new="        waiting = await _maintenance(ctx) or await iso_checksums.compute(ctx)\n",
    ),
    Edit(file=PHASE, old="        return Completed()\n", new=f"        return Completed()\n{WAITING}"),
    insert(
        "docs/blockers.md",
        after="| NodeMissing | a node that takes part has no Node object or no managed label; or the manager's cache "
        "does not show it | at once; 1 min for the cache |",
        new="| NodeInMaintenance | a node is in maintenance | 1 min |",
    ),
    Edit(file="hack/demo/stalls.py", old="\ndef _stall(", new=f"{BREAK}\ndef _stall("),
    Edit(
        file="hack/demo/stalls.py",
        old='    "paused": _stall(',
        new='    "maintenance": _stall("RepoCreating", "a node is kept", _maintained, Reason.NODE_IN_MAINTENANCE),\n'
        '    "paused": _stall(',
    ),
    Edit(
        file="tests/support/managers/stall_matrix.py",
        old='"hook-lost", "Cluster", "local", deadline=5.0),\n',
        new='"hook-lost", "Cluster", "local", deadline=5.0),\n'
        '    _object("node in maintenance", "maintenance", "Node", "node-", deadline=60.0),\n',
    ),
    Edit(file="tests/blockers/test_maintenance.py", new=TEST),
)
MISSING = [
    "blocker reason NodeInMaintenance has no finder in FINDERS in upgrade_manager/blockers/table.py",
    f"blocker reason NodeInMaintenance has no value in a description in {CRD}",
    f"blocker reason NodeInMaintenance has no value in a description in {CHART_CRD}",
    "blocker reason NodeInMaintenance has no row in docs/blockers.md",
    "blocker reason NodeInMaintenance has no break in STALLS in hack/demo/stalls.py",
    "blocker reason NodeInMaintenance has no stall in CELLS in tests/support/managers/stall_matrix.py",
    "wait MAINTENANCE has no finder in FINDERS in upgrade_manager/blockers/table.py",
    "wait MAINTENANCE has no phase that waits so in upgrade_manager/pipeline",
]


def test_recipe_names_the_files_that_a_new_blocker_changes() -> None:
    assert named_in("a blocker", NAME="maintenance", PHASE="metadata_populate") == changed_by(EDITS)


@pytest.mark.full
def test_new_blocker_without_its_entries_is_named(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.apply([REASON, WAIT])
    assert tree.gaps() == MISSING


@pytest.mark.full
def test_blocker_by_the_recipe_is_named_and_cleared(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.apply(EDITS)
    tree.make_manifests()
    tree.python("hack.documents")
    # It runs this stall, and writes its row only if the blocker was the right one, in time, and was cleared.
    tree.python("tests.support.managers.stall_matrix", "node in maintenance")
    documents = ("tests/docs/test_blockers.py", "tests/blockers/test_stall_matrix.py")
    tests = ("tests/recipes/test_places.py", *documents, "tests/blockers/test_maintenance.py")
    tree.test(*tests, "-k", "its_entry or maintenance or document or reason")
