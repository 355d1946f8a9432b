from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hack.bench.__main__ import main
from hack.bench.catalogue import BENCHMARKS
from hack.bench.figure import Figure, number

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("value", "aim", "at_most", "met"),
    [
        pytest.param(1, 2, True, True, id="below an upper bound"),
        pytest.param(2, 2, True, True, id="at the bound"),
        pytest.param(3, 2, True, False, id="above an upper bound"),
        pytest.param(3, 2, False, True, id="above a lower bound"),
        pytest.param(1, 2, False, False, id="below a lower bound"),
    ],
)
def test_a_figure_knows_whether_it_is_met(value: float, aim: float, *, at_most: bool, met: bool) -> None:
    figure = Figure(name="x", value=value, unit="s", aim=aim, at_most=at_most)
    assert figure.met is met
    assert figure.line().endswith("ok" if met else "MISS")
    assert json.loads(json.dumps(figure.record()))["met"] is met


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0, "0", id="zero"),
        pytest.param(0.012345, "0.0123", id="small"),
        pytest.param(12.345, "12.3", id="middling"),
        pytest.param(15432.1, "15,432", id="large"),
    ],
)
def test_numbers_are_written_with_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_an_unknown_benchmark_is_named_and_nothing_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sprint"]) == 2
    assert f"no such benchmark: sprint; there are {', '.join(BENCHMARKS)}" in capsys.readouterr().err


def test_what_needs_a_real_control_plane_says_so_where_there_is_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert main(["real"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("real: not measured: ")
    assert len(captured.err.splitlines()) == 1
