from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.kube.resources import ADDONS
from webhook.checks.addons import CHECK

BUSY = "Addon logging/fluent is {}, but in state {}. Wait until it has settled, or repair it: kubectl describe "


@pytest.mark.rule("admission: no Addon may be changing")
@pytest.mark.parametrize(
    ("enabled", "state", "expected"),
    [
        pytest.param(False, "", [], id="off"),
        pytest.param(False, "AddonDisabled", [], id="disabled"),
        pytest.param(False, "AddonDisabling", [BUSY.format("disabled", "AddonDisabling")], id="disabling"),
        pytest.param(False, "AddonDeploySuccessful", [BUSY.format("disabled", "AddonDepl")[:38]], id="to be disabled"),
        pytest.param(True, "AddonDeploySuccessful", [], id="enabled"),
        pytest.param(True, "AddonEnabling", [BUSY.format("enabled", "AddonEnabling")], id="enabling"),
        pytest.param(True, "AddonUpdating", [BUSY.format("enabled", "AddonUpdating")], id="updating"),
        pytest.param(True, "AddonDeployFailed", [BUSY.format("enabled", "AddonDeployFailed")], id="failed"),
        pytest.param(True, "AddonEnabled", [BUSY.format("enabled", "AddonEnabled")], id="old state"),
        pytest.param(True, "", [BUSY.format("enabled", "not deployed")], id="to be enabled"),
        pytest.param(True, None, [BUSY.format("enabled", "not deployed")], id="null state"),
        pytest.param(None, None, [], id="null"),
        pytest.param("true", ["AddonEnabling"], [], id="wrong types"),
    ],
)
async def test_addons(*, enabled: Any, state: Any, expected: list[str]) -> None:
    addon = named("fluent", "logging", spec={"enabled": enabled}, status={"status": state})
    assert_messages(await find(CHECK, MemoryReader({ADDONS: [addon]})), expected)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, [], id="no spec and status"),
        pytest.param({"spec": None, "status": None}, [], id="null"),
        pytest.param({"spec": {"enabled": True}}, [BUSY.format("enabled", "not deployed")], id="no status"),
        pytest.param({"spec": {"enabled": True}, "status": []}, [BUSY.format("enabled", "not deployed")], id="a list"),
    ],
)
async def test_partial_addons(more: dict[str, Any], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({ADDONS: [named("fluent", "logging", **more)]})), expected)
