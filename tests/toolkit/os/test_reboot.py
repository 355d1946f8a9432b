"""The script of the unit that reboots the host, run by a real shell with programs that answer from a list."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from upgrade_manager.toolkit.os.reboot import SCRIPT, unit_of

pytestmark = pytest.mark.real_loop
_POD = "demo-node-upgrade-post-drain-node-0-x7k2p"
#: Answers with the next line of a file: a phase, nothing, or a failure.
_KUBECTL = """#!/bin/sh
echo "$@" >> FOLDER/calls
line=$(head -n 1 FOLDER/answers)
sed -i 1d FOLDER/answers
if [ "$line" = fail ]; then echo "connection refused" >&2; exit 1; fi
printf %s "$line"
"""
_SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> FOLDER/reboots
ls FOLDER/manifests >> FOLDER/left
status=$(head -n 1 FOLDER/statuses)
sed -i 1d FOLDER/statuses
exit "$status"
"""


async def _run(folder: Path, answers: list[str], *, statuses: list[int]) -> str:
    """Run the script to its end, and return its output."""
    for name, text in (("kubectl", _KUBECTL), ("systemctl", _SYSTEMCTL)):
        path = folder / name
        path.write_text(text.replace("FOLDER", str(folder)), encoding="utf-8")
        path.chmod(0o755)
    (folder / "manifests").mkdir(exist_ok=True)
    (folder / "answers").write_text("".join(f"{one}\n" for one in answers), encoding="utf-8")
    (folder / "statuses").write_text("".join(f"{one}\n" for one in statuses), encoding="utf-8")
    shell = shutil.which("sh")
    assert shell is not None
    arguments = (
        str(folder / "kubectl"),
        "/etc/kubelet config",
        "node-0",
        "harvester-system",
        _POD,
        "0",
        str(folder / "manifests"),
    )
    process = await asyncio.create_subprocess_exec(
        *(shell, "-c", SCRIPT, "reboot", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


def _reboots(folder: Path) -> list[str]:
    path = folder / "reboots"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


async def test_script_reboots_once_after_the_pod_has_succeeded(tmp_path: Path) -> None:
    output = await _run(tmp_path, ["Running", "fail", "Pending", "fail", "Succeeded"], statuses=[0])
    assert _reboots(tmp_path) == ["systemctl reboot"]
    assert output.splitlines()[-1] == f"Pod {_POD} has succeeded, rebooting"
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines()[0] == (
        "--kubeconfig /etc/kubelet config --request-timeout 30s get pods --namespace harvester-system "
        f"--field-selector spec.nodeName=node-0,metadata.name={_POD} --output jsonpath={{.items[*].status.phase}}"
    )


@pytest.mark.parametrize(
    ("answer", "message"), [("Failed", "has failed, not rebooting"), ("", "is deleted, not rebooting")]
)
async def test_script_ends_without_a_reboot(tmp_path: Path, answer: str, message: str) -> None:
    output = await _run(tmp_path, ["Running", "fail", answer], statuses=[0])
    assert _reboots(tmp_path) == []
    assert output.splitlines()[-1] == f"Pod {_POD} {message}"


async def test_script_repeats_a_reboot_that_systemd_refuses(tmp_path: Path) -> None:
    """Also on a node whose API server has ended with its manifest."""
    await _run(tmp_path, ["Succeeded", "fail"], statuses=[1, 1, 0])
    assert _reboots(tmp_path) == ["systemctl reboot"] * 3
    assert (tmp_path / "answers").read_text() == "fail\n"


@pytest.mark.parametrize("names", [[], ["etcd.yaml", "kube-apiserver.yaml"]])
async def test_manifests_are_removed_before_the_reboot(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "manifests").mkdir()
    for name in names:
        (tmp_path / "manifests" / name).write_text("kind: Pod\n")
    await _run(tmp_path, ["Running", "Succeeded"], statuses=[0])
    assert (tmp_path / "left").read_text() == ""
    assert _reboots(tmp_path) == ["systemctl reboot"]


async def test_manifests_stay_without_a_reboot(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/etcd.yaml").write_text("kind: Pod\n")
    await _run(tmp_path, ["Running", "Failed"], statuses=[0])
    assert [path.name for path in (tmp_path / "manifests").iterdir()] == ["etcd.yaml"]


def test_script_survives_expansion_by_systemd() -> None:
    # systemd replaces these in the arguments of a unit's command.
    assert all(text not in SCRIPT for text in ("${", "$$", "%", "\n"))


def test_unit_is_named_after_its_pod() -> None:
    assert unit_of(_POD) == f"harvester-upgrade-reboot-{_POD}.service"
