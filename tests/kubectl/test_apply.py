"""kubectl apply, create, diff and replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.kubectl import manifest

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


async def test_apply_creates_changes_or_keeps_a_plan(cluster: Cluster) -> None:
    plan = manifest()
    created = await cluster.succeed("apply", "-f", "-", stdin=plan)
    assert created.out == "upgradeplan.management.harvesterhci.io/demo created\n"
    plan["spec"]["force"] = True
    changed = await cluster.succeed("apply", "-f", "-", stdin=plan)
    assert changed.out == "upgradeplan.management.harvesterhci.io/demo configured\n"
    again = await cluster.succeed("apply", "-f", "-", stdin=plan)
    assert again.out == "upgradeplan.management.harvesterhci.io/demo unchanged\n"
    stored = (await cluster.succeed("get", "up", "demo", "-o", "json")).json
    assert stored["spec"] == {"version": "v1.8.0", "force": True}
    assert stored["metadata"]["generation"] == 2


async def test_apply_removes_fields_dropped_from_the_manifest(cluster: Cluster) -> None:
    await cluster.succeed("apply", "-f", "-", stdin=manifest(version="v1.8.0", restoreVM=True))
    await cluster.succeed("apply", "-f", "-", stdin=manifest(version="v1.8.0"))
    assert (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec}")).json == {"version": "v1.8.0"}


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


async def test_server_side_dry_run_stores_nothing(cluster: Cluster) -> None:
    outcome = await cluster.succeed("apply", "--dry-run=server", "-f", "-", stdin=manifest())
    assert outcome.out == "upgradeplan.management.harvesterhci.io/demo created (server dry run)\n"
    assert (await cluster.succeed("get", "up", "-o", "name")).out == ""


async def test_diff_shows_a_changed_field(cluster: Cluster) -> None:
    await cluster.succeed("apply", "-f", "-", stdin=manifest())
    outcome = await cluster.kubectl("diff", "-f", "-", stdin=manifest(version="v1.8.0", force=True))
    assert outcome.code == 1
    assert "+  force: true" in outcome.lines


async def test_create_generates_a_name(cluster: Cluster) -> None:
    plan = manifest()
    plan["metadata"] = {"generateName": "hvst-upgrade-"}
    outcome = await cluster.succeed("create", "-f", "-", stdin=plan)
    kind, _, rest = outcome.out.partition("/")
    assert kind == "upgradeplan.management.harvesterhci.io"
    assert rest.startswith("hvst-upgrade-")
    assert len(rest.split()[0]) == len("hvst-upgrade-") + 5


async def test_replace_accepts_the_object_as_read(cluster: Cluster) -> None:
    plan = await cluster.plan()
    plan["spec"]["restoreVM"] = True
    outcome = await cluster.succeed("replace", "-f", "-", stdin=plan)
    assert outcome.out == "upgradeplan.management.harvesterhci.io/demo replaced\n"


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
