"""The command as users and Pods start it."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.cluster.served import kubeconfig_of
from tests.support.programs.process_result import ProcessResult
from upgrade_manager import __version__

#: No program listens on port 1, which is reserved.
UNREACHABLE = "https://127.0.0.1:1"
VALID = kubeconfig_of(UNREACHABLE)


def python(home: Path, *arguments: str, **environ: str) -> ProcessResult:
    """Run Python in an empty home directory outside a cluster."""
    done = subprocess.run(  # noqa: S603  # the command under test
        [sys.executable, *arguments],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    return ProcessResult(done.returncode, done.stdout, done.stderr)


def command(home: Path, *arguments: str, **environ: str) -> ProcessResult:
    return python(home, "-m", "upgrade_manager", *arguments, **environ)


#: Runs the command, and prints which of the large libraries it has imported.
LIGHT = """
import sys
sys.argv = ["upgrade-manager", *{arguments}]
from upgrade_manager.cli.main import main
try:
    main()
finally:
    names = {{"aiohttp", "pydantic", "kubernetes_asyncio", "yaml", "prometheus_client", "rich.console"}}
    sys.stderr.write(f"loaded: {{sorted(names & sys.modules.keys())}}")
"""


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("--version", f"upgrade-manager {__version__}\n"),
        ("--help", "usage: upgrade-manager"),
        ("run --help", "usage: upgrade-manager"),
        ("run --typo", ""),
        ("preflight -h", "usage: upgrade-manager preflight"),
        ("status -h", "usage: upgrade-manager status"),
    ],
)
def test_help_and_usage_errors_import_little(tmp_path: Path, line: str, start: str) -> None:
    result = python(tmp_path, "-c", LIGHT.format(arguments=line.split()))
    assert result.code == (0 if start else 2)
    assert result.out.startswith(start)
    assert result.err.rpartition("loaded: ")[2] == "[]"
    assert result.err.startswith("loaded: ") is bool(start)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.thin
def test_signal_before_the_first_response_stops_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (tmp_path / "config").write_text(kubeconfig_of(f"https://127.0.0.1:{silent.getsockname()[1]}"))
        command = [sys.executable, "-m", "upgrade_manager", "run", f"--kubeconfig={tmp_path / 'config'}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  # the command under test
            connection, _ = silent.accept()
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            connection.close()
    assert (process.returncode, out, err.count("\n")) == (0, "", 1)
    assert '"signal received"' in err


@pytest.mark.parametrize(("line", "message"), [("", "COMMAND"), ("status up/demo", "up/demo")])
def test_usage_error_is_status_2_and_one_line(tmp_path: Path, line: str, message: str) -> None:
    result = command(tmp_path, *line.split())
    assert result.code == 2
    assert message in result.line


NO_CERTIFICATE = VALID.replace("insecure-skip-tls-verify: true", "certificate-authority: /x")


@pytest.mark.parametrize("content", [kubeconfig_of("nonsense"), NO_CERTIFICATE], ids=["no URL", "no certificate"])
@pytest.mark.thin
def test_unusable_kubeconfig_is_status_1_and_one_line(tmp_path: Path, content: str) -> None:
    """tests/kube/test_kubeconfig.py has more of them."""
    file = tmp_path / "config"
    file.write_text(content)
    result = command(tmp_path, "run", f"--kubeconfig={file}")
    assert result.code == 1
    assert result.line.startswith("upgrade-manager: cannot start: ")
    assert "a-secret-token" not in result.err


def _health(address: str, log: Iterable[str]) -> int:
    """Return the status of /healthz, asked again after each further line while the server is not up yet."""
    for _ in log:
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(f"http://{address}/healthz") as live:
            return int(live.status)
    return 0


def test_unreachable_server_is_awaited_behind_readiness(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(VALID)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "upgrade_manager", "run", f"--kubeconfig={tmp_path / 'config'}"]
    command += ["--metrics-bind-address=0", "--webhook-bind-address=0", f"--health-probe-bind-address={address}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  # the command under test
        assert process.stderr is not None
        lines = [next(line for line in process.stderr if "not available; retrying" in line) for _ in range(2)]
        assert _health(address, process.stderr) == 200
        with pytest.raises(urllib.error.HTTPError, match="500"):
            urllib.request.urlopen(f"http://{address}/readyz")
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert (process.returncode, UNREACHABLE in lines[0]) == (0, True)
    assert "Traceback" not in err


POD = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        pytest.param([], {}, "kubeconfig", id="without a cluster"),
        pytest.param(["--kubeconfig=/missing.yaml"], {}, "/missing.yaml", id="a missing kubeconfig by flag"),
        pytest.param([], {"KUBECONFIG": "/missing.yaml"}, "/missing.yaml", id="a missing kubeconfig by environment"),
        pytest.param([], POD, "", id="without credentials"),
    ],
)
@pytest.mark.thin
def test_missing_configuration_is_status_1_and_one_line(
    tmp_path: Path, flags: list[str], environ: dict[str, str], message: str
) -> None:
    result = command(tmp_path, "run", *flags, **environ)
    assert result.code == 1
    assert message in result.line.lower()


@pytest.mark.parametrize("server", ["metrics", "health-probe"])
@pytest.mark.thin
def test_taken_port_is_status_1_and_named_by_its_flag(tmp_path: Path, server: str) -> None:
    (tmp_path / "config").write_text(VALID)
    others = [f"--{name}-bind-address=0" for name in ("metrics", "health-probe", "webhook") if name != server]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flag, address = f"--{server}-bind-address", f"127.0.0.1:{taken.getsockname()[1]}"
        result = command(tmp_path, "run", f"--kubeconfig={tmp_path / 'config'}", f"{flag}={address}", *others)
    assert result.code == 1
    assert result.err.splitlines()[-1] == f"upgrade-manager: cannot start: {flag} {address} is in use"
    assert "Traceback" not in result.err
