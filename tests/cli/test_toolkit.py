"""Commands as processes: their environment, exit status and termination message."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.prepare import iso
from upgrade_manager.api.checksums import read_checksums
from upgrade_manager.api.survey import decode
from upgrade_manager.cli.options import parse_options
from upgrade_manager.cli.toolkit_options import ToolkitOptions

ROOT = Path(__file__).parents[2]
PLAN, POD = {"HARVESTER_UPGRADEPLAN_NAME": "demo"}, {"HARVESTER_UPGRADE_POD_NAME": "demo-post-drain-x7k2p"}
ON_A_NODE = PLAN | {"HARVESTER_UPGRADE_NODE_NAME": "node-0"}
INVALID_CHECKSUMS = "node prepare: the checksums of the ISO's files are invalid: "
DETECTOR = "vm-live-migrate-detector"
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


@pytest.mark.parametrize(
    ("line", "environ", "options"),
    [
        ("node survey", PLAN, {"plan": "demo"}),
        ("node survey", ON_A_NODE, {"plan": "demo", "node": "node-0"}),
        ("node prepare", PLAN, {"plan": "demo"}),
        ("node prepare", PLAN | {"HARVESTER_UPGRADE_CHECKSUMS": "{}"}, {"plan": "demo", "checksums": "{}"}),
        ("node prepare", PLAN | {"HARVESTER_UPGRADEPLAN_UID": "u-1"}, {"plan": "demo", "plan_uid": "u-1"}),
        ("node checksums", PLAN | {"UPGRADE_ISO_DIR": "/iso"}, {"plan": "demo", "iso_dir": "/iso"}),
        ("node pre-drain", ON_A_NODE | {"HOST_DIR": "/a"}, {"plan": "demo", "node": "node-0", "host_dir": "/a"}),
        ("node post-drain", ON_A_NODE | POD, {"plan": "demo", "node": "node-0", "pod": "demo-post-drain-x7k2p"}),
        ("cluster-upgrade", PLAN | {"UPGRADE_REPO_URL": "http://x:80"}, {"plan": "demo", "repo_url": "http://x:80"}),
        (f"{DETECTOR} node-1 --shutdown --upgrade demo", {}, {"plan": "demo", "node": "node-1", "shutdown": True}),
        ("restore-vm --node node-1 --upgrade demo", {}, {"plan": "demo", "node": "node-1"}),
        ("version-guard demo", {}, {"plan": "demo"}),
        ("image-cleanup", {}, {}),
    ],
)
def test_arguments_and_environment(line: str, environ: dict[str, str], options: dict[str, Any]) -> None:
    command = " ".join(line.split()[: 2 if line.startswith("node ") else 1])
    assert parse_options(line.split(), environ) == ToolkitOptions(command=command, **options)


@pytest.mark.parametrize(
    ("line", "environ", "missing"),
    [
        ("node pre-drain", PLAN, "HARVESTER_UPGRADE_NODE_NAME"),
        ("node single-node-upgrade", ON_A_NODE, "HARVESTER_UPGRADE_POD_NAME"),
    ],
)
def test_missing_variable_is_a_usage_error(
    line: str, environ: dict[str, str], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_options(line.split(), environ)
    assert raised.value.code == 2
    assert f"environment variable {missing} is not set" in capsys.readouterr().err


async def _unanswering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read until the client closes the connection."""
    await reader.read()
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def _command(
    folder: Path, *arguments: str, server: str, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG.format(server=server))
    pod = folder / "pod"
    pod.mkdir()
    variables |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(pod), "TMPDIR": str(pod)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "upgrade_manager", *arguments, f"--kubeconfig={kubeconfig}"),
        cwd=pod,
        env=variables | {"TERMINATION_LOG": str(folder / "message")},
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.real_loop
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.full
async def test_stopped_command_is_not_complete_and_leaves_no_file(tmp_path: Path, number: signal.Signals) -> None:
    server = await asyncio.start_server(_unanswering, "127.0.0.1")
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with _command(tmp_path, "version-guard", "demo", server=url) as process:
            assert process.stderr is not None
            line = await process.stderr.readline()
            assert b"step started" in line
            (folder,) = (tmp_path / "pod").iterdir()
            assert folder.name.startswith("upgrade-toolkit-")
            process.send_signal(number)
            await process.communicate()
            assert process.returncode == 143
    assert list((tmp_path / "pod").iterdir()) == []
    assert (tmp_path / "message").read_text() == "version-guard: stopped by a signal\n"


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("line", "server", "variables", "start"),
    [
        ("version-guard demo", "ftp://nowhere", {}, "version-guard: "),
        ("node prepare", "", PLAN | {"HARVESTER_UPGRADE_CHECKSUMS": "{"}, INVALID_CHECKSUMS),
    ],
    ids=["no server", "invalid checksums"],
)
async def test_failure_is_the_termination_message(
    tmp_path: Path, line: str, server: str, variables: dict[str, str], start: str
) -> None:
    async with _command(tmp_path, *line.split(), server=server or await _unused(), **variables) as process:
        _, errors = await process.communicate()
        assert process.returncode == 1
    message = (tmp_path / "message").read_text()
    assert message.startswith(start)
    assert errors.decode().endswith(message)


async def _unused() -> str:
    """Return a URL where nothing listens."""
    server = await asyncio.start_server(_unanswering, "127.0.0.1")
    async with server:
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.real_loop
async def test_checksums_are_the_termination_message(tmp_path: Path) -> None:
    """Also while the API server, which shows the progress, does not respond."""
    files = iso() | {"/rootfs.squashfs": b"system"}
    for name, content in files.items():
        (tmp_path / f"iso{name}").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"iso{name}").write_bytes(content)
    variables = {"HARVESTER_UPGRADEPLAN_NAME": "demo", "UPGRADE_ISO_DIR": str(tmp_path / "iso")}
    async with _command(tmp_path, "node", "checksums", server=await _unused(), **variables) as process:
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
    found = read_checksums((tmp_path / "message").read_text())
    assert found == {path: sha256(content).hexdigest() for path, content in files.items()}


@pytest.mark.real_loop
@pytest.mark.rule("workloads: a survey succeeds whatever it finds, because a failed Job would be repeated without end")
@pytest.mark.parametrize(
    ("server", "variables", "check"),
    [
        pytest.param("ftp://nowhere", {}, "survey", id="no server"),
        pytest.param("", {"HARVESTER_UPGRADE_CHECKSUMS": "{"}, "survey", id="invalid checksums"),
        pytest.param("", {}, "boot-slot", id="host without a boot image"),
        pytest.param("", {"HOST_DIR": "/nonexistent"}, "boot-slot", id="no host"),
    ],
)
@pytest.mark.full
async def test_survey_succeeds_always(tmp_path: Path, server: str, variables: dict[str, str], check: str) -> None:
    (tmp_path / "host").mkdir()
    unused = await _unused()
    variables = {**ON_A_NODE, "HOST_DIR": str(tmp_path / "host"), "UPGRADE_REPO_URL": unused} | variables
    async with _command(tmp_path, "node", "survey", server=server or unused, **variables) as process:
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
    report = decode((tmp_path / "message").read_text())
    assert report is not None
    assert report.node == "node-0"
    assert check in {finding.check for finding in report.findings}
