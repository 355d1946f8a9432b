"""The commands that end a wait for drain hooks."""

from __future__ import annotations

import json
import shlex

import pytest

from upgrade_manager.facts.drain_hooks import HOOKS, drain_again, foreign_ways_out, leftover_hook, remove_command

PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"


@pytest.mark.parametrize(
    ("keys", "acknowledged"),
    [
        ((), f'{PRE}="$VALUE" {POST}="$VALUE"'),
        (("rke.cattle.io/post-drain",), f'{POST}="$VALUE"'),
        (("rke.cattle.io/pre-drain",), f'{PRE}="$VALUE"'),
    ],
)
def test_leftover_hook_is_acknowledged(keys: tuple[str, ...], acknowledged: str) -> None:
    command = leftover_hook("plan", *keys)
    assert command.startswith("VALUE=$(kubectl -n fleet-local get secret plan -o jsonpath=")
    assert command.endswith(f"kubectl -n fleet-local annotate --overwrite secret plan {acknowledged}")
    assert "drain-" not in acknowledged


@pytest.mark.rule("blockers: a drain hook is removed by its name, and other hooks stay")
def test_named_hooks_are_removed() -> None:
    listed = [{"annotation": "a"}, {"annotation": "b"}]
    strategy = {"workerDrainOptions": {"preDrainHooks": listed, "postDrainHooks": [{"annotation": "b"}]}}
    assert remove_command(strategy, {"a"}) == (
        "kubectl patch -n fleet-local clusters.provisioning.cattle.io local --type=merge -p "
        """'{"spec":{"rkeConfig":{"upgradeStrategy":{"workerDrainOptions":{"preDrainHooks":[{"annotation":"b"}]}}}}}'"""
    )
    for unknown in (None, {}, {"workerDrainOptions": None}):
        assert remove_command(unknown, {"a"}).startswith("kubectl edit -n fleet-local clusters.prov")


START = "Start the controller that sets annotation a/hook of the Secret"
REMOVE = "Or remove its hook from the drain options: "
EDIT = f"{REMOVE}kubectl edit -n fleet-local clusters.provisioning.cattle.io local"
PATCH = f"{REMOVE}kubectl patch -n fleet-local clusters.provisioning.cattle.io local --type=merge -p "


@pytest.mark.parametrize(
    ("strategy", "way_out"),
    [
        pytest.param(None, EDIT, id="no strategy"),
        pytest.param(
            {"workerDrainOptions": {"preDrainHooks": [{"annotation": "a/hook"}, {"annotation": "b"}]}},
            f"{PATCH}'"
            '{"spec":{"rkeConfig":{"upgradeStrategy":{"workerDrainOptions":{"preDrainHooks":[{"annotation":"b"}]}}}}}'
            "'",
            id="patch",
        ),
    ],
)
def test_hook_is_acknowledged_or_removed(strategy: object, way_out: str) -> None:
    assert [*map(str, foreign_ways_out(strategy, ["a/hook"]))] == [START, way_out]


def test_hook_of_a_drained_node_is_acknowledged_there() -> None:
    place = "secret -n fleet-local s1"
    value = f"kubectl get {place} -o jsonpath='{{.metadata.annotations.rke\\.cattle\\.io/post-drain}}'"
    acknowledge = f'kubectl annotate {place} a/hook="$({value})"'
    found = foreign_ways_out(None, ["a/hook"], drained="s1")
    assert [*map(str, found)] == [START, EDIT, f"And acknowledge it for this node, which is drained: {acknowledge}"]


def test_hostile_annotation_stays_inside_its_word() -> None:
    kept, removed = "b'; reboot '", "a'; reboot '"
    hooks = {"workerDrainOptions": {"preDrainHooks": [{"annotation": removed}, {"annotation": kept}]}}
    _, patch, annotate = foreign_ways_out(hooks, [removed], drained="s1")
    body = shlex.split(patch.command)[-1]
    options = json.loads(body)["spec"]["rkeConfig"]["upgradeStrategy"]["workerDrainOptions"]
    assert options == {"preDrainHooks": [{"annotation": kept}]}
    given_back = json.loads(shlex.split(patch.undo)[-1])["spec"]["rkeConfig"]["upgradeStrategy"]
    assert given_back == hooks
    words = shlex.split(annotate.command)
    assert words[6].startswith(f"{removed}=$(kubectl get ")


def test_hook_is_given_back_without_the_managers_own() -> None:
    lists = {"preDrainHooks": [{"annotation": "a"}, {"annotation": HOOKS["preDrainHooks"]}, {"annotation": "b"}]}
    _, patch = foreign_ways_out({"controlPlaneDrainOptions": lists}, ["b"])
    assert json.loads(shlex.split(patch.undo)[-1])["spec"]["rkeConfig"]["upgradeStrategy"] == {
        "controlPlaneDrainOptions": {"preDrainHooks": [{"annotation": "a"}, {"annotation": "b"}]}
    }


def test_nodes_are_drained_again_by_the_next_generation() -> None:
    assert str(drain_again(4)) == (
        "Let Rancher drain all nodes again, also the upgraded ones: kubectl patch -n fleet-local "
        """clusters.provisioning.cattle.io local --type=merge -p '{"spec":{"rkeConfig":{"provisionGeneration":5}}}'"""
    )
