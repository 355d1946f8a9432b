from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack import scenario

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", scenario.names())
def test_every_named_scenario_loads(name: str) -> None:
    loaded = scenario.load(name)
    assert loaded.name == name
    assert loaded.description
    assert loaded.software.harvester == "v1.7.1"
    assert loaded.release.os_image == "Harvester v1.8.0"


def test_documented_scenarios_exist() -> None:
    promised = {"one-node", "two-nodes", "three-nodes", "witness", "nodes-16", "nodes-100", "nodes-1000"}
    assert set(scenario.names()) == promised


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("nodes: {count: zero}", "nodes.count", id="a wrong type names its place"),
        pytest.param("nodez: {}", "nodez", id="a misspelt key is refused"),
        pytest.param("jitter: 2", "jitter", id="a number out of its range"),
        pytest.param("nodes: [", "cannot be read", id="no YAML"),
        pytest.param("- a", "not a mapping", id="a list"),
    ],
)
def test_invalid_file_gives_a_one_line_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(scenario.ScenarioError) as caught:
        scenario.load(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
