from __future__ import annotations

from pathlib import Path

import pytest

from hack.demo.options import parse


def test_defaults() -> None:
    options = parse([])
    assert (options.scenario, options.api, options.image, options.plan_file) == ("three-nodes", "embedded", "", None)
    assert (options.time_scale, options.instant, options.keep) == (None, False, False)


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        pytest.param(["--image"], "image", "harvester-v1.8.0", id="the scenario's image"),
        pytest.param(["--image", "ns/mine"], "image", "ns/mine", id="another image"),
        pytest.param(["--time-scale", "0.5"], "time_scale", 0.5, id="half the durations"),
        pytest.param(["--instant"], "instant", True, id="no durations"),
        pytest.param(["--plan-file", "up.yaml"], "plan_file", Path("up.yaml"), id="the user's own plan"),
        pytest.param(["--scenario", "nodes-100"], "scenario", "nodes-100", id="scenario"),
    ],
)
def test_options_are_parsed(arguments: list[str], field: str, value: object) -> None:
    assert getattr(parse(arguments), field) == value


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--time-scale", "0"], id="zero"),
        pytest.param(["--time-scale", "-1"], id="negative"),
        pytest.param(["--time-scale", "nan"], id="not a number"),
        pytest.param(["--time-scale", "fast"], id="a word"),
        pytest.param(["--instant", "--time-scale", "2"], id="two speeds"),
        pytest.param(["--image", "x", "--plan-file", "y"], id="two plans"),
        pytest.param(["--what"], id="unknown"),
    ],
)
def test_an_invalid_command_line_exits_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err
