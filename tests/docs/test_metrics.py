"""The table of metrics in the documentation against what a manager exports in an upgrade."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.runtime.kube_metrics import RequestMetrics
from upgrade_manager.runtime.metrics import Metrics
from webhook.metrics import WebhookMetrics

DOCUMENT = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
_ROW = re.compile(r"^\| `([a-z_]+)` \| (gauge|counter|histogram) \| ([^|]*)\|", re.MULTILINE)

Families = dict[str, tuple[str, frozenset[str]]]


def documented() -> Families:
    return {name: (kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in _ROW.findall(DOCUMENT)}


def exported(metrics: Metrics) -> Families:
    return {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels) - {"le"},
        )
        for family in metrics.registry.collect()
    }


@pytest.mark.rule("metrics: every metric is documented with its type and its labels")
async def test_each_row_is_exported_with_its_type_and_labels() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with replace(stage.life(), options=RunOptions(leader_elect=True)) as life:
            # Those that need sockets.
            WebhookMetrics(life.metrics, checks=["nodes"])
            RequestMetrics(life.metrics).on_response("GET", "10.53.0.1:443", "200", 0.1)
            await stage.create_plan()
            await stage.until_node("PreDraining")
            life.metrics.refresh()
            assert exported(life.metrics) == documented()
