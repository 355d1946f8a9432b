from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from upgrade_manager.pipeline.settings import foreign_hooks

START = (
    "(1) Start the controller that sets annotation a/hook of the Secret (2) Or remove its hook from the drain options: "
)
EDIT = f"{START}kubectl edit -n fleet-local clusters.provisioning.cattle.io local"
PATCH = f"{START}kubectl patch -n fleet-local clusters.provisioning.cattle.io local --type=merge -p "


def cluster(strategy: object) -> dict[str, Any]:
    return {"spec": {"rkeConfig": {"upgradeStrategy": strategy}}}


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        pytest.param(None, EDIT, id="unknown cluster"),
        pytest.param(cluster(None), EDIT, id="no strategy"),
        pytest.param(
            cluster({"workerDrainOptions": {"preDrainHooks": [{"annotation": "a/hook"}, {"annotation": "b"}]}}),
            f"{PATCH}'"
            '{"spec":{"rkeConfig":{"upgradeStrategy":{"workerDrainOptions":{"preDrainHooks":[{"annotation":"b"}]}}}}}'
            "'",
            id="patch",
        ),
    ],
)
def test_hook_is_acknowledged_or_removed(found: dict[str, Any] | None, remedy: str) -> None:
    assert foreign_hooks.remedy(found, ["a/hook"]) == remedy


def test_hook_of_a_drained_node_is_acknowledged_there() -> None:
    place = "secret -n fleet-local s1"
    value = f"kubectl get {place} -o jsonpath='{{.metadata.annotations.rke\\.cattle\\.io/post-drain}}'"
    acknowledge = f'kubectl annotate {place} a/hook="$({value})"'
    found = foreign_hooks.remedy(None, ["a/hook"], drained="s1")
    assert found == f"{EDIT} (3) And acknowledge it for this node, which is drained: {acknowledge}"


def test_hostile_annotation_stays_inside_its_word() -> None:
    kept, removed = "b'; reboot '", "a'; reboot '"
    hooks = {"workerDrainOptions": {"preDrainHooks": [{"annotation": removed}, {"annotation": kept}]}}
    found = foreign_hooks.remedy(cluster(hooks), [removed], drained="s1")
    patch = shlex.split(found[found.index("kubectl patch") : found.index(" (3) ")])[-1]
    options = json.loads(patch)["spec"]["rkeConfig"]["upgradeStrategy"]["workerDrainOptions"]
    assert options == {"preDrainHooks": [{"annotation": kept}]}
    annotate = shlex.split(found[found.index("kubectl annotate") :])
    assert annotate[6].startswith(f"{removed}=$(kubectl get ")
