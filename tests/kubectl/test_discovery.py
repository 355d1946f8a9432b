"""kubectl api-resources, api-versions, explain and version."""

from __future__ import annotations

import pytest

from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


@pytest.mark.rule("api: group and version are management.harvesterhci.io/v1beta1", "api: UpgradePlan is cluster-scoped")
async def test_kinds_are_listed_with_their_short_names(cluster: Cluster) -> None:
    rows = (await cluster.succeed("api-resources", "--api-group=management.harvesterhci.io")).rows
    assert rows == [
        ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"],
        ["upgradeplans", "up,ups", "management.harvesterhci.io/v1beta1", "false", "UpgradePlan"],
    ]


async def test_verbs_and_versions_are_listed(cluster: Cluster) -> None:
    outcome = await cluster.succeed("api-resources", "--api-group=batch", "-o", "wide", "--no-headers")
    verbs = "create,delete,deletecollection,get,list,patch,update,watch"
    assert ["jobs", "batch/v1", "true", "Job", verbs, "all"] in outcome.rows
    lines = (await cluster.succeed("api-versions")).lines
    assert {"v1", "apps/v1", "batch/v1", "management.harvesterhci.io/v1beta1"} <= set(lines)
    assert lines == sorted(lines)


@pytest.mark.rule("api: the kind is UpgradePlan, with the names upgradeplans, up and ups")
async def test_plans_are_found_by_every_name(cluster: Cluster) -> None:
    await cluster.plan()
    for name in ("upgradeplans", "upgradeplan", "up", "ups", "UpgradePlan"):
        outcome = await cluster.succeed("get", name, "-o", "name")
        assert outcome.out == "upgradeplan.management.harvesterhci.io/demo\n"


@pytest.mark.rule("api: kubectl explain describes every field")
async def test_explain_describes_every_field(cluster: Cluster) -> None:
    async def explained(*arguments: str) -> str:
        return (await cluster.succeed("explain", *arguments)).out

    text = await explained("upgradeplans.spec.nodeUpgradeOption.pauseNodes")
    assert "FIELD: pauseNodes <[]string>" in text
    assert "Names of nodes to pause before their upgrade." in " ".join(text.split())
    for part in ("spec", "status"):
        assert "<no description>" not in await explained(f"upgradeplans.{part}")
    lines = (await explained("upgradeplans", "--recursive")).splitlines()
    assert lines[0].split() == ["GROUP:", "management.harvesterhci.io"]
    fields = {"      pauseNodes\t<[]string>", "    conditions\t<[]Object>", "  metadata\t<ObjectMeta>"}
    assert fields <= {*lines}
    assert "KIND:       Job" in (await explained("jobs")).splitlines()
