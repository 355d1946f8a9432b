from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hack.bench.__main__ import main
from hack.bench.catalogue import BENCHMARKS, Figure, load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_loaded(name: str) -> None:
    assert callable(load(name))


@pytest.mark.full
def test_figures_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["idle", "--json"]) == 0
    writes, requests = json.loads(capsys.readouterr().out)
    assert (writes["value"], writes["met"], requests["unit"], requests["met"]) == (0, True, "/min", True)


@pytest.mark.parametrize(
    ("value", "target", "at_most", "met"),
    [
        pytest.param(2, 2, True, True, id="at the bound"),
        pytest.param(3, 2, True, False, id="above an upper bound"),
        pytest.param(3, 2, False, True, id="above a lower bound"),
    ],
)
def test_figure_is_compared_with_its_target(value: float, target: float, *, at_most: bool, met: bool) -> None:
    figure = Figure(name="x", value=value, unit="s", target=target, at_most=at_most)
    assert figure.met is met
    assert figure.line().endswith("ok" if met else "MISS")
    assert figure.record()["met"] is met


def test_unknown_benchmark_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["idle", "sprint"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"unknown benchmark: sprint; choose from {', '.join(BENCHMARKS)}" in captured.err


def test_benchmark_without_its_control_plane_is_skipped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert main(["real"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("real: skipped: ")
    assert len(captured.err.splitlines()) == 1
