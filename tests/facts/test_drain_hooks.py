"""The commands that end a wait for drain hooks."""

from __future__ import annotations

import pytest

from upgrade_manager.facts.drain_hooks import leftover_hook, remove_command

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
