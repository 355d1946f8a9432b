from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

import aiohttp
import pytest
import yaml

from hack.cluster.__main__ import main
from hack.control_plane.control_plane import API_SERVER
from tests.support import tiers
from tests.support.programs.processes import becomes_true, program_of, started_with
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.resources import ENDPOINT_SLICES
from upgrade_manager.preflight.certificate_probe import TlsProbe

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--api", "real"], "or unset KUBEBUILDER_ASSETS and run `make real-kube`", id="no programs"),
        pytest.param(["--scenario", "nodes-7"], "no scenario 'nodes-7'", id="an unknown scenario"),
    ],
)
def test_missing_prerequisite_is_one_line_and_exit_code_1(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert main([*arguments, "--kubeconfig", str(tmp_path / "config")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "config").exists()


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hack.cluster",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def _ready(path: Path, *arguments: str) -> tuple[asyncio.subprocess.Process, str]:
    """Start the program for one node; return it and its line when it is ready."""
    process = await _start("--kubeconfig", str(path), "--scenario", "one-node", *arguments)
    assert process.stdout is not None
    async with asyncio.timeout(100):
        line = (await process.stdout.readline()).decode()
    assert line.startswith("ready ")
    return process, line


@pytest.mark.full
@pytest.mark.real_loop
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.thin
async def test_program_reports_ready_and_ends_on_a_signal(tmp_path: Path, number: int) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    process, line = await _ready(path, "--instant")
    assert names(tmp_path) == ["config"]
    fields = dict(part.split("=", 1) for part in line.split()[1:])
    assert fields["kubeconfig"] == str(path)
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == fields["server"]
    assert path.stat().st_mode & 0o077 == 0
    await _check_repository(fields["repo-url"])
    process.send_signal(number)
    async with asyncio.timeout(50):
        output, error = await process.communicate()
    assert (process.returncode, output, error) == (0, b"", b"")


@pytest.mark.full
@pytest.mark.servers
@pytest.mark.real_loop
async def test_api_server_endpoint_and_kubelets_are_reachable(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "config"
    process, _ = await _ready(path, "--instant", "--api", tiers.server_of(request.node))
    connection = await load_config(environ={}, now=lambda: datetime.now(UTC), kubeconfig=str(path))
    async with HttpTransport(connection) as transport:
        client = Client(transport, user_agent="test", random=Random(1))
        piece = await client.get(ENDPOINT_SLICES, "kubernetes", namespace="default")
        for name, path_behind in (("fs", "stats/summary"), ("imageGCHighThresholdPercent", "configz")):
            head = await client.read_path(f"/api/v1/nodes/node-0/proxy/{path_behind}", limit=10_000)
            assert f'"{name}"' in head.decode()
    (address,), (port,) = piece["endpoints"][0]["addresses"], piece["ports"]
    (shown,) = await TlsProbe().read(address, port["port"])
    process.terminate()
    await process.communicate()
    assert (piece["addressType"], address) == ("FQDN", "kubernetes.localhost")
    assert shown.not_after - datetime.now(UTC) > timedelta(days=7)


async def _check_repository(url: str) -> None:
    """Check that the ISO is served; without a plan, the repository does not run."""
    assert url.endswith("/{plan}")
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(url.replace("{plan}", "demo") + "/harvester-iso/harvester-release.yaml")
        base = url.removesuffix("/{plan}")
        async with session.head(f"{base}/iso/harvester-v1.8.0-amd64.iso") as response:
            assert response.status == 200
            assert int(response.headers["Content-Length"]) > 0


@pytest.mark.full
@pytest.mark.servers
@pytest.mark.real_loop
async def test_killed_program_leaves_no_process_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    config = tmp_path / "config"
    process, _ = await _ready(config, "--instant", "--api", tiers.server_of(request.node))
    process.kill()
    await process.communicate()
    assert await asyncio.to_thread(
        becomes_true, lambda: started_with(str(tmp_path)) == [] and names(tmp_path) == ["config"]
    )


@pytest.mark.assets
@pytest.mark.real_loop
@pytest.mark.timeout(180)
async def test_program_ends_when_its_api_server_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process, _ = await _ready(tmp_path / "config", "--api", "real")
    for pid in started_with(str(tmp_path)):
        if program_of(pid) == API_SERVER:
            os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        _, error = await process.communicate()
    lines = [line for line in error.decode().splitlines() if "list or watch failed" not in line]
    assert process.returncode == 1
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: kube-apiserver has ended (signal 9)")
