from __future__ import annotations

from pathlib import Path

import pytest

from hack.demo.options import parse


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        ([], "scenario", "three-nodes"),
        (["--image"], "image", "harvester-v1.8.0"),
        (["--image", "ns/mine"], "image", "ns/mine"),
        (["--time-scale", "0.5"], "time_scale", 0.5),
        (["--instant"], "instant", True),
        (["--plan-file", "up.yaml"], "plan_file", Path("up.yaml")),
        (["--scenario", "nodes-100"], "scenario", "nodes-100"),
    ],
)
def test_options_are_parsed(arguments: list[str], field: str, value: object) -> None:
    assert getattr(parse(arguments), field) == value


@pytest.mark.parametrize(
    "arguments", [["--time-scale", "0"], ["--instant", "--time-scale", "2"], ["--image", "x", "--plan-file", "y"]]
)
def test_invalid_command_line_exits_with_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(arguments)
    assert caught.value.code == 2
