"""Each remedy that can be undone has changes, and each change is compared at the end of the plan."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import upgrade_manager
from tests.support.managers import remedy_samples
from upgrade_manager.kube.resources import VIRTUAL_MACHINES
from upgrade_manager.pipeline.ending.advised_fields import COMPARISONS, Advised

if TYPE_CHECKING:
    from collections.abc import Iterator

#: By module and function that build a remedy with an undo: the sample with this remedy.
BUILDERS = {
    "blockers/refusals.py:_webhook_remedies": "webhook",
    "blockers/taints.py:_step": "taint",
    "blockers/upgrade_controller.py:_excluded": "excluded",
    "facts/drain_hooks.py:foreign_ways_out": "hook",
    "facts/evictions.py:_change_limits": "budget",
    "facts/evictions.py:delete": "ill-budget",
    "facts/node_obstacles.py:uncordon": "cordon",
    "facts/vm_obstacles.py:_stop": "vm",
    "facts/volumes.py:ways_out": "volume",
    "pipeline/phases/vm_updates.py:way_out": "paused-chart",
}
#: Those that read a remedy back from a status.
READERS = {"api/remedy.py:_read", "display/remedies.py:shown"}
PACKAGE = Path(upgrade_manager.__file__).parent


def builders() -> Iterator[tuple[str, bool]]:
    """Yield each builder of a remedy with an undo, with True if the remedy has changes."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for keywords in _remedies(function):
                    if "undo" in keywords:
                        yield f"{path.relative_to(PACKAGE)}:{function.name}", "changes" in keywords


def _remedies(function: ast.AST) -> Iterator[set[str | None]]:
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Remedy":
            yield {one.arg for one in call.keywords}


@pytest.mark.full
@pytest.mark.rule("blockers: each remedy that can be undone is compared at the end")
def test_each_remedy_with_an_undo_has_changes() -> None:
    found = [(place, has_changes) for place, has_changes in builders() if place not in READERS]
    assert {place for place, has_changes in found if not has_changes} == set()
    assert {place for place, _ in found} == BUILDERS.keys()


@pytest.mark.rule("blockers: each remedy that can be undone is compared at the end")
def test_each_change_has_a_comparison() -> None:
    samples = remedy_samples.remedies()
    undoable = {name: [one for one in found if one.undo] for name, found in samples.items()}
    assert {name for name, found in undoable.items() if found} >= set(BUILDERS.values())
    changes = [change for found in undoable.values() for remedy in found for change in remedy.changes]
    assert all(remedy.changes for found in undoable.values() for remedy in found)
    compared = {(change.kind, change.field.partition("[")[0]) for change in changes}
    # A volume's tags are of disks or of nodes.
    assert compared | {("Volume", "spec.nodeSelector")} == COMPARISONS.keys()


def test_only_a_remedy_with_an_undo_has_changes() -> None:
    found = [one for remedies in remedy_samples.remedies().values() for one in remedies]
    assert [one for one in found if one.changes and not one.undo] == []


@pytest.mark.parametrize(
    ("key", "original", "obj", "is_as_it_was"),
    [
        pytest.param(("Node", "metadata.labels"), {"a": "b"}, {"metadata": {"labels": {"a": "b"}}}, True, id="label"),
        pytest.param(("Node", "metadata.labels"), {"a": "b"}, {"metadata": {}}, False, id="label removed"),
        pytest.param(("Node", "metadata.labels"), {"a": None}, {"metadata": {}}, True, id="had no label"),
        pytest.param(("Node", "metadata.labels"), {"a": None}, {"metadata": {"labels": {"a": "b"}}}, False, id="set"),
        pytest.param(("Node", "spec.taints"), {"key": "a"}, {"spec": {"taints": "x"}}, False, id="taints of no list"),
        pytest.param(("VirtualMachine", "status.printableStatus"), "Running", {"status": {}}, True, id="VM, no status"),
        pytest.param(
            ("VirtualMachine", "status.printableStatus"),
            "Running",
            {"status": {"printableStatus": "Stopping"}},
            False,
            id="VM that stops",
        ),
        pytest.param(
            ("VirtualMachine", "status.printableStatus"),
            "Running",
            {"status": {"printableStatus": "Migrating"}},
            True,
            id="VM that moves",
        ),
        pytest.param(
            ("Cluster", "spec.rkeConfig.upgradeStrategy"),
            [["workerDrainOptions", "preDrainHooks", {"annotation": "a"}]],
            {"spec": {"rkeConfig": {"upgradeStrategy": None}}},
            False,
            id="hook removed with the strategy",
        ),
        pytest.param(("Webhook", "configuration"), True, {"webhooks": [{"name": "w"}]}, True, id="webhook"),
        pytest.param(("Webhook", "configuration"), True, {"webhooks": [{"name": "v"}]}, False, id="other webhook"),
    ],
)
def test_comparison(key: tuple[str, str], original: Any, obj: dict[str, Any], *, is_as_it_was: bool) -> None:
    advised = Advised(name="w", path=key[1], original=original)
    assert COMPARISONS[key].is_as_it_was(obj, advised) == is_as_it_was


def test_vm_is_read_as_a_machine() -> None:
    """An instance is absent while its VM is off, which would be no change."""
    assert COMPARISONS["VirtualMachine", "status.printableStatus"].resources == (VIRTUAL_MACHINES,)
