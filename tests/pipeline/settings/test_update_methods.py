"""KubeVirt's update methods in Harvester's chart, and what Harvester's toolkit writes: changed and given back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.harvester import RECORDED
from upgrade_manager.api.keys import ANNOTATION_UPDATE_METHODS, FLEET_LOCAL, HARVESTER_SYSTEM
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.facts import update_methods as facts
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden, Invalid, PreconditionFailed
from upgrade_manager.kube.patch import JsonPatch, MergePatch
from upgrade_manager.kube.resources import KUBEVIRTS, MANAGED_CHARTS
from upgrade_manager.pipeline.settings import overrides
from upgrade_manager.pipeline.settings.giving_back import give_back
from upgrade_manager.pipeline.settings.overrides import COMPARED, DEPLOYED_METHODS, METHODS

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

PHASE = PhaseName.CLUSTER_UPGRADE
OWN, HARVESTERS = RECORDED | {"kind": "own"}, RECORDED
DEFAULT = ["LiveMigrate"]
EXCEPTED = {"comparePatches": facts.with_pointer([])}
USERS = {"apiVersion": "v1", "kind": "Service", "name": "x", "jsonPointers": ["/spec"]}


def strategy(methods: Any) -> Object:
    return {"workloadUpdateStrategy": {"workloadUpdateMethods": methods}} if methods is not None else {}


def values(methods: Any) -> Object:
    return {"kubevirt": {"spec": {"monitorAccount": "operator", **strategy(methods)}}}


async def installed(
    cluster: Harvester, *, methods: Any = None, deployed: Any = None, diff: Object | None = None, **metadata: Any
) -> None:
    """Create chart and KubeVirt."""
    spec: Object = {"chart": "harvester", "version": "1.7.1", "values": values(methods), "paused": False}
    spec |= {"diff": diff} if diff is not None else {}
    named = {"name": "harvester", "namespace": FLEET_LOCAL}
    await cluster.put(MANAGED_CHARTS, {"metadata": named | metadata, "spec": spec})
    kubevirt = {"name": "kubevirt", "namespace": HARVESTER_SYSTEM}
    await cluster.put(KUBEVIRTS, {"metadata": kubevirt, "spec": strategy(DEFAULT if deployed is None else deployed)})


async def change(cluster: Harvester, **spec: Any) -> None:
    """Change Harvester's chart as another client does."""
    await cluster.client.patch(MANAGED_CHARTS, "harvester", MergePatch({"spec": spec}), namespace=FLEET_LOCAL)


async def chart(cluster: Harvester) -> Object:
    found: Object = await cluster.find(MANAGED_CHARTS, "harvester", FLEET_LOCAL)
    return found


async def begun(cluster: Harvester, name: str = "up", *, toolkit: Object = OWN) -> ReconcileContext:
    """Record and apply, as on entering the phase."""
    ctx = cluster.context(await cluster.plan(name, toolkit=toolkit))
    await overrides.record_originals(ctx, PHASE)
    await overrides.apply_overrides(ctx, PHASE)
    return ctx


def recorded(ctx: ReconcileContext) -> dict[str, tuple[Any, Any]]:
    """Return original and applied value of each entry, by its id."""
    entries = ctx.status["ledger"] or []
    assert {entry["kind"] for entry in entries} <= {"UpdateMethods"}
    return {entry["id"]: (entry.get("original"), entry.get("applied")) for entry in entries}


@pytest.mark.parametrize(
    ("methods", "original"),
    [
        pytest.param(None, {METHODS.id: (None, [])}, id="chart default"),
        pytest.param(DEFAULT, {METHODS.id: (DEFAULT, [])}, id="one"),
        pytest.param(["LiveMigrate", "Evict"], {METHODS.id: (["LiveMigrate", "Evict"], [])}, id="two"),
        pytest.param([], {}, id="emptied by a user"),
    ],
)
async def test_list_is_recorded_emptied_and_given_back(
    cluster: Harvester, methods: Any, original: dict[str, Any]
) -> None:
    await installed(cluster, methods=methods)
    before = objects.spec(await chart(cluster))
    ctx = await begun(cluster)
    assert recorded(ctx) == original
    assert objects.spec(await chart(cluster)) == before | {"values": values([])}
    await give_back(ctx, keep_strategy=False)
    assert (objects.spec(await chart(cluster)), ctx.status["ledger"] or []) == (before, [])


@pytest.mark.parametrize(
    ("found", "kept", "events"),
    [
        pytest.param([], ["Evict"], ["SettingRestored"], id="as applied"),
        pytest.param(["Evict"], ["Evict"], ["SettingRestored"], id="given back before a crash"),
        pytest.param(DEFAULT, DEFAULT, ["SettingNotRestored"], id="set by a user"),
        pytest.param(None, None, ["SettingNotRestored"], id="removed by a user"),
    ],
)
async def test_given_back_three_way(cluster: Harvester, found: Any, kept: Any, events: list[str]) -> None:
    await installed(cluster, methods=["Evict"])
    ctx = await begun(cluster)
    await change(cluster, values={"kubevirt": {"spec": {**strategy(found), **({} if found else {"other": "x"})}}})
    if found is None:
        await change(cluster, values={"kubevirt": {"spec": {"workloadUpdateStrategy": None}}})
    await give_back(ctx, keep_strategy=False)
    assert facts.of_chart(await chart(cluster)) == kept
    assert [reason for reason, _ in cluster.recorder.recorded] == events
    assert ctx.status["ledger"] == []


async def test_user_who_was_faster_keeps_the_list(cluster: Harvester) -> None:
    await installed(cluster, methods=DEFAULT)
    ctx = cluster.context(await cluster.plan(toolkit=OWN))
    await overrides.record_originals(ctx, PHASE)
    await change(cluster, values=values(["Evict"]))
    await overrides.apply_overrides(ctx, PHASE)
    await give_back(ctx, keep_strategy=False)
    assert facts.of_chart(await chart(cluster)) == ["Evict"]
    (warning,) = cluster.recorder.recorded
    text = f"{METHODS}: {METHODS.field} was set to "
    assert warning == (
        "SettingNotRestored",
        f'{text}["Evict"] during the upgrade and keeps that value; it was ["LiveMigrate"] before',
    )


@pytest.mark.parametrize("annotation", ['["Evict"]', "null", "{"])
async def test_record_of_an_earlier_toolkit_is_the_original(cluster: Harvester, annotation: str) -> None:
    await installed(cluster, methods=[], annotations={ANNOTATION_UPDATE_METHODS: annotation, "other": "x"})
    ctx = await begun(cluster)
    original = ["Evict"] if annotation.startswith("[") else None
    assert recorded(ctx) == {METHODS.id: (original, [])}
    await give_back(ctx, keep_strategy=False)
    found = await chart(cluster)
    assert (facts.of_chart(found), objects.annotations_of(found)) == (original, {"other": "x"})


async def test_paused_chart_is_named(cluster: Harvester) -> None:
    await installed(cluster)
    ctx = await begun(cluster)
    await change(cluster, paused=True)
    await give_back(ctx, keep_strategy=False)
    assert facts.of_chart(await chart(cluster)) is None
    reason, text = cluster.recorder.recorded[0]
    assert reason == "SettingNotRestored"
    later = f"deploys the restored {METHODS.field} later"
    assert text.endswith(f"{later}; it is paused, set spec.paused to false to continue")


async def test_missing_chart_is_skipped(cluster: Harvester) -> None:
    ctx = await begun(cluster, toolkit=HARVESTERS)
    assert not ctx.status["ledger"]
    await installed(cluster)
    ctx = await begun(cluster, "next", toolkit=HARVESTERS)
    for resource, name, namespace in (
        (MANAGED_CHARTS, "harvester", FLEET_LOCAL),
        (KUBEVIRTS, "kubevirt", HARVESTER_SYSTEM),
    ):
        await cluster.client.delete(resource, name, namespace=namespace)
    await give_back(ctx, keep_strategy=False)
    assert (ctx.status["ledger"], cluster.recorder.recorded) == ([], [])


def refusing(error: Exception) -> Any:
    async def patch(*_: Any, **__: Any) -> None:
        raise error

    return patch


@pytest.mark.parametrize("error", [Invalid("refused"), Forbidden("refused")], ids=["400 or 422", "403"])
async def test_refused_write_stays_recorded(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await installed(cluster)
    ctx = await begun(cluster)
    monkeypatch.setattr(Client, "patch", refusing(error))
    with pytest.raises(type(error), match="refused"):
        await give_back(ctx, keep_strategy=False)
    assert recorded(ctx) == {METHODS.id: (None, [])}


async def test_concurrent_change_is_decided_again(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    await installed(cluster)
    ctx, patch = await begun(cluster), Client.patch

    async def overtaken(self: Client, *args: Any, **more: Any) -> Any:
        if isinstance(args[2], JsonPatch):
            monkeypatch.setattr(Client, "patch", patch)
            await change(cluster, values=values(["Evict"]))
        return await patch(self, *args, **more)

    monkeypatch.setattr(Client, "patch", overtaken)
    with pytest.raises(PreconditionFailed, match="was changed concurrently"):
        await give_back(ctx, keep_strategy=False)
    await give_back(ctx, keep_strategy=False)
    assert facts.of_chart(await chart(cluster)) == ["Evict"]


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        pytest.param(None, EXCEPTED, None, id="none before"),
        pytest.param({}, EXCEPTED, None, id="empty before"),
        pytest.param(
            {"comparePatches": [USERS]},
            {"comparePatches": facts.with_pointer([USERS])},
            {"comparePatches": [USERS]},
            id="among others",
        ),
        pytest.param(EXCEPTED, EXCEPTED, EXCEPTED, id="a user's own"),
        pytest.param(None, None, None, id="not added"),
    ],
)
async def test_exception_of_harvesters_toolkit_is_removed(
    cluster: Harvester, before: Object | None, added: Object | None, after: Object | None
) -> None:
    await installed(cluster, diff=before)
    ctx = await begun(cluster, toolkit=HARVESTERS)
    if added is not None:
        await change(cluster, diff=added)
    await give_back(ctx, keep_strategy=False)
    assert (objects.spec(await chart(cluster)).get("diff") or None) == after
    assert {reason for reason, _ in cluster.recorder.recorded} == {"SettingRestored"}
    assert ctx.status["ledger"] == []


@pytest.mark.parametrize(
    ("writer", "users", "after"),
    [
        pytest.param("kubectl-patch", None, DEFAULT, id="another client"),
        pytest.param("kubectl-patch", ["Evict"], ["Evict"], id="another client, and a user in the chart"),
        pytest.param("", None, [], id="Fleet"),
    ],
)
async def test_list_of_kubevirt_is_filled_where_fleet_cannot(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, writer: str, users: Any, after: Any
) -> None:
    await installed(cluster)
    ctx = await begun(cluster, toolkit=HARVESTERS)
    assert recorded(ctx)[DEPLOYED_METHODS.id] == (DEFAULT, [])
    assert recorded(ctx)[COMPARED.id][0] is None
    monkeypatch.setattr(facts, "other_writer", lambda _: writer)
    await cluster.client.patch(KUBEVIRTS, "kubevirt", MergePatch({"spec": strategy([])}), namespace=HARVESTER_SYSTEM)
    if users is not None:
        await change(cluster, values=values(users))
    await give_back(ctx, keep_strategy=False)
    kubevirt = await cluster.find(KUBEVIRTS, "kubevirt", HARVESTER_SYSTEM)
    assert facts.of_kubevirt(kubevirt) == after
    assert ctx.status["ledger"] == []


async def test_own_toolkit_changes_nothing_else(cluster: Harvester) -> None:
    await installed(cluster)
    assert recorded(await begun(cluster)).keys() == {METHODS.id}
