from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.cluster.harvester import Harvester
from tests.support.managers.healthy_run import CREATOR, healthy_run
from upgrade_manager.api.keys import JobType
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import JsonPatch, MergePatch, Patch
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, NODES, SECRETS, SERVICES, SUC_PLANS, Resource
from upgrade_manager.pipeline.write_log import MAX_CHANGES, MAX_VALUE, changes, created, describe
from upgrade_manager.resources.jobs import JobSettings, cluster_upgrade_job, node_job, restore_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment, repository_service
from upgrade_manager.resources.suc_plan import PlanSettings, image_preload_plan
from upgrade_manager.resources.toolkit import ToolkitImage

PLACE = "harvester-system"
OWNER = Owner(name="up", uid="u-1")
IMAGE = ToolkitImage(repository="r/t", tag="v1+x")
PINNED = ToolkitImage(repository="r/t", tag="v1", digest="sha256:" + "a" * 64)
WORKLOADS = {"Job", "Plan", "Deployment"}
#: Log entry of any Plan.
OF_A_PLAN = {"node": "all that are managed", "service_account": "planner", "privileged": "yes"}
REPLACED = JsonPatch(
    [
        {"op": "test", "path": "/value", "value": "600"},
        {"op": "replace", "path": "/value", "value": "1800"},
        {"op": "add", "path": "/metadata/annotations/a~1b", "value": "x"},
        {"op": "remove", "path": "/spec/old"},
    ]
)
SECRET = MergePatch({"metadata": {"labels": {"a": "b"}}, "data": {"token": "c2VjcmV0"}})


@pytest.mark.parametrize(
    ("patch", "before", "expected"),
    [
        pytest.param(
            REPLACED,
            None,
            ['value: "600" → "1800"', 'metadata.annotations.a/b: "x"', "spec.old: removed"],
            id="operations, old values of tests",
        ),
        pytest.param(
            MergePatch({"spec": {"suspend": False}, "metadata": {"labels": {"a": None}}}).at("7"),
            None,
            ["spec.suspend: false", "metadata.labels.a: removed"],
            id="members, without the pin",
        ),
        pytest.param(
            MergePatch({"metadata": {"annotations": {"a": "2", "b": "1"}, "finalizers": []}}),
            {"metadata": {"annotations": {"a": "1"}, "finalizers": ["f"]}},
            [
                'metadata.annotations.a: "1" → "2"',
                'metadata.annotations.b: unset → "1"',
                'metadata.finalizers: ["f"] → []',
            ],
            id="members of a known object",
        ),
    ],
)
def test_changes_name_field_old_and_new_value(patch: Patch, before: Any, expected: list[str]) -> None:
    assert changes(patch, before, is_secret=False) == expected


@pytest.mark.rule("pipeline: no log line has the data of a Secret or a whole object")
def test_values_of_secrets_are_not_logged() -> None:
    assert changes(SECRET, None, is_secret=True) == ['metadata.labels.a: "b"', "data.token"]


def test_values_and_changes_are_bounded() -> None:
    assert len(describe({"a": "b" * 1000})) == MAX_VALUE
    many = MergePatch({"spec": {str(number): number for number in range(MAX_CHANGES + 5)}})
    assert changes(many, None, is_secret=False)[-1] == "5 more"


@pytest.mark.rule("pipeline: every write to the cluster is a log line with object, old and new values")
async def test_each_write_is_one_line(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    manifest = repository_service(ctx.owner)
    name = objects.name(manifest)
    with capture_logs() as lines:
        await ctx.claim()
        ctx.status.accept("Initializing", "v1")
        await ctx.persist()
        ctx.status.waiting("a")
        await ctx.persist()
        await ctx.ensure(SERVICES, manifest)
        await ctx.ensure(SERVICES, manifest)
        await ctx.mark(SERVICES, name, {"labels": {"a": "b"}}, namespace=PLACE, event="marked")
        stored = await cluster.client.get(SERVICES, name, namespace=PLACE)
        for _ in range(2):
            await ctx.remove(SERVICES, name, namespace=PLACE, uid=objects.uid(stored))
        await ctx.remove_all(JOBS, namespace=PLACE)
        await ctx.mark(NODES, "none", {"labels": {"a": "b"}})
        await ctx.ensure_unread(SECRETS, {"metadata": {"name": "s", "namespace": PLACE}, "data": {"a": "Yg=="}})
    assert [(line["event"], line.get("object")) for line in lines] == [
        ("object patched", "up"),
        ("phase changed", None),
        ("status patched", None),
        ("object created", f"{PLACE}/{name}"),
        ("marked", f"{PLACE}/{name}"),
        ("object removed", f"{PLACE}/{name}"),
        ("object not found, not removed", name),
        ("objects removed", None),
        ("object not found, metadata not set", "none"),
        ("object created", f"{PLACE}/s"),
    ]
    assert "Yg==" not in str(lines)


@pytest.mark.rule("pipeline: a created Job, Plan or Deployment is logged with what runs, where and for whom")
@pytest.mark.parametrize(
    ("resource", "manifest", "code"),
    [
        pytest.param(
            JOBS,
            node_job(OWNER, JobSettings(image=IMAGE, service_account="worker"), node="n1", job_type=JobType.PRE_DRAIN),
            {"node": "n1", "image": "r/t:v1-x", "service_account": "worker", "privileged": "yes"},
            id="a Job of a node",
        ),
        pytest.param(
            JOBS,
            restore_job(OWNER, JobSettings(image=PINNED, service_account="worker"), node="n1"),
            {"node": "n1", "image": str(PINNED), "service_account": "worker", "privileged": "no"},
            id="a Job without privileges",
        ),
        pytest.param(
            JOBS,
            cluster_upgrade_job(OWNER, JobSettings(image=IMAGE, service_account="worker")),
            {"node": "any", "image": "r/t:v1-x", "service_account": "worker", "privileged": "no"},
            id="a Job without a node",
        ),
        pytest.param(
            SUC_PLANS,
            image_preload_plan(OWNER, PlanSettings(image=IMAGE, service_account="planner"), concurrency=1),
            {**OF_A_PLAN, "image": "r/t:v1-x"},
            id="a Plan",
        ),
        pytest.param(
            SUC_PLANS,
            image_preload_plan(OWNER, PlanSettings(image=PINNED, service_account="planner"), concurrency=1),
            {**OF_A_PLAN, "image": str(PINNED)},
            id="a Plan with a digest",
        ),
        pytest.param(
            DEPLOYMENTS,
            repository_deployment(OWNER, image=IMAGE, claim="iso", replicas=2),
            {"node": "any", "image": "r/t:v1-x", "service_account": "default", "privileged": "yes"},
            id="the repository",
        ),
    ],
)
def test_created_workload_says_what_runs_for_whom(resource: Resource, manifest: Object, code: dict[str, str]) -> None:
    with capture_logs() as lines:
        created(resource, manifest, creator="alice")
    [line] = lines
    named = {"kind": resource.kind, "object": f"{objects.namespace(manifest)}/{objects.name(manifest)}"}
    assert line == {"event": "object created", "log_level": "info", **named, **code, "created_by": "alice"}


def test_created_service_runs_nothing() -> None:
    with capture_logs() as lines:
        created(SERVICES, repository_service(OWNER), creator="alice")
    assert [sorted(line) for line in lines] == [["event", "kind", "log_level", "object"]]


@pytest.mark.rule(
    "pipeline: a created Job, Plan or Deployment is logged with what runs, where and for whom",
    "pipeline: every log line of a reconcile has plan, phase and reconcile id",
)
def test_upgrade_logs_phases_and_what_each_workload_runs() -> None:
    lines = healthy_run().log
    # The finalizer is added before the plan is accepted.
    assert [line["event"] for line in lines if "plan" in line and not line.get("phase")] == ["object patched"]
    made = [line for line in lines if line["event"] == "object created"]
    phases = {line["object"].partition("/")[2]: line["phase"] for line in made}
    suffixes = ("iso", "repo", "image-preload", "cluster-upgrade", "image-cleanup")
    assert [phases[f"upgrade-{suffix}"] for suffix in suffixes] == [
        "ISODownloading",
        "RepoCreating",
        "ImagePreloading",
        "ClusterUpgrading",
        "CleaningUp",
    ]
    workloads = [line for line in made if line["kind"] in WORKLOADS]
    assert {line["kind"] for line in workloads} == WORKLOADS
    for line in workloads:
        assert (line["image"], line["created_by"]) == ("rancher/harvester-upgrade-toolkit:v1.8.0", CREATOR)
        assert line.keys() >= {"node", "service_account", "privileged"}
