from __future__ import annotations

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import UPGRADES
from webhook.checks.builtin_upgrade import CHECK

STATE, CLEANUP = "harvesterhci.io/upgradeState", "harvesterhci.io/upgradeCleanup"


def upgrade(labels: object, namespace: str = "harvester-system") -> Object:
    return named("up", namespace, labels=labels, spec={"version": "v1.8.0"})


@pytest.mark.rule("admission: an Upgrade of Harvester in progress or with a pending clean-up denies a plan, by name")
@pytest.mark.parametrize(
    ("upgrades", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([upgrade({STATE: "Succeeded"})], [], id="succeeded"),
        pytest.param([upgrade({STATE: "Failed", CLEANUP: "Succeeded"})], [], id="failed and cleaned up"),
        pytest.param([upgrade({STATE: "UpgradingNodes"}, "default")], [], id="in another namespace"),
        pytest.param(
            [upgrade({STATE: "UpgradingNodes"})],
            ["Upgrade harvester-system/up is in progress (state UpgradingNodes). Wait until it has ended: kubectl "],
            id="in progress",
        ),
        pytest.param([upgrade({STATE: "Succeeded", CLEANUP: "Pending"})], ["up is still cleaning up. "], id="cleanup"),
        pytest.param([upgrade({"a": "b"})], ["up is in progress (no state yet). "], id="no state"),
        pytest.param([upgrade(None)], ["up is in progress (no state yet). "], id="null labels"),
        pytest.param([upgrade({STATE: 1})], ["up is in progress (no state yet). "], id="a number"),
    ],
)
async def test_builtin_upgrade(upgrades: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({UPGRADES: upgrades})), expected)
