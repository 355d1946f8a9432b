from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services_world
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import RANCHER_FEATURES
from upgrade_manager.release.migrations.v1_7_to_v1_8 import DROPPED_FEATURES
from upgrade_manager.toolkit.charts import rancher_values
from upgrade_manager.toolkit.charts.rancher import RANCHER
from upgrade_manager.toolkit.charts.rancher_features import features_not_accepted, with_feature, without_features
from upgrade_manager.toolkit.run.errors import StepFailed

KEPT = "multi-cluster-management=false,multi-cluster-management-agent=false,managed-system-upgrade-controller=false"
OF_V1_7_1 = f"{KEPT},turtles=false,embedded-cluster-api=true"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        pytest.param(OF_V1_7_1, KEPT, id="v1.7.1"),
        pytest.param("a=true,turtles=true,b=false", "a=true,b=false", id="a-user's-keys-stay"),
        pytest.param("a=true, turtles=false", "a=true", id="blank"),
        pytest.param("turtles=false", "", id="nothing-left"),
        pytest.param(
            "turtles-next=true,a=embedded-cluster-api", "turtles-next=true,a=embedded-cluster-api", id="exact"
        ),
        pytest.param("turtles", "", id="key-alone"),
        pytest.param("", "", id="empty"),
        pytest.param(None, None, id="no-text"),
        pytest.param(["turtles=false"], ["turtles=false"], id="list"),
    ],
)
def test_only_the_dropped_keys_are_removed(text: Any, changed: Any) -> None:
    values = {"features": text, "replicas": -3}
    assert without_features(values, DROPPED_FEATURES) == {"features": changed, "replicas": -3}
    assert values["features"] == text


async def test_simulated_installation_has_the_features_of_v1_7_1(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        assert (await world.context().helm.values(RANCHER))["features"] == OF_V1_7_1


def test_values_without_features_stay() -> None:
    assert without_features({}, DROPPED_FEATURES) == {}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        pytest.param(KEPT, f"{KEPT},crt=false", id="added"),
        pytest.param("a=true,crt=true", "a=true,crt=true", id="a-user's-value-stays"),
        pytest.param("crt=false,a=true", "crt=false,a=true", id="done"),
        pytest.param("crt-next=true", "crt-next=true,crt=false", id="exact"),
        pytest.param("", "crt=false", id="empty"),
        pytest.param(None, "crt=false", id="no-text"),
        pytest.param(["crt=true"], ["crt=true"], id="list"),
    ],
)
def test_key_is_added_once(text: Any, changed: Any) -> None:
    values = {"features": text, "replicas": -3}
    assert with_feature(values, "crt", "false") == {"features": changed, "replicas": -3}
    assert values["features"] == text


def _drop_only(monkeypatch: pytest.MonkeyPatch, keys: Collection[str]) -> None:
    def change(values: dict[str, Any], _: Collection[str]) -> dict[str, Any]:
        return without_features(values, keys)

    monkeypatch.setattr(rancher_values, "without_features", change)


@pytest.mark.parametrize("dropped", [(), ("turtles",)], ids=["none", "turtles"])
async def test_unknown_key_ends_with_a_multi_cluster_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: tuple[str, ...]
) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        with monkeypatch.context() as patched:
            _drop_only(patched, dropped)
            with pytest.raises(StepFailed) as failure:
                await upgrade.run()
        assert str(failure.value).startswith(
            "check-rancher-features: not done after 10 min: Feature multi-cluster-management is true in "
            "status.default, so that Rancher would manage other clusters."
        )
        # Rancher has the new chart already; the next attempt mends its values.
        await upgrade.run()
        assert (await upgrade.world.context().helm.values(RANCHER))["features"] == KEPT
        assert await features_not_accepted(upgrade.world.context()) == ""


async def test_value_of_a_user_fails_the_check(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        assert await features_not_accepted(world.context()) == ""
        patch = MergePatch({"spec": {"value": True}})
        await world.client.patch(RANCHER_FEATURES, "multi-cluster-management", patch)
        assert "is true in spec.value" in await features_not_accepted(world.context())
        await world.client.delete(RANCHER_FEATURES, "multi-cluster-management")
        assert "does not exist" in await features_not_accepted(world.context())
