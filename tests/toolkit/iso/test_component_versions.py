from __future__ import annotations

from typing import Any

import pytest
import yaml

from hack import scenario as scenarios
from hack.actors.repository import release_text
from upgrade_manager.toolkit.iso.component_versions import ChartVersion, Components, parse_components
from upgrade_manager.toolkit.run.errors import BadArchive

WHERE = "/harvester-release.yaml"
END = "; the ISO is corrupt or not a Harvester release"


def release(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(release_text(scenarios.load("three-nodes")))
    return document | changes


def parsed(document: dict[str, Any]) -> Components:
    return parse_components(yaml.safe_dump(document).encode(), where=WHERE)


def test_all_components_are_read() -> None:
    assert parsed(release()) == Components(
        harvester="v1.8.0",
        harvester_chart="1.8.0",
        rancher="v2.14.0",
        monitoring_chart="109.0.1+up80.9.1",
        logging_chart="109.0.0+up6.0.2",
        kubevirt="1.7.0",
        fleet=ChartVersion(chart="109.0.0+up0.15.0", app="0.15.0"),
        fleet_crd=ChartVersion(chart="109.0.0+up0.15.0", app="0.15.0"),
        rancher_webhook=ChartVersion(chart="109.0.0+up0.10.0", app="0.10.0"),
        event_router="rancher/harvester-eventrouter:v0.5.0",
    )


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"installer": 1234567}, id="installer-of-digits"),
        pytest.param({"installer": 1.2e30}, id="installer-with-exponent"),
        pytest.param({"minUpgradableVersion": ""}, id="no-minimum"),
        pytest.param({"kubevirt": "1.5.2-150700.3.5.2"}, id="free-form-kubevirt"),
        pytest.param({"monitoringChart": "107.1.0+up69.8.2-rancher.15"}, id="long-chart-version"),
        pytest.param({"later": {"key": [1]}}, id="unknown-key"),
    ],
)
def test_valid_release(changes: dict[str, Any]) -> None:
    assert parsed(release(**changes)).rancher == "v2.14.0"


def test_release_without_event_router() -> None:
    document = release()
    del document["loggingChartHarvesterEventRouter"]
    assert parsed(document).event_router == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"loggingChart": None}, "loggingChart is missing", id="null"),
        pytest.param({"kubevirt": ""}, "kubevirt is missing", id="empty"),
        pytest.param(
            {"kubevirt": 1.7}, "kubevirt is '1.7' (a number in YAML), not a valid version", id="unquoted-number"
        ),
        pytest.param({"rancher": "v2 14"}, "rancher is 'v2 14', not a valid version", id="space"),
        pytest.param({"harvesterChart": ["1.8.0"]}, "harvesterChart is a list, not a valid version", id="list"),
        pytest.param(
            {"loggingChartHarvesterEventRouter": "a image"},
            "loggingChartHarvesterEventRouter is 'a image', not a valid image",
            id="event-router",
        ),
        pytest.param(
            {"rancherDependencies": {"fleet": {"chart": "1.0.0", "app": "1.0.0"}}, "monitoringChart": None},
            "monitoringChart is missing; rancherDependencies.fleet-crd.chart is missing; "
            "rancherDependencies.fleet-crd.app is missing; rancherDependencies.rancher-webhook.chart is missing; "
            "rancherDependencies.rancher-webhook.app is missing",
            id="several",
        ),
    ],
)
def test_one_line_names_all_errors(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArchive) as error:
        parsed(release(**changes))
    assert str(error.value) == f"{WHERE}: {words}{END}"
