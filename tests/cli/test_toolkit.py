"""Commands as processes: their environment, exit status and termination message."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.programs.polling import eventually
from tests.support.toolkit.prepare import iso
from upgrade_manager.api.checksums import read_checksums
from upgrade_manager.cli.options import parse_options
from upgrade_manager.cli.toolkit_options import ToolkitOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[2]
ON_A_NODE = {"HARVESTER_UPGRADEPLAN_NAME": "demo", "HARVESTER_UPGRADE_NODE_NAME": "node-0"}
REBOOTING = ON_A_NODE | {"HARVESTER_UPGRADE_POD_NAME": "demo-post-drain-x7k2p"}


@pytest.mark.parametrize(
    ("line", "environ", "options"),
    [
        pytest.param(
            "node prepare",
            {"HARVESTER_UPGRADEPLAN_NAME": "demo"},
            ToolkitOptions(command="node prepare", plan="demo"),
            id="prepare",
        ),
        pytest.param(
            "node checksums",
            {"HARVESTER_UPGRADEPLAN_NAME": "demo", "UPGRADE_ISO_DIR": "/iso"},
            ToolkitOptions(command="node checksums", plan="demo", iso_dir="/iso"),
            id="checksums",
        ),
        pytest.param(
            "node prepare",
            {"HARVESTER_UPGRADEPLAN_NAME": "demo", "HARVESTER_UPGRADE_CHECKSUMS": "{}"},
            ToolkitOptions(command="node prepare", plan="demo", checksums="{}"),
            id="prepare with checksums",
        ),
        pytest.param(
            "node pre-drain",
            ON_A_NODE | {"HOST_DIR": "/tree"},
            ToolkitOptions(command="node pre-drain", plan="demo", node="node-0", host_dir="/tree"),
            id="pre-drain",
        ),
        pytest.param(
            "node post-drain",
            REBOOTING,
            ToolkitOptions(command="node post-drain", plan="demo", node="node-0", pod="demo-post-drain-x7k2p"),
            id="post-drain",
        ),
        pytest.param(
            "cluster-upgrade",
            {"HARVESTER_UPGRADEPLAN_NAME": "demo", "UPGRADE_REPO_URL": "http://localhost:8080"},
            ToolkitOptions(command="cluster-upgrade", plan="demo", repo_url="http://localhost:8080"),
            id="cluster-upgrade",
        ),
        pytest.param(
            "vm-live-migrate-detector node-1 --shutdown --upgrade demo",
            {},
            ToolkitOptions(command="vm-live-migrate-detector", plan="demo", node="node-1", shutdown=True),
            id="detector",
        ),
        pytest.param(
            "restore-vm --node node-1 --upgrade demo",
            {},
            ToolkitOptions(command="restore-vm", plan="demo", node="node-1"),
            id="restore-vm",
        ),
        pytest.param(
            "version-guard demo", {}, ToolkitOptions(command="version-guard", plan="demo"), id="version-guard"
        ),
        pytest.param("image-cleanup", {}, ToolkitOptions(command="image-cleanup"), id="image-cleanup"),
    ],
)
def test_arguments_and_environment(line: str, environ: dict[str, str], options: ToolkitOptions) -> None:
    assert parse_options(line.split(), environ) == options


@pytest.mark.parametrize(
    ("line", "environ", "error"),
    [
        pytest.param("node", {}, "the following arguments are required: type", id="no-type"),
        pytest.param("node drain", {}, "argument type: invalid choice: 'drain'", id="unknown-type"),
        pytest.param("node prepare", {}, "environment variable HARVESTER_UPGRADEPLAN_NAME is not set", id="no-plan"),
        pytest.param(
            "node pre-drain",
            {"HARVESTER_UPGRADEPLAN_NAME": "demo"},
            "environment variable HARVESTER_UPGRADE_NODE_NAME is not set",
            id="no-node",
        ),
        pytest.param(
            "node single-node-upgrade",
            ON_A_NODE,
            "environment variable HARVESTER_UPGRADE_POD_NAME is not set",
            id="no-pod",
        ),
        pytest.param("version-guard ../x", {}, "argument PLAN: '../x' is not a valid name", id="bad-name"),
    ],
)
def test_usage_error(line: str, environ: dict[str, str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_options(line.split(), environ)
    assert raised.value.code == 2
    assert error in capsys.readouterr().err


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
    kubeconfig.write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
    )
    pod = folder / "pod"
    pod.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "upgrade_manager", *arguments, f"--kubeconfig={kubeconfig}"),
        cwd=pod,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TERMINATION_LOG": str(folder / "message"),
            "HOME": str(pod),
            "TMPDIR": str(pod),
            **variables,
        },
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
async def test_failure_is_the_termination_message(tmp_path: Path) -> None:
    async with _command(tmp_path, "version-guard", "demo", server="ftp://nowhere") as process:
        _, errors = await process.communicate()
        assert process.returncode == 1

    async def written() -> bool:
        return (tmp_path / "message").exists()

    await eventually(written)
    message = (tmp_path / "message").read_text()
    assert message.startswith("version-guard: ")
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
async def test_invalid_checksums_fail_before_anything_is_done(tmp_path: Path) -> None:
    variables = {"HARVESTER_UPGRADEPLAN_NAME": "demo", "HARVESTER_UPGRADE_CHECKSUMS": "{"}
    async with _command(tmp_path, "node", "prepare", server=await _unused(), **variables) as process:
        _, errors = await process.communicate()
        assert process.returncode == 1, errors.decode()
    message = (tmp_path / "message").read_text()
    assert message.startswith("node prepare: the checksums of the ISO's files are invalid: ")
