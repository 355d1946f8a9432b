from __future__ import annotations

import copy
from typing import Any
from unittest.mock import AsyncMock

import pytest

from hack.actors.kinds import controller_reference
from hack.apiserver.crds import CRDS
from tests.support.cluster.harvester import RECORDED, RELEASE, Harvester
from upgrade_manager.api.keys import (
    ANNOTATION_CREATED_BY,
    ANNOTATION_TOOLKIT_IMAGE,
    LABEL_PLAN,
    LABEL_PLAN_UID,
    Component,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Conflict, PreconditionFailed
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SERVICES, UPGRADE_PLANS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.errors import ForeignObject, RetryError
from upgrade_manager.resources.repository import repository_service

PLACE = "harvester-system"
ANOTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u-9", "controller": True}
EARLIER = {LABEL_PLAN: "up", LABEL_PLAN_UID: "u-0"}
DIGEST = "sha256:" + "0a" * 32


class TestToolkit:
    @pytest.mark.rule("workloads: the toolkit image is recorded before anything is created, and nothing else is used")
    @pytest.mark.parametrize(
        ("recorded", "image"),
        [
            pytest.param({}, "rancher/harvester-upgrade-toolkit:v1.7.0", id="tag"),
            pytest.param({"digest": DIGEST}, f"rancher/harvester-upgrade-toolkit@{DIGEST}", id="digest"),
        ],
    )
    async def test_toolkit_is_the_recorded_image(self, cluster: Harvester, recorded: Object, image: str) -> None:
        spec = {"version": "v1.7.0", "upgrade": "fix"}
        raw = await cluster.plan(spec=spec, toolkit={**RECORDED, **recorded}, status={"releaseMetadata": RELEASE})
        raw["metadata"]["annotations"] = {ANNOTATION_TOOLKIT_IMAGE: "registry:5000/other"}
        assert str(cluster.context(raw).toolkit) == image

    async def test_missing_record_is_an_error(self, cluster: Harvester) -> None:
        ctx = cluster.context(await cluster.plan(toolkit=None))
        with pytest.raises(RetryError, match="toolkitImage"):
            _ = ctx.toolkit

    @pytest.mark.rule("api: createdBy is the annotation created-by at acceptance, and never changes")
    @pytest.mark.parametrize(
        ("annotated", "recorded", "shown"),
        [(" alice\n", "alice", "alice"), ("", None, "not recorded"), (None, None, "not recorded")],
        ids=["recorded at admission", "empty", "absent"],
    )
    async def test_creator_is_that_of_the_annotation(
        self, cluster: Harvester, annotated: str | None, recorded: str | None, shown: str
    ) -> None:
        raw = await cluster.plan()
        raw["metadata"]["annotations"] = {} if annotated is None else {ANNOTATION_CREATED_BY: annotated}
        ctx = cluster.context(raw)
        ctx.record_creator()
        assert (ctx.status["createdBy"], ctx.creator) == (recorded, shown)


class TestEnsure:
    async def test_object_is_created_once(self, cluster: Harvester) -> None:
        ctx = cluster.context(await cluster.plan())
        for _ in range(2):
            await ctx.ensure(SERVICES, repository_service(ctx.owner))
        assert await cluster.names(SERVICES, "harvester-system") == ["up-repo"]
        assert len(ctx.writes) == 2

    @pytest.mark.rule(
        "workloads: an object that another owner controls is never adopted",
        "workloads: an object of another plan of that name is never adopted",
    )
    @pytest.mark.parametrize(
        ("labels", "references", "named"),
        [
            pytest.param({}, [], "was not created by this plan", id="unowned"),
            pytest.param({}, [ANOTHER], r"belongs to ConfigMap x \(uid u-9\)", id="another owner"),
            pytest.param(EARLIER, [], r"belongs to UpgradePlan up \(uid u-0\), not to this plan", id="earlier plan"),
        ],
    )
    async def test_foreign_object_is_kept_and_its_owner_reported(
        self, cluster: Harvester, labels: dict[str, str], references: list[Any], named: str
    ) -> None:
        ctx = cluster.context(await cluster.plan())
        foreign = repository_service(ctx.owner)
        foreign["metadata"] |= {"labels": labels, "ownerReferences": references}
        before = await cluster.put(SERVICES, foreign)
        with pytest.raises(ForeignObject, match=rf"up-repo already exists and {named}"):
            await ctx.ensure(SERVICES, repository_service(ctx.owner))
        assert await cluster.find(SERVICES, "up-repo", "harvester-system") == before

    @pytest.mark.rule("workloads: an object that another owner controls is never adopted")
    async def test_object_with_another_controller_is_foreign(self, cluster: Harvester) -> None:
        plan = await cluster.plan()
        ctx = cluster.context(plan)
        shared = repository_service(ctx.owner)
        shared["metadata"]["labels"] = {}
        shared["metadata"]["ownerReferences"] = [{**controller_reference(UPGRADE_PLANS, plan), "controller": False}]
        await cluster.put(SERVICES, shared)
        with pytest.raises(ForeignObject):
            await ctx.ensure(SERVICES, repository_service(ctx.owner))


class TestRemove:
    async def test_missing_or_replaced_object_is_skipped(self, cluster: Harvester) -> None:
        ctx = cluster.context(await cluster.plan())
        first = await cluster.put(SERVICES, repository_service(ctx.owner))
        for _ in range(2):
            await remove(ctx, first)
        assert await cluster.names(SERVICES, "harvester-system") == []
        await cluster.put(SERVICES, repository_service(ctx.owner))
        await remove(ctx, first)
        assert await cluster.names(SERVICES, "harvester-system") == ["up-repo"]

    async def test_other_conflict_is_raised(self, cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
        ctx = cluster.context(await cluster.plan())
        first = await cluster.put(SERVICES, repository_service(ctx.owner))
        monkeypatch.setattr(Client, "delete", AsyncMock(side_effect=Conflict("a webhook's")))
        with pytest.raises(Conflict, match="a webhook's"):
            await remove(ctx, first)


async def remove(ctx: ReconcileContext, found: Object) -> None:
    await ctx.remove(SERVICES, "up-repo", namespace="harvester-system", uid=objects.uid(found))


class TestPlan:
    async def test_annotating_keeps_unwritten_status_changes(self, cluster: Harvester) -> None:
        ctx = cluster.context(await cluster.plan())
        ctx.status.record("Initializing")
        await ctx.annotate({"example.org/note": "x"})
        assert await ctx.persist()
        assert not await ctx.persist()
        stored = await cluster.client.get(UPGRADE_PLANS, "up")
        assert objects.annotations_of(stored) == {"example.org/note": "x"}
        assert stored["status"]["currentPhase"] == "Initializing"
        assert [reason for reason, _ in cluster.recorder.recorded] == ["PhaseTransition"]

    @pytest.mark.rule("pipeline: a concurrent change is never overwritten")
    @pytest.mark.parametrize("write", ["annotate", "persist", "claim"])
    async def test_concurrent_change_is_a_conflict(self, cluster: Harvester, write: str) -> None:
        ctx = cluster.context(await cluster.plan())
        ctx.status.record("Initializing")
        other = MergePatch({"status": {"currentPhase": "ISODownloading"}})
        before = await cluster.client.patch(UPGRADE_PLANS, "up", other, subresource="status")
        arguments: dict[str, list[Any]] = {"annotate": [{"a.b/c": "d"}], "persist": [], "claim": []}
        with pytest.raises(PreconditionFailed):
            await getattr(ctx, write)(*arguments[write])
        assert await cluster.client.get(UPGRADE_PLANS, "up") == before
        assert cluster.recorder.recorded == []

    @pytest.mark.rule("pipeline: a 409 that is not the manager's own precondition is reported")
    @pytest.mark.parametrize("write", ["annotate", "persist", "claim"])
    async def test_conflict_without_a_change_is_a_refusal(
        self, cluster: Harvester, monkeypatch: pytest.MonkeyPatch, write: str
    ) -> None:
        ctx = cluster.context(await cluster.plan())
        ctx.status.record("Initializing")
        monkeypatch.setattr(Client, "patch", AsyncMock(side_effect=Conflict("a webhook's")))
        arguments: dict[str, list[Any]] = {"annotate": [{"a.b/c": "d"}], "persist": [], "claim": []}
        with pytest.raises(Conflict, match="a webhook's") as raised:
            await getattr(ctx, write)(*arguments[write])
        assert not isinstance(raised.value, PreconditionFailed)


class TestPatch:
    """A pinned patch of another controller's object, and one that is not pinned."""

    @pytest.mark.parametrize(
        ("pinned", "change", "failed"),
        [
            pytest.param(True, "changed", True, id="changed"),
            pytest.param(True, "deleted", True, id="deleted"),
            pytest.param(True, "", False, id="unchanged"),
            pytest.param(False, "changed", False, id="not pinned"),
        ],
    )
    async def test_conflict_is_compared_with_the_live_object(
        self, cluster: Harvester, monkeypatch: pytest.MonkeyPatch, *, pinned: bool, change: str, failed: bool
    ) -> None:
        ctx = cluster.context(await cluster.plan())
        service = await cluster.put(SERVICES, repository_service(ctx.owner))
        name, body = objects.name(service), MergePatch({"metadata": {"labels": {"a": "b"}}})
        if change == "changed":
            await ctx.patch(SERVICES, name, body, namespace=PLACE)
        if change == "deleted":
            await cluster.client.delete(SERVICES, name, namespace=PLACE)
        monkeypatch.setattr(Client, "patch", AsyncMock(side_effect=Conflict("409")))
        patch = body.at(objects.resource_version(service)) if pinned else body
        with pytest.raises(Conflict) as raised:
            await ctx.patch(SERVICES, name, patch, namespace=PLACE)
        assert isinstance(raised.value, PreconditionFailed) == failed


class TestStatus:
    """Fields that a write of the status keeps."""

    @pytest.mark.rule("api: status fields of a newer version survive every write")
    async def test_unknown_fields_survive_every_write(self, cluster: Harvester) -> None:
        """The CRD of the newer version keeps them, and the writes leave them alone."""
        definition = copy.deepcopy(await cluster.client.get(CRDS, UPGRADE_PLANS.name))
        (version,) = definition["spec"]["versions"]
        fields = version["schema"]["openAPIV3Schema"]["properties"]
        for part in ("spec", "status"):
            fields[part]["x-kubernetes-preserve-unknown-fields"] = True
        await cluster.client.update(CRDS, definition)
        plan = await cluster.plan(
            spec={"version": "v1.7.0", "future": {"a": [1, {"b": None}]}},
            status={"future": {"c": "d"}, "nodeUpgradeStatuses": {"n9": {"state": "Polishing"}}},
        )
        ctx = cluster.context(plan)
        ctx.status.accept("Initializing", "v1.8.0")
        await ctx.annotate({"a.b/c": "d"})
        await ctx.claim()
        await ctx.persist()
        stored = await cluster.client.get(UPGRADE_PLANS, "up")
        assert stored["spec"] == plan["spec"]
        assert stored["status"]["future"] == {"c": "d"}
        assert stored["status"]["nodeUpgradeStatuses"] == {"n9": {"state": "Polishing"}}
        assert stored["status"]["currentPhase"] == "Initializing"


async def test_owner_is_read_once_and_follows_the_takeover(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    assert ctx.owner is ctx.owner
    assert not ctx.owner.has_unlabeled
    ctx.informers.has_unlabeled = True
    assert ctx.owner.has_unlabeled


async def test_null_in_a_patch_removes_an_annotation(cluster: Harvester) -> None:
    await cluster.plan()
    patch = MergePatch({"metadata": {"annotations": {"a.b/c": "d", "a.b/e": "f"}}})
    ctx = cluster.context(await cluster.client.patch(UPGRADE_PLANS, "up", patch))
    patch = MergePatch({"metadata": {"annotations": {"a.b/c": None, "a.b/missing": None}}})
    await ctx.patch(UPGRADE_PLANS, "up", patch, metadata_only=True)
    assert objects.annotations_of(await cluster.client.get(UPGRADE_PLANS, "up")) == {"a.b/e": "f"}


@pytest.mark.rule("pipeline: MetadataPopulate gets harvester-iso/harvester-release.yaml from the plan's repository")
@pytest.mark.parametrize(
    ("plan", "url"),
    [
        pytest.param("up", "http://up-repo.harvester-system", id="a Service by its name"),
        pytest.param("p" * 253, "http://", id="a long one"),
    ],
)
async def test_repository_url_names_its_service(cluster: Harvester, plan: str, url: str) -> None:
    ctx = cluster.context(await cluster.plan(plan))
    assert ctx.repo_url.startswith(url)
    host = ctx.repo_url.removeprefix("http://")
    assert host == f"{objects.name(repository_service(ctx.owner))}.harvester-system"
    assert Component.REPO in objects.labels(repository_service(ctx.owner)).values()
