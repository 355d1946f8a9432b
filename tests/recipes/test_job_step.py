"""CONTRIBUTING's recipe of a step of a Job, followed with one that labels the node whose VMs are restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.tree import Edit, Tree, changed_by, named_in

EFFECT = '''"""The label of a node whose VMs are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_LABEL = "example.com/restored"


async def restored_label_missing(context: ToolkitContext) -> str:
    """Return an empty text if the node has the label."""
    node = await context.client.get(NODES, context.node)
    return "" if _LABEL in objects.labels(node) else f"node {context.node} lacks the label {_LABEL}"


async def set_restored_label(context: ToolkitContext) -> None:
    """Add the label."""
    patch = MergePatch({"metadata": {"labels": {_LABEL: context.plan}}})
    await context.client.patch(NODES, context.node, patch, metadata_only=True)
'''
TEST = """
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.vm_world import FIXED, vm_world
from tests.support.toolkit.toolkit_interrupts import run_killed_before
from tests.support.toolkit.toolkit_transcript import transcript
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from pathlib import Path

COMMAND, WRITE = "restore-vm", "api   patch /api/v1/nodes/node-0"


async def test_killed_step_is_resumed_and_skipped_once_done(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await world.run("vm-live-migrate-detector", shutdown=True)
        await run_killed_before(world, COMMAND, WRITE)
        assert "example.com/restored" not in objects.labels(await world.client.get(NODES, "node-0"))
        assert WRITE in await transcript(world, COMMAND)
        assert "label-restored: already done" in await transcript(world, COMMAND)
        assert objects.labels(await world.client.get(NODES, "node-0"))["example.com/restored"] == "demo"
"""
COMMAND = "upgrade_manager/toolkit/commands/restore_vm.py"
ROW = "act=start_vms, failed=report_failure),\n"
EDITS = (
    Edit(file="upgrade_manager/toolkit/vms/restored_label.py", new=EFFECT),
    Edit(
        file="upgrade_manager/toolkit/vms/__init__.py",
        old='    "restore_list",\n',
        new='    "restore_list",\n    "restored_label",\n',
    ),
    Edit(
        file=COMMAND,
        old="from upgrade_manager.toolkit.vms.kubevirt import Started, kubevirt_problem, start\n",
        new="from upgrade_manager.toolkit.vms.kubevirt import Started, kubevirt_problem, start\n"
        "from upgrade_manager.toolkit.vms.restored_label import restored_label_missing, set_restored_label\n",
    ),
    Edit(
        file=COMMAND,
        old=ROW,
        new=f"{ROW}    Step(\n"
        '        name="label-restored",\n'
        "        timeout=60,\n"
        "        missing=restored_label_missing,\n"
        "        act=set_restored_label,\n"
        "        failed=report_failure,\n"
        "    ),\n",
    ),
    Edit(
        file="docs/toolkit.md",
        old="a success, one that does not exist is skipped | 7 min |\n",
        new="a success, one that does not exist is skipped | 7 min |\n| label-restored | labels the Node | 1 min |\n",
    ),
    Edit(file="tests/toolkit/vms/test_restored_label.py", new=TEST),
)


def test_recipe_names_the_files_that_a_new_step_changes() -> None:
    named = named_in("a step of a Job", ROOM="vms", NAME="restored_label", COMMAND="restore_vm")
    assert named == changed_by(EDITS)


@pytest.mark.full
def test_new_step_without_its_row_is_named(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.apply(edit for edit in EDITS if edit.file != "docs/toolkit.md")
    assert tree.gaps() == ["step label-restored has no row in docs/toolkit.md"]


@pytest.mark.full
def test_step_by_the_recipe_is_killed_and_resumed(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.apply(EDITS)
    tests = ("tests/toolkit/commands/test_restore_vm.py", "tests/toolkit/vms/test_restored_label.py")
    tree.test("tests/recipes/test_places.py", *tests, "-k", "its_entry or golden or killed", GOLDEN="write")
    assert "3/3 label-restored" in tree.read("tests/golden/toolkit/restore-vm.txt")
