"""The scripts of Plans on hosts, run by shells on files of a folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from upgrade_manager.resources.host_scripts import (
    AGENT,
    AGENT_FOLDER,
    HOLD_AGENT,
    RELEASE_AGENT,
    SKIP_FILE,
    SKIP_MULTUS,
    UNSKIP_MULTUS,
)

OVERRIDE = f"[Service]\nEnvironmentFile=-{AGENT_FOLDER}/10-harvester-upgrade.env\n"
HELD = {"override.conf": OVERRIDE, "10-harvester-upgrade.env": "INSTALL_RKE2_SKIP_ENABLE=true\n"}
RESTARTED = ["daemon-reload", f"restart {AGENT}", f"show --property=ActiveState --value {AGENT}"]
#: Records what systemctl is called with; the agent's state is that of a file.
SYSTEMCTL = '#!/bin/sh\necho "$*" >>{calls}\n[ "$1" != show ] || cat {state}\n[ ! -e {failing}-"$1" ]\n'
#: Ends its shell at the call of a number, as a kill does.
KILLING = '#!/bin/sh\necho . >>{count}\n[ "$(wc -l <{count})" -ne {at} ] || kill -9 $PPID\nexec {program} "$@"\n'
CHANGING = ("mkdir", "mv", "rm", "rmdir", "cat")


@pytest.fixture(params=["sh", "bash", "dash"])
def host(tmp_path: Path, request: pytest.FixtureRequest) -> Host:
    """Return a host, whose scripts run in that shell."""
    shell = shutil.which(request.param)
    if shell is None:
        pytest.skip(f"no {request.param} here")
    return Host(tmp_path, shell)


class Host:
    """The files of a host, and the programs of a container beside them."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder, self._shell = folder, shell
        self.root, self._bin = folder / "host", folder / "bin"
        for path in (self.root, self._bin):
            path.mkdir()
        self.calls_file = folder / "calls"
        (folder / "state").write_text("active\n")
        names = {"calls": self.calls_file, "state": folder / "state", "failing": folder / "failing"}
        self._program("systemctl", SYSTEMCTL.format(**names))
        (self.root / "run/systemd/system").mkdir(parents=True)

    def _program(self, name: str, text: str) -> None:
        path = self._bin / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def kill_at(self, call: int) -> None:
        """Kill the script at its program of that number; 0 for never."""
        (self.folder / "count").write_text("")
        for name in CHANGING:
            values = {"count": self.folder / "count", "at": call, "program": shutil.which(name)}
            self._program(name, KILLING.format(**values))

    def run(self, script: str) -> int:
        for folder in ("/run/systemd/", "/var/lib/"):
            script = script.replace(folder, f"{self.root}{folder}")
        # A shell replaces itself with its last command, whose parent would be this process.
        script += "exit $?\n"
        environ = {"PATH": f"{self._bin}:/usr/bin:/bin"}
        done = subprocess.run([self._shell, "-c", script], env=environ, capture_output=True, check=False, timeout=60)  # noqa: S603
        return done.returncode

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    def files(self, folder: str) -> dict[str, str]:
        path = self.root / folder.lstrip("/")
        found = path.iterdir() if path.is_dir() else ()
        return {one.name: one.read_text().replace(str(self.root), "") for one in found}


def test_agent_is_held_and_released_once(host: Host) -> None:
    for _ in range(2):
        assert host.run(HOLD_AGENT) == 0
        assert (host.files(AGENT_FOLDER), host.calls) == (HELD, RESTARTED)
    for _ in range(2):
        assert host.run(RELEASE_AGENT) == 0
        assert not (host.root / AGENT_FOLDER.lstrip("/")).exists()
        assert host.calls == RESTARTED * 2


def test_drop_ins_of_users_stay(host: Host) -> None:
    host.run(HOLD_AGENT)
    (host.root / AGENT_FOLDER.lstrip("/") / "user.conf").write_text("")
    assert host.run(RELEASE_AGENT) == 0
    assert host.files(AGENT_FOLDER) == {"user.conf": ""}


@pytest.mark.parametrize("failing", ["daemon-reload", "restart", "show"])
@pytest.mark.parametrize(("script", "left"), [(HOLD_AGENT, HELD), (RELEASE_AGENT, {})], ids=["hold", "release"])
def test_failed_restart_is_repeated(host: Host, script: str, left: dict[str, str], failing: str) -> None:
    if script == RELEASE_AGENT:
        host.run(HOLD_AGENT)
    (host.folder / "state").write_text("failed\n" if failing == "show" else "active\n")
    (host.folder / f"failing-{failing}").touch()
    assert host.run(script) != 0
    (host.folder / f"failing-{failing}").unlink()
    (host.folder / "state").write_text("active\n")
    host.calls_file.unlink()
    assert host.run(script) == 0
    assert (host.files(AGENT_FOLDER), host.calls) == (left, RESTARTED)


def test_chart_is_skipped_where_its_folder_exists(host: Host) -> None:
    folder = Path(SKIP_FILE).parent
    assert host.run(SKIP_MULTUS) == 0
    assert host.files(str(folder)) == {}
    (host.root / str(folder).lstrip("/")).mkdir(parents=True)
    for _ in range(2):
        assert host.run(SKIP_MULTUS) == 0
        assert list(host.files(str(folder))) == ["rke2-multus.yaml.skip"]
    for _ in range(2):
        assert host.run(UNSKIP_MULTUS) == 0
        assert host.files(str(folder)) == {}


def test_file_of_a_user_stays(host: Host) -> None:
    path = host.root / SKIP_FILE.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text("")
    for script in (SKIP_MULTUS, UNSKIP_MULTUS):
        assert host.run(script) == 0
        assert path.read_text() == ""


@pytest.mark.parametrize("script", [HOLD_AGENT, RELEASE_AGENT, SKIP_MULTUS, UNSKIP_MULTUS])
@pytest.mark.parametrize("call", range(1, 8))
def test_repetition_mends_what_a_kill_leaves(host: Host, script: str, call: int) -> None:
    folder = str(Path(SKIP_FILE).parent)
    (host.root / folder.lstrip("/")).mkdir(parents=True)
    before = {RELEASE_AGENT: HOLD_AGENT, UNSKIP_MULTUS: SKIP_MULTUS}.get(script)
    if before is not None:
        host.run(before)
    host.kill_at(call)
    host.run(script)
    host.kill_at(0)
    assert host.run(script) == 0
    expected = HELD if script == HOLD_AGENT else {}
    assert host.files(AGENT_FOLDER) == expected
    assert list(host.files(folder)) == (["rke2-multus.yaml.skip"] if script == SKIP_MULTUS else [])
    if script in {HOLD_AGENT, RELEASE_AGENT}:
        assert host.calls[-len(RESTARTED) :] == RESTARTED
