"""The command as users and Pods start it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from upgrade_manager import __version__

if TYPE_CHECKING:
    from pathlib import Path

#: No program listens on port 1, which is reserved.
UNREACHABLE = "https://127.0.0.1:1"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters: [{{name: k, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {{token: a-secret-token}}}}]
"""


@dataclass(frozen=True)
class Result:
    """The exit status and the output of the command."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line of output, on stderr."""
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.strip()


def command(home: Path, *arguments: str, **environ: str) -> Result:
    """Run the command in an empty home directory outside a cluster."""
    done = subprocess.run(  # noqa: S603  # the command under test
        [sys.executable, "-m", "upgrade_manager", *arguments],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_version_is_printed(tmp_path: Path) -> None:
    result = command(tmp_path, "--version")
    assert (result.code, result.out, result.err) == (0, f"upgrade-manager {__version__}\n", "")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]], ids=" ".join)
def test_help_is_printed(tmp_path: Path, arguments: list[str]) -> None:
    result = command(tmp_path, *arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("usage: upgrade-manager")


@pytest.mark.parametrize("arguments", [["--version"], ["run", "--help"], ["run", "--typo"]], ids=" ".join)
def test_help_and_usage_errors_import_little(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        f"sys.argv = ['upgrade-manager', *{arguments!r}]\n"
        "from upgrade_manager.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'aiohttp', 'pydantic', 'kubernetes_asyncio', 'yaml', 'prometheus_client'} & sys.modules.keys()\n"
        "sys.stderr.write(f'loaded: {sorted(heavy)}')\n"
    )
    done = subprocess.run(  # noqa: S603  # the command under test
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=40, check=False
    )
    assert done.stderr.rpartition("loaded: ")[2] == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "COMMAND", id="no command"),
        pytest.param(["run", "--frobnicate"], "--frobnicate", id="an unknown flag"),
        pytest.param(["run", "--leader-elect=maybe"], "neither true nor false", id="an invalid value"),
    ],
)
def test_a_usage_error_is_status_2_and_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = command(tmp_path, *arguments)
    assert result.code == 2
    assert message in result.line


class TestCannotStart:
    """The command exits with status 1 and one line, without secrets."""

    def test_without_a_cluster(self, tmp_path: Path) -> None:
        result = command(tmp_path, "run")
        assert result.code == 1
        assert "kubeconfig" in result.line.lower()

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param("", id="empty"),
            pytest.param("{", id="not YAML"),
            pytest.param("- a\n", id="a list"),
            pytest.param("apiVersion: v1\nkind: Config\n", id="without a context"),
            pytest.param("current-context: c\ncontexts: []\n", id="a missing context"),
            pytest.param(KUBECONFIG.format(server="nonsense"), id="an invalid URL"),
            pytest.param(
                KUBECONFIG.format(server=UNREACHABLE).replace(
                    "insecure-skip-tls-verify: true", "certificate-authority: /x"
                ),
                id="a missing certificate",
            ),
            pytest.param("\x00\x01", id="binary"),
        ],
    )
    def test_with_an_invalid_kubeconfig(self, tmp_path: Path, content: str) -> None:
        file = tmp_path / "broken.yaml"
        file.write_text(content)
        result = command(tmp_path, "run", f"--kubeconfig={file}")
        assert result.code == 1
        assert result.line.startswith("upgrade-manager: cannot start: ")
        assert "a-secret-token" not in result.err

    @pytest.mark.parametrize("by", ["flag", "environment"])
    def test_with_a_missing_kubeconfig(self, tmp_path: Path, by: str) -> None:
        name = str(tmp_path / "missing.yaml")
        result = (
            command(tmp_path, "run", f"--kubeconfig={name}")
            if by == "flag"
            else command(tmp_path, "run", KUBECONFIG=name)
        )
        assert result.code == 1
        assert "missing.yaml" in result.line

    def test_with_an_unreachable_server(self, tmp_path: Path) -> None:
        file = tmp_path / "config"
        file.write_text(KUBECONFIG.format(server=UNREACHABLE))
        result = command(tmp_path, "run", f"--kubeconfig={file}")
        assert result.code == 1
        assert UNREACHABLE in result.line
        assert "a-secret-token" not in result.err

    def test_in_a_pod_without_credentials(self, tmp_path: Path) -> None:
        result = command(tmp_path, "run", KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT="1")
        assert result.code == 1
        assert result.line
