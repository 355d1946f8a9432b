"""A bundle of an upgrade: `status` and `report` print from it what they print from the cluster."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.faults.rules import Match, Refuse, Rule
from hack.scenario import Fault, Scenario
from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun, started
from upgrade_manager.cli import bundle, report, status
from upgrade_manager.cli.bundles.archive import MANIFEST, folder_of, packed
from upgrade_manager.cli.bundles.collection import LAST_WORDS
from upgrade_manager.cli.bundles.reader import read_bundle
from upgrade_manager.cli.session import CommandError, Session
from upgrade_manager.cli.user_options import StatusOptions
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS, SECRETS

THREE = scenarios.load("three-nodes").changed(operators=True)
FAILING = THREE.changed(faults=(Fault(work="post-drain", node="node-1"),))
SECRET = "hunter2-is-a-secret"  # noqa: S105  # planted
ENCODED = base64.b64encode(SECRET.encode()).decode()


def session_of(stage: UpgradeRun) -> Session:
    client = Client(stage.simulation.transport(), user_agent="user", random=Random(0))
    return Session(client=client, server="https://cluster", now=stage.simulation.now)


async def write(stage: UpgradeRun, file: Path) -> dict[str, bytes]:
    name, files = await bundle.read(session_of(stage), "")
    bundle.write(str(file), packed(folder_of(name), files))
    return files


@pytest.mark.full
@pytest.mark.rule("bundle: status and report print from it what they print from the cluster")
@pytest.mark.parametrize(
    ("scenario", "point"),
    [
        pytest.param(THREE, "ImagePreloading", id="running"),
        pytest.param(THREE, "NodeUpgrading", id="nodes"),
        pytest.param(THREE, "", id="succeeded"),
        pytest.param(FAILING, "", id="failed"),
    ],
)
async def test_commands_print_the_same_from_a_bundle(
    scenario: Scenario, point: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.tgz"
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        if point:
            await stage.reach(point)
            await asyncio.sleep(20)
        else:
            await stage.until_ended()
            await stage.settle()
        await write(stage, file)
        live = {}
        capsys.readouterr()
        for output in ("table", "json", "yaml"):
            assert await status.show(session_of(stage), StatusOptions(output=output)) == 0
            live[output] = capsys.readouterr().out
        live["html"] = await report.make(session_of(stage), "")
    capsys.readouterr()
    for output in ("table", "json", "yaml"):
        assert status.show_bundle(StatusOptions(output=output, bundle=str(file))) == 0
        assert capsys.readouterr().out == live[output]
    assert report.of_bundle(str(file), "") == live["html"]


@pytest.mark.full
@pytest.mark.rule("bundle: it has objects, events, history, logs and last words, listed in manifest.json")
async def test_bundle_has_objects_events_and_logs(tmp_path: Path) -> None:
    async with Simulation(FAILING) as simulation, started(simulation) as stage:
        await stage.until_ended()
        await stage.settle()
        files = await write(stage, tmp_path / "a.tgz")
    about = json.loads(files[MANIFEST])
    assert about["plan"] == "upgrade"
    assert about["files"] == {path: len(content) for path, content in files.items() if path != MANIFEST}
    assert {path.partition("/")[0] for path in files} == {
        "objects", "events", "logs", "history.json", "last-words.txt", "lease.json", "manifest.json",
    }  # fmt: skip
    for path in (
        "objects/upgradeplans.json",
        "objects/nodes.json",
        "objects/jobs-harvester-system.json",
        "objects/machine-plan-secrets.json",
        "objects/managedcharts.json",
        "objects/clusters.json",
        "objects/configmaps.json",
        "objects/setting-replenishment.json",
        "events/plan.json",
    ):
        assert json.loads(files[path]), path
    assert b"post-drain-node-1" in files[LAST_WORDS]
    assert any(path.startswith("logs/harvester-system/upgrade-") for path in files)


@pytest.mark.rule("bundle: no data of a Secret, no token, no password and no key is in it")
async def test_planted_secrets_are_not_in_the_bundle(tmp_path: Path) -> None:
    planted: list[tuple[Any, str, dict[str, Any]]] = [
        (MANAGED_CHARTS, "harvester", {"spec": {"values": {"x": {"adminPassword": SECRET}}}}),
        (MANAGED_CHARTS, "harvester", {"metadata": {"annotations": {"a": f"https://u:{SECRET}@host"}}}),
    ]
    async with Simulation(THREE) as simulation, started(simulation) as stage:
        await stage.reach("ImagePreloading")
        for resource, name, fields in planted:
            await stage.client.patch(resource, name, MergePatch(fields), namespace="fleet-local")
        for one in (await stage.client.list(SECRETS, namespace="fleet-local")).items:
            data = MergePatch({"data": {"token": ENCODED}, "metadata": {"annotations": {"b": SECRET}}})
            await stage.client.patch(SECRETS, one["metadata"]["name"], data, namespace="fleet-local")
        files = await write(stage, tmp_path / "a.tgz")
    for secret in (SECRET, ENCODED):
        assert [path for path, content in files.items() if secret.encode() in content] == []
    assert b'"data"' not in files["objects/machine-plan-secrets.json"]


@pytest.mark.rule("bundle: what the user may not read is listed, and stops nothing")
async def test_unreadable_objects_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.tgz"
    async with Simulation(THREE) as simulation, started(simulation) as stage:
        await stage.reach("ImagePreloading")
        for resource in ("nodes", "events", "secrets", "pods", "configmaps"):
            refusal = Refuse(status=403, reason="Forbidden", message=f"may not list {resource}")
            simulation.middleware.add(Rule(match=Match(verbs=("list", "get"), resource=resource), action=refusal))
        files = await write(stage, file)
        capsys.readouterr()
        live = await report.make(session_of(stage), "")
    unread = json.loads(files[MANIFEST])["unread"]
    assert "may not list nodes" in unread["objects/nodes.json"]
    assert "may not list secrets" in unread["objects/machine-plan-secrets.json"]
    shown = report.of_bundle(str(file), "")
    assert "Versions of nodes are not shown" in shown
    assert shown == live


def entry(name: str, content: bytes = b"", **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def tar_of(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


GOOD = packed(
    "up-bundle",
    {
        MANIFEST: json.dumps({"format": 1, "plan": "up", "time": "2030-01-01T12:00:00Z"}).encode(),
        "objects/upgradeplans.json": json.dumps([{"metadata": {"name": "up", "uid": "u"}}]).encode(),
    },
)


def bomb() -> bytes:
    """Return a file of a few hundred kB that unpacks to more than any bundle."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9) as packed_:
        info = tarfile.TarInfo("a/logs/x")
        info.size = 500_000_000
        packed_.write(info.tobuf())
        for _ in range(500):
            packed_.write(bytes(1_000_000))
    return buffer.getvalue()


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "is not a bundle|has no manifest|cut"),
    "text": (lambda: b"hello", "is not a bundle: it is not compressed"),
    "another gzip": (lambda: gzip.compress(b"x" * 2000), "is not a bundle"),
    "cut": (lambda: GOOD[: len(GOOD) // 2], "is cut"),
    "cut in the tar": (lambda: gzip.compress(gzip.decompress(GOOD)[:1500]), "is not a bundle|cut|missing|damaged"),
    "flipped": (lambda: GOOD[:40] + bytes([GOOD[40] ^ 255]) + GOOD[41:], "is not a bundle|damaged|cut"),
    "no manifest": (lambda: tar_of(entry("a/b", b"c")), "it has no manifest.json"),
    "a parent": (lambda: tar_of(entry("../../etc/passwd", b"c")), "which is not a file of a bundle"),
    "an inner parent": (lambda: tar_of(entry("a/../../b", b"c")), "which is not a file of a bundle"),
    "absolute": (lambda: tar_of(entry("/etc/passwd", b"c")), "which is not a file of a bundle"),
    "a link": (lambda: tar_of(entry("a/b", type=tarfile.SYMTYPE, linkname="/etc/passwd")), "is not a file of a bundle"),
    "a device": (lambda: tar_of(entry("a/b", type=tarfile.CHRTYPE)), "which is not a file of a bundle"),
    "a bomb": (bomb, "unpacks to more than"),
    "many files": (lambda: tar_of(*(entry(f"a/{one}") for one in range(10_001))), "more than 10000 files"),
    "no JSON": (lambda: packed("a", {MANIFEST: b"{"}), "manifest.json is damaged"),
    "deep JSON": (lambda: packed("a", {MANIFEST: b"[" * 1_000_000}), "manifest.json is damaged"),
    "another version": (lambda: packed("a", {MANIFEST: b'{"format":2,"version":"9.0"}'}), r"another version .*9\.0"),
    "no plan": (lambda: packed("a", {MANIFEST: b'{"format":1,"plan":"up","time":"2030-01-01T00:00:00Z"}'}), "missing"),
    "a list": (lambda: packed("a", {MANIFEST: b"[]"}), "has no manifest"),
}


@pytest.mark.full
@pytest.mark.rule("bundle: a file that is not a bundle, or about another plan, is one line, with exit status 1")
@pytest.mark.parametrize("name", BAD)
def test_file_that_is_not_a_bundle_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, text = BAD[name]
    file = tmp_path / "a.tgz"
    file.write_bytes(make())
    with pytest.raises(CommandError, match=text):
        read_bundle(str(file), plan="")
    assert status.status(StatusOptions(bundle=str(file))) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"upgrade-manager: {file}")
    assert len(line) < 300 + len(str(file))


@pytest.mark.parametrize(
    ("file", "plan", "text"),
    [
        ("missing.tgz", "", "cannot be read: No such file or directory"),
        (".", "", "cannot be read: Is a directory"),
        ("good.tgz", "other", "it is about UpgradePlan up, not other"),
    ],
)
def test_other_file_or_plan_is_one_line(file: str, plan: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "good.tgz").write_bytes(GOOD)
    with pytest.raises(CommandError, match=text):
        read_bundle(str(tmp_path / file), plan=plan)
    assert read_bundle(str(tmp_path / "good.tgz"), plan="up").plan["metadata"]["name"] == "up"
