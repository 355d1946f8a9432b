"""The command as people and Pods start it: what it says when it cannot begin, and how soon."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from upgrade_manager import __version__

if TYPE_CHECKING:
    from pathlib import Path

#: A port of this machine on which nobody listens: 1 is privileged and reserved.
NOBODY = "https://127.0.0.1:1"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters: [{{name: k, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {{token: a-secret-token}}}}]
"""


@dataclass(frozen=True)
class Ended:
    """How the command ended."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line that it said."""
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.strip()


def command(home: Path, *arguments: str, **environ: str) -> Ended:
    """Run it in an empty home, without a cluster around it."""
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-m", "upgrade_manager", *arguments],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_version_is_told(tmp_path: Path) -> None:
    ended = command(tmp_path, "--version")
    assert (ended.code, ended.out, ended.err) == (0, f"upgrade-manager {__version__}\n", "")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]], ids=" ".join)
def test_help_is_told(tmp_path: Path, arguments: list[str]) -> None:
    ended = command(tmp_path, *arguments)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("usage: upgrade-manager")


@pytest.mark.parametrize("arguments", [["--version"], ["run", "--help"], ["run", "--typo"]], ids=" ".join)
def test_what_they_do_not_need_is_not_loaded(arguments: list[str]) -> None:
    """They answer at once, because the slow imports come after them."""
    script = (
        "import sys\n"
        f"sys.argv = ['upgrade-manager', *{arguments!r}]\n"
        "from upgrade_manager.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'aiohttp', 'pydantic', 'kubernetes_asyncio', 'yaml', 'prometheus_client'} & sys.modules.keys()\n"
        "sys.stderr.write(f'loaded: {sorted(heavy)}')\n"
    )
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=40, check=False
    )
    assert done.stderr.rpartition("loaded: ")[2] == "[]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "COMMAND", id="no command"),
        pytest.param(["run", "--frobnicate"], "--frobnicate", id="an unknown flag"),
        pytest.param(["run", "--leader-elect=maybe"], "neither true nor false", id="a value that is none"),
    ],
)
def test_a_typing_error_is_status_2_and_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    ended = command(tmp_path, *arguments)
    assert ended.code == 2
    assert said in ended.line


class TestNoStart:
    """Status 1, one line that says what is wrong and where, and nothing secret."""

    def test_without_any_cluster(self, tmp_path: Path) -> None:
        ended = command(tmp_path, "run")
        assert ended.code == 1
        assert "kubeconfig" in ended.line.lower()

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param("", id="empty"),
            pytest.param("{", id="no YAML"),
            pytest.param("- a\n", id="a list"),
            pytest.param("apiVersion: v1\nkind: Config\n", id="no context"),
            pytest.param("current-context: c\ncontexts: []\n", id="a context that is not there"),
            pytest.param(KUBECONFIG.format(server="nonsense"), id="no address"),
            pytest.param(
                KUBECONFIG.format(server=NOBODY).replace("insecure-skip-tls-verify: true", "certificate-authority: /x"),
                id="a certificate that is not there",
            ),
            pytest.param("\x00\x01", id="no text"),
        ],
    )
    def test_with_a_broken_kubeconfig(self, tmp_path: Path, content: str) -> None:
        file = tmp_path / "broken.yaml"
        file.write_text(content)
        ended = command(tmp_path, "run", f"--kubeconfig={file}")
        assert ended.code == 1
        assert ended.line.startswith("upgrade-manager: ")
        assert "a-secret-token" not in ended.err

    @pytest.mark.parametrize("by", ["flag", "environment"])
    def test_with_a_kubeconfig_that_is_not_there(self, tmp_path: Path, by: str) -> None:
        name = str(tmp_path / "missing.yaml")
        ended = (
            command(tmp_path, "run", f"--kubeconfig={name}")
            if by == "flag"
            else command(tmp_path, "run", KUBECONFIG=name)
        )
        assert ended.code == 1
        assert "missing.yaml" in ended.line

    def test_with_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        file = tmp_path / "config"
        file.write_text(KUBECONFIG.format(server=NOBODY))
        ended = command(tmp_path, "run", f"--kubeconfig={file}")
        assert ended.code == 1
        assert NOBODY in ended.line
        assert "a-secret-token" not in ended.err

    def test_in_a_pod_whose_credentials_are_not_there(self, tmp_path: Path) -> None:
        ended = command(tmp_path, "run", KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT="1")
        assert ended.code == 1
        assert ended.line
