"""kubectl apply, create, diff and replace; typed commands send protobuf."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.cluster.kubectl import Cluster, manifest

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


NAME = "upgradeplan.management.harvesterhci.io/demo"


async def test_apply_creates_changes_or_keeps_a_plan(cluster: Cluster) -> None:
    for spec, done in (
        ({"version": "v1.8.0"}, "created"),
        ({"version": "v1.8.0", "force": True}, "configured"),
        ({"version": "v1.8.0", "force": True}, "unchanged"),
        ({"version": "v1.8.0"}, "configured"),
    ):
        assert (await cluster.succeed("apply", "-f", "-", stdin=manifest(**spec))).out == f"{NAME} {done}\n"
        assert (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec}")).json == spec
    assert (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.metadata.generation}")).out == "3"


async def test_apply_merges_lists_of_built_in_kinds_by_key(cluster: Cluster) -> None:
    containers = [{"name": "a", "image": "one"}, {"name": "b", "image": "one"}]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        },
    }
    await cluster.succeed("apply", "-f", "-", stdin=deployment)
    containers[1]["image"] = "two"
    changed = await cluster.succeed("apply", "-f", "-", stdin=deployment)
    assert changed.out == "deployment.apps/web configured\n"
    images = await cluster.succeed("get", "deploy", "web", "-o", "jsonpath={..image}")
    assert images.out == "one two"


async def test_dry_run_stores_nothing_and_diff_shows_a_change(cluster: Cluster) -> None:
    outcome = await cluster.succeed("apply", "--dry-run=server", "-f", "-", stdin=manifest())
    assert outcome.out == f"{NAME} created (server dry run)\n"
    assert (await cluster.succeed("get", "up", "-o", "name")).out == ""
    await cluster.succeed("apply", "-f", "-", stdin=manifest())
    outcome = await cluster.kubectl("diff", "-f", "-", stdin=manifest(version="v1.8.0", force=True))
    assert outcome.code == 1
    assert "+  force: true" in outcome.lines


async def test_create_generates_a_name(cluster: Cluster) -> None:
    plan = manifest()
    plan["metadata"] = {"generateName": "hvst-upgrade-"}
    name = (await cluster.succeed("create", "-f", "-", "-o", "name", stdin=plan)).out.strip()
    assert re.fullmatch(r"upgradeplan\.management\.harvesterhci\.io/hvst-upgrade-.{5}", name)


async def test_replace_accepts_the_object_as_read(cluster: Cluster) -> None:
    plan = await cluster.plan()
    plan["spec"]["restoreVM"] = True
    outcome = await cluster.succeed("replace", "-f", "-", stdin=plan)
    assert outcome.out == f"{NAME} replaced\n"


async def test_apply_creates_all_objects_of_a_list(cluster: Cluster) -> None:
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    outcome = await cluster.succeed("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": maps})
    assert outcome.lines == ["configmap/a created", "configmap/b created"]


async def test_definition_is_served_after_apply(cluster: Cluster) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    await cluster.succeed("apply", "-f", "-", stdin=definition)
    await cluster.succeed("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=10s")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    assert (await cluster.succeed("apply", "-f", "-", stdin=widget)).out == "widget.example.com/w created\n"
    assert (await cluster.succeed("get", "widgets")).rows[0] == ["NAME", "AGE"]


#: Arguments, and fields of the object.
CREATED: dict[str, dict[str, Any]] = {
    "namespace alpha": {"status": {"phase": "Active"}},
    "serviceaccount alpha": {},
    "configmap alpha --from-literal=a=é": {"data": {"a": "é"}},
    "secret generic alpha --from-literal=a=b": {"data": {"a": "Yg=="}, "type": "Opaque"},
    "quota alpha --hard=pods=0,cpu=500m": {"spec": {"hard": {"cpu": "500m", "pods": "0"}}},
    "clusterrole alpha --verb=get --resource=pods": {},
}


async def test_objects_are_created_once(cluster: Cluster) -> None:
    for arguments, expected in CREATED.items():
        created = (await cluster.succeed("create", *arguments.split(), "-o", "json")).json
        kind = arguments.partition(" ")[0]
        stored = (await cluster.succeed("get", kind, "alpha", "-o", "json")).json
        assert created["metadata"]["uid"] == stored["metadata"]["uid"]
        assert {key: stored[key] for key in expected} == expected
        if kind == "configmap":
            assert 'configmaps "alpha" already exists' in await cluster.fail("create", kind, "alpha")
        await cluster.succeed("delete", kind, "alpha")


async def test_job_is_created_in_a_dry_run(cluster: Cluster) -> None:
    arguments = ("job", "alpha", "--image=busybox:1.36", "--dry-run=server", "-o", "json", "--", "sleep", "9")
    job = (await cluster.succeed("create", *arguments)).json
    assert job["spec"]["backoffLimit"] == 6
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["containers"][0]["command"] == ["sleep", "9"]
    assert (await cluster.succeed("get", "jobs", "-o", "name")).out == ""
