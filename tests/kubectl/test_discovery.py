"""kubectl api-resources, api-versions, explain and version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


@pytest.mark.rule("api: group and version are management.harvesterhci.io/v1beta1", "api: UpgradePlan is cluster-scoped")
async def test_kinds_are_listed_with_their_short_names(cluster: Cluster) -> None:
    rows = (await cluster.succeed("api-resources", "--api-group=management.harvesterhci.io")).rows
    assert rows == [
        ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"],
        ["upgradeplans", "up,ups", "management.harvesterhci.io/v1beta1", "false", "UpgradePlan"],
    ]


async def test_kinds_are_listed_with_their_verbs(cluster: Cluster) -> None:
    outcome = await cluster.succeed("api-resources", "--api-group=batch", "-o", "wide", "--no-headers")
    verbs = "create,delete,deletecollection,get,list,patch,update,watch"
    assert ["jobs", "batch/v1", "true", "Job", verbs, "all"] in outcome.rows


async def test_versions_are_listed(cluster: Cluster) -> None:
    lines = (await cluster.succeed("api-versions")).lines
    assert {"v1", "apps/v1", "batch/v1", "management.harvesterhci.io/v1beta1"} <= set(lines)
    assert lines == sorted(lines)


@pytest.mark.rule("api: the kind is UpgradePlan, with the names upgradeplans, up and ups")
@pytest.mark.parametrize("name", ["upgradeplans", "upgradeplan", "up", "ups", "UpgradePlan"])
async def test_plans_are_found_by_every_name(cluster: Cluster, name: str) -> None:
    await cluster.plan()
    outcome = await cluster.succeed("get", name, "-o", "name")
    assert outcome.out == "upgradeplan.management.harvesterhci.io/demo\n"


@pytest.mark.rule("api: kubectl explain describes every field")
async def test_explain_shows_a_field(cluster: Cluster) -> None:
    text = (await cluster.succeed("explain", "upgradeplans.spec.nodeUpgradeOption.pauseNodes")).out
    assert "FIELD: pauseNodes <[]string>" in text
    assert "Names of nodes to pause before their upgrade." in " ".join(text.split())


@pytest.mark.rule("api: kubectl explain describes every field")
async def test_every_field_of_spec_and_status_is_described(cluster: Cluster) -> None:
    for part in ("spec", "status"):
        text = (await cluster.succeed("explain", f"upgradeplans.{part}")).out
        assert "<no description>" not in text


@pytest.mark.rule("api: kubectl explain describes every field")
async def test_explain_shows_all_fields(cluster: Cluster) -> None:
    lines = (await cluster.succeed("explain", "upgradeplans", "--recursive")).lines
    assert lines[0].split() == ["GROUP:", "management.harvesterhci.io"]
    assert "      pauseNodes\t<[]string>" in lines
    assert "    conditions\t<[]Object>" in lines
    assert "  metadata\t<ObjectMeta>" in lines


async def test_explain_shows_a_built_in_kind(cluster: Cluster) -> None:
    assert "KIND:       Job" in (await cluster.succeed("explain", "jobs")).lines
