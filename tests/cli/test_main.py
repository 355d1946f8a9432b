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


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["--version"], f"upgrade-manager {__version__}\n"),
        (["--help"], "usage: upgrade-manager"),
        (["run", "--help"], "usage: upgrade-manager"),
    ],
)
def test_version_and_help_are_printed(tmp_path: Path, arguments: list[str], start: str) -> None:
    result = command(tmp_path, *arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(start)


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


@pytest.mark.parametrize(("arguments", "message"), [([], "COMMAND"), (["run", "--frobnicate"], "--frobnicate")])
def test_usage_error_is_status_2_and_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = command(tmp_path, *arguments)
    assert result.code == 2
    assert message in result.line


VALID = KUBECONFIG.format(server=UNREACHABLE)
KUBECONFIGS = {
    "empty": "",
    "not YAML": "{",
    "a list": "- a\n",
    "without a context": "apiVersion: v1\nkind: Config\n",
    "a missing context": "current-context: c\ncontexts: []\n",
    "an invalid URL": KUBECONFIG.format(server="nonsense"),
    "a missing certificate": VALID.replace("insecure-skip-tls-verify: true", "certificate-authority: /x"),
    "binary": "\x00\x01",
    "an unreachable server": VALID,
}


@pytest.mark.parametrize(("name", "content"), KUBECONFIGS.items(), ids=KUBECONFIGS)
def test_unusable_kubeconfig_is_status_1_and_one_line(tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    result = command(tmp_path, "run", f"--kubeconfig={file}")
    assert result.code == 1
    assert result.line.startswith("upgrade-manager: cannot start: ")
    assert (UNREACHABLE in result.line) == (name == "an unreachable server")
    assert "a-secret-token" not in result.err


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        pytest.param([], {}, "kubeconfig", id="without a cluster"),
        pytest.param(["--kubeconfig=/missing.yaml"], {}, "/missing.yaml", id="a missing kubeconfig by flag"),
        pytest.param([], {"KUBECONFIG": "/missing.yaml"}, "/missing.yaml", id="a missing kubeconfig by environment"),
        pytest.param(
            [], {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}, "", id="without credentials"
        ),
    ],
)
def test_missing_configuration_is_status_1_and_one_line(
    tmp_path: Path, flags: list[str], environ: dict[str, str], message: str
) -> None:
    result = command(tmp_path, "run", *flags, **environ)
    assert result.code == 1
    assert message in result.line.lower()
