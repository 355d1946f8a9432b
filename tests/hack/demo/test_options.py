"""The demo's command line."""

from __future__ import annotations

import pytest

from hack.demo.options import accelerated, parse


@pytest.mark.parametrize(
    ("arguments", "breaks"),
    [
        ([], ()),
        (["--break", "cordoned-node"], ("cordoned-node",)),
        (["--break=single-replica,degraded-volume,single-replica"], ("single-replica", "degraded-volume")),
    ],
)
def test_breaks_are_parsed(arguments: list[str], breaks: tuple[str, ...]) -> None:
    assert parse(arguments).breaks == breaks


@pytest.mark.parametrize("text", ["unknown", "cordoned-node,unknown", "cordoned-node,", ""])
def test_unknown_break_is_a_usage_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse(["--break", text])
    assert exit_.value.code == 2
    assert "names are degraded-volume, cordoned-node, single-replica" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "rate"),
    [
        ([], 4),
        (["--break", "cordoned-node"], 4),
        (["--break", "pdb"], 12),
        (["--api", "real"], 1),
        (["--api", "real", "--break", "pdb"], 1),
    ],
)
def test_clock_is_as_fast_as_the_breaks_need(arguments: list[str], rate: int) -> None:
    assert accelerated(parse(arguments)).time.rate == rate
