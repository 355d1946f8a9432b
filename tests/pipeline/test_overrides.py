"""Settings of others, noted, changed and put back, and all of it again after every crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.harvester import DEFINITIONS
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, LONGHORN_SETTINGS, UPGRADE_PLANS
from upgrade_manager.pipeline import overrides

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext

INTERVAL = "management.harvesterhci.io/replica-replenishment-wait-interval"
DESCHEDULER = "management.harvesterhci.io/descheduler-was-enabled"


async def settings(cluster: Harvester, *, value: str | None = "600", enabled: bool | None = True) -> None:
    if value is not None:
        metadata = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
        await cluster.put(LONGHORN_SETTINGS, {"metadata": metadata, "value": value})
    if enabled is not None:
        metadata = {"name": "descheduler", "namespace": "kube-system"}
        spec = {"enabled": enabled, "repo": "r", "chart": "c", "version": "1", "valuesContent": ""}
        await cluster.put(ADDONS, {"metadata": metadata, "spec": spec})


async def now(cluster: Harvester) -> tuple[Any, Any]:
    setting = await cluster.find(LONGHORN_SETTINGS, "replica-replenishment-wait-interval", "longhorn-system")
    addon = await cluster.find(ADDONS, "descheduler", "kube-system")
    return setting and setting["value"], addon and addon["spec"]["enabled"]


async def noted(cluster: Harvester, notes: dict[str, str]) -> ReconcileContext:
    await cluster.plan()
    patch = MergePatch({"metadata": {"annotations": notes}})
    return cluster.context(await cluster.client.patch(UPGRADE_PLANS, "up", patch))


@pytest.mark.rule(
    "api: replica-replenishment-wait-interval on the plan is Longhorn's original value",
    'api: descheduler-was-enabled on the plan is "true" if the addon was enabled',
    "nodes: the interval's original value is recorded on the plan",
    "nodes: an interval of 1800 or more is unchanged",
    "nodes: a non-numeric interval is unchanged",
    "nodes: the plan records that the descheduler was enabled, and nothing otherwise",
    "nodes: setting and addon may be absent",
)
@pytest.mark.parametrize(
    ("value", "enabled", "notes"),
    [
        pytest.param("600", True, {INTERVAL: "600", DESCHEDULER: "true"}, id="both are to be changed"),
        pytest.param("0", True, {INTERVAL: "0", DESCHEDULER: "true"}, id="zero is a value"),
        pytest.param("1800", False, {}, id="as we would have it"),
        pytest.param("3600", None, {}, id="a larger value is left alone"),
        pytest.param("soon", False, {}, id="as is one that is no number"),
        pytest.param('{"v1":"600"}', False, {}, id="or one of another form"),
        pytest.param("-1", False, {}, id="or below zero"),
        pytest.param("9" * 5000, False, {}, id="or longer than Python reads"),
        pytest.param(None, None, {}, id="neither is there"),
    ],
)
async def test_what_is_going_to_be_changed_is_noted(
    cluster: Harvester,
    value: str | None,
    enabled: bool | None,  # noqa: FBT001  # a table
    notes: dict[str, str],
) -> None:
    await settings(cluster, value=value, enabled=enabled)
    assert await overrides.originals(cluster.context(await cluster.plan())) == notes


@pytest.mark.rule(
    "nodes: Longhorn's replica-replenishment-wait-interval is raised to 1800",
    "nodes: an interval of 1800 or more is unchanged",
    "nodes: the descheduler addon is disabled if it was enabled",
)
@pytest.mark.parametrize(
    ("notes", "after"),
    [
        pytest.param({INTERVAL: "600", DESCHEDULER: "true"}, ("1800", False), id="both"),
        pytest.param({INTERVAL: "600"}, ("1800", True), id="the interval only"),
        pytest.param({DESCHEDULER: "true"}, ("600", False), id="the descheduler only"),
        pytest.param({}, ("600", True), id="nothing that is not noted"),
    ],
)
async def test_what_is_noted_is_changed(cluster: Harvester, notes: dict[str, str], after: tuple[Any, Any]) -> None:
    await settings(cluster)
    ctx = await noted(cluster, notes)
    await overrides.change(ctx)
    await overrides.change(ctx)
    assert await now(cluster) == after


@pytest.mark.rule(
    "nodes: setting and addon may be absent",
    "nodes: a crash neither loses an original value nor records the override as one",
)
@pytest.mark.parametrize(
    ("value", "enabled", "after"),
    [
        pytest.param("3600", True, ("3600", False), id="raised by someone else"),
        pytest.param("300", True, ("300", False), id="lowered by someone else"),
        pytest.param("1800", False, ("1800", False), id="changed by us, before a crash"),
        pytest.param(None, None, (None, None), id="gone"),
    ],
)
async def test_what_has_another_value_than_the_noted_one_is_left_alone(
    cluster: Harvester,
    value: str | None,
    enabled: bool | None,  # noqa: FBT001  # a table
    after: tuple[Any, Any],
) -> None:
    await settings(cluster, value=value, enabled=enabled)
    await overrides.change(await noted(cluster, {INTERVAL: "600", DESCHEDULER: "true"}))
    assert await now(cluster) == after


@pytest.mark.parametrize("note", ["soon", "", "-1", "9" * 5000, "1800"])
async def test_a_note_that_is_none_of_ours_is_not_put_back(cluster: Harvester, note: str) -> None:
    await settings(cluster, value="1800")
    await overrides.restore(await noted(cluster, {INTERVAL: note}))
    assert (await now(cluster))[0] == "1800"
    assert cluster.heard.said == []


@pytest.mark.rule(
    "pipeline: Longhorn's replenishment interval is restored",
    "pipeline: the descheduler is restored",
    "pipeline: missing objects do not block deletion",
)
@pytest.mark.parametrize(
    ("value", "enabled", "after", "said"),
    [
        pytest.param("1800", False, ("600", True), 0, id="ours are put back"),
        pytest.param("600", True, ("600", True), 0, id="what is put back already stays"),
        pytest.param("900", False, ("900", True), 1, id="what someone else has set stays, and is said"),
        pytest.param("soon", False, ("soon", True), 1, id="so does what is no number"),
        pytest.param('{"v1":"600"}', False, ('{"v1":"600"}', True), 1, id="or is of another form"),
        pytest.param(None, None, (None, None), 0, id="what is gone stays gone"),
    ],
)
async def test_what_is_still_ours_is_put_back(
    cluster: Harvester,
    value: str | None,
    enabled: bool | None,  # noqa: FBT001  # a table
    after: tuple[Any, Any],
    said: int,
) -> None:
    await settings(cluster, value=value, enabled=enabled)
    ctx = await noted(cluster, {INTERVAL: "600", DESCHEDULER: "true"})
    await overrides.restore(ctx)
    await overrides.restore(ctx)
    assert await now(cluster) == after
    assert len(set(cluster.heard.names)) == said


@pytest.mark.rule("nodes: the kinds of setting and addon may be absent")
async def test_kinds_that_are_not_installed_have_nothing_to_change(cluster: Harvester) -> None:
    for name in ("settings.longhorn.io", "addons.harvesterhci.io"):
        await cluster.client.delete(DEFINITIONS, name)
    assert await overrides.originals(cluster.context(await cluster.plan())) == {}
    await overrides.change(cluster.context(await cluster.client.get(UPGRADE_PLANS, "up")))


async def test_without_notes_nothing_is_put_back(cluster: Harvester) -> None:
    await settings(cluster, value="1800", enabled=False)
    await overrides.restore(await noted(cluster, {}))
    assert await now(cluster) == ("1800", False)
