from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hack.host.network import add_card, mac, set_arguments
from tests.support.toolkit.os_upgrade import NEW_OS, OLD_OS, boot, boot_fallback, os_world
from tests.support.toolkit.survey import COMMAND, digest, findings, report_of
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.api.survey import SurveyReport
from upgrade_manager.kube.errors import Transient
from upgrade_manager.toolkit.host.disk_space import RESERVE
from upgrade_manager.toolkit.host.host_paths import (
    ACTIVE_IMAGE,
    GRUB_CUSTOM,
    GRUB_ENVIRONMENT,
    PASSIVE_IMAGE,
    TRANSITION_IMAGE,
)
from upgrade_manager.toolkit.host.host_programs import Call, Output
from upgrade_manager.toolkit.os.os_record import RECORD
from upgrade_manager.toolkit.survey import room


@pytest.fixture(autouse=True)
def _space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give /usr/local some space, whatever this machine has."""
    monkeypatch.setattr(room, "free_bytes", lambda _: 50 * RESERVE)


@pytest.mark.rule("workloads: a survey changes no byte of the host, and reports in its termination message")
async def test_golden_run_changes_nothing(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        before = digest(world.tree.root)
        listing = await transcript(world, COMMAND)
        assert listing == golden("survey", listing)
        assert digest(world.tree.root) == before
        assert await report_of(world) == SurveyReport(node="node-0")


def _full(world: ToolkitWorld) -> None:
    # 2.1 times the running system's files, and 256 MiB; 200 MiB of the fallback are holes.
    world.programs.state.free_mib = 4675


def _interrupted(world: ToolkitWorld) -> None:
    world.programs.state.free_mib = 4676
    world.programs.state.written = {TRANSITION_IMAGE: 300}
    world.tree.write(TRANSITION_IMAGE, "half an image")


def _removed(world: ToolkitWorld) -> None:
    world.tree.remove(ACTIVE_IMAGE)


def _other_program(world: ToolkitWorld) -> None:
    world.tree.path(ACTIVE_IMAGE).replace(world.tree.path(PASSIVE_IMAGE))
    world.tree.path(ACTIVE_IMAGE).write_text('PRETTY_NAME="Kiosk"\n')


def _many_cards(world: ToolkitWorld) -> None:
    for number in range(30):
        add_card(world.tree.root, f"enp{10 + number // 2}s0f{number % 2}", mac=mac(number + 10))


def _grubcustom(world: ToolkitWorld) -> None:
    world.tree.write(GRUB_CUSTOM, 'set third_party_kernel_args="quiet"\n')


def _release_file(world: ToolkitWorld) -> None:
    world.tree.write(
        "/oem/95_brand.yaml",
        "stages:\n  boot:\n  - files:\n    - path: /etc/os-release\n      content: Kiosk\n    - path: /etc/motd\n",
    )


def _mapper(world: ToolkitWorld, **files: str) -> None:
    world.programs.state.state_device = "/dev/mapper/mpatha4"
    if files:
        world.tree.write("/dev/dm-3", "")
        world.tree.make_directory("/dev/mapper")
        world.tree.path("/dev/mapper/mpatha4").symlink_to("../dm-3")
        for path, text in files.items():
            world.tree.write(f"/sys/block/dm-3/{path.replace('_', '/')}", text)


def _chrony(world: ToolkitWorld) -> None:
    world.programs.state.is_synchronised = False


def _timesyncd(world: ToolkitWorld) -> None:
    world.programs.state.is_synchronised = False
    world.programs.state.time_service = "systemd-timesyncd.service"


_STATE = "/run/initramfs/cos-state"
_DEVICE = "The device /dev/mapper/mpatha4 of the state partition {}, so that no new operating system can be written. "
_CLOCK = "Its clock is not synchronised, although {} runs. Show the time servers that it asks ({}), and make one of "


@pytest.mark.parametrize(
    ("change", "check", "message"),
    [
        pytest.param(
            _full,
            "state-partition",
            f"The new operating system needs at least 4876 MiB on the state partition {_STATE}, which has 4875 MiB for "
            f"it. Enlarge the partition, or remove {PASSIVE_IMAGE} (the fallback for boot failures).",
            id="full",
        ),
        pytest.param(
            boot_fallback,
            "boot-slot",
            "It runs its fallback passive.img, as after a boot of active.img that failed. Find out why active.img does "
            "not boot: the upgrade replaces it, and a broken disk would break the new one, too.",
            id="fallback",
        ),
        pytest.param(
            _removed,
            "boot-slot",
            "An installation since the last boot has removed the image that the node runs (active.img). Reboot it from "
            "its disk.",
            id="removed image",
        ),
        pytest.param(
            _other_program,
            "boot-slot",
            f"Another program has replaced {ACTIVE_IMAGE} since the last boot. Reboot it from its disk.",
            id="image of another program",
        ),
        pytest.param(
            _grubcustom,
            "oem-files",
            f"{GRUB_CUSTOM} sets third_party_kernel_args, so that GRUB ignores the names of NICs that the upgrade "
            f"writes to {GRUB_ENVIRONMENT}. Move the value there: grub2-editenv {GRUB_ENVIRONMENT} set "
            "third_party_kernel_args=VALUE.",
            id="grubcustom",
        ),
        pytest.param(
            _release_file,
            "oem-files",
            "/oem/95_brand.yaml writes /etc/os-release at each boot, and hides the release's name in that file. Remove "
            "that part.",
            id="file of the release",
        ),
        pytest.param(
            _mapper, "mapper-device", _DEVICE.format("does not exist") + "Show its paths: multipath -ll.", id="mapper"
        ),
        pytest.param(
            lambda world: _mapper(world, dm_suspended="1\n"),
            "mapper-device",
            _DEVICE.format("is suspended") + "Show its paths: multipath -ll.",
            id="mapper is suspended",
        ),
        pytest.param(
            lambda world: _mapper(world, dm_suspended="0\n", ro="1\n"),
            "mapper-device",
            _DEVICE.format("is read-only") + "Show its paths: multipath -ll.",
            id="mapper is read-only",
        ),
        pytest.param(
            _chrony, "time-sync", _CLOCK.format("chronyd.service", "chronyc sources") + "them answer.", id="chrony"
        ),
        pytest.param(
            _timesyncd,
            "time-sync",
            _CLOCK.format("systemd-timesyncd.service", "timedatectl timesync-status") + "them answer.",
            id="timesyncd",
        ),
    ],
)
async def test_finding(tmp_path: Path, change: Callable[[ToolkitWorld], object], check: str, message: str) -> None:
    async with os_world(tmp_path) as world:
        change(world)
        assert await findings(world) == {check: message}


@pytest.mark.parametrize(
    ("release", "is_known"), [pytest.param(NEW_OS, True, id="this release"), pytest.param("", False, id="another one")]
)
async def test_fallback_after_an_attempt_is_not_a_finding(tmp_path: Path, release: str, *, is_known: bool) -> None:
    async with os_world(tmp_path) as world:
        await world.run("node post-drain")
        world.tree.write(RECORD, (world.tree.read(RECORD) or "").replace(NEW_OS, release or "Harvester v1.7.9"))
        boot(world, OLD_OS)
        assert set(await findings(world)) == (set() if is_known else {"boot-slot"})
        world.iso.errors = [Transient("the upgrade repository returned HTTP 503")] * 1000
        assert set(await findings(world)) == {"boot-slot"}


async def test_names_of_many_cards_are_a_finding(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        _many_cards(world)
        (found,) = (await findings(world)).items()
        assert found[0] == "boot-arguments"
        assert found[1].startswith("/oem/grubenv has no room for third_party_kernel_args with the names of the 32 NICs")
        assert found[1].endswith(
            "or remove what is not needed from third_party_kernel_args: grub2-editenv /oem/grubenv list."
        )


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_interrupted, id="files of a killed elemental are removed"),
        pytest.param(lambda world: _mapper(world, dm_suspended="0\n", ro="0\n"), id="mapper"),
        pytest.param(lambda world: setattr(world.programs.state, "state_device", ""), id="no device of the label"),
        pytest.param(lambda world: world.tree.write("/oem/95_user.yaml", "stages: ["), id="file that is not valid"),
        pytest.param(lambda world: world.tree.write("/oem/95_user.yaml", "stages:\n  boot: 1\n"), id="no steps"),
        pytest.param(
            lambda world: world.tree.write("/oem/95_user.yaml", "stages:\n  boot:\n  - files: 1\n"), id="text"
        ),
        pytest.param(lambda world: world.tree.write("/oem/README", "stages:\n  boot: 1\n"), id="another file"),
        pytest.param(lambda world: world.tree.remove("/oem"), id="no files"),
    ],
)
async def test_no_finding(tmp_path: Path, change: Callable[[ToolkitWorld], object]) -> None:
    async with os_world(tmp_path) as world:
        change(world)
        assert await findings(world) == {}


@pytest.mark.parametrize(
    ("service", "servers"), [("", ["192.168.0.1"]), ("chronyd.service", [])], ids=["no service", "no servers"]
)
async def test_cluster_without_time_servers_has_no_finding(tmp_path: Path, service: str, servers: list[str]) -> None:
    async with os_world(tmp_path) as world:
        _chrony(world)
        world.programs.state.time_service, world.programs.state.time_servers = service, servers
        assert await findings(world) == {}


async def test_node_that_runs_the_release_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with os_world(tmp_path) as world:
        boot(world, NEW_OS)
        monkeypatch.setattr(room, "free_bytes", lambda _: 0)
        world.programs.state.free_mib = 0
        _many_cards(world)
        _removed(world)
        assert await findings(world) == {}


@pytest.mark.parametrize(
    ("failing", "check"),
    [
        ("df --output=avail", "state-partition"),
        ("df --output=used", "state-partition"),
        ("du", "state-partition"),
        ("blkid", "mapper-device"),
    ],
)
async def test_program_that_fails_is_a_finding(tmp_path: Path, failing: str, check: str) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.failing = {failing: "Input/output error"}
        program = failing.partition(" ")[0]
        assert await findings(world) == {
            check: f"The check {check} is not possible: {program} returned 1: Input/output error. Look for the cause "
            "on the node."
        }


@pytest.mark.parametrize(
    ("path", "check"),
    [
        (GRUB_CUSTOM, "oem-files"),
        ("/oem/90_custom.yaml", "oem-files"),
        ("/sys/class/net/enp1s0/address", "boot-arguments"),
        (GRUB_ENVIRONMENT, "boot-arguments"),
    ],
)
async def test_file_that_cannot_be_read_is_a_finding(tmp_path: Path, path: str, check: str) -> None:
    async with os_world(tmp_path) as world:
        world.tree.remove(path)
        world.tree.make_directory(path)
        (found,) = (await findings(world)).items()
        assert found[0] == check
        assert "Is a directory" in found[1]


async def test_programs_that_hang_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with os_world(tmp_path) as world:

        async def hang(*_: object) -> Output:
            await asyncio.sleep(3600)
            raise AssertionError

        monkeypatch.setattr(world.programs, "run", hang)
        began = asyncio.get_running_loop().time()
        found = await findings(world)
        assert asyncio.get_running_loop().time() - began < 30
        assert found == {
            check: f"The check {check} is not possible: it takes more than 20 s. Look for the cause on the node."
            for check in ("state-partition", "mapper-device", "time-sync")
        }


async def test_host_without_its_programs_is_surveyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with os_world(tmp_path) as world:
        run = world.programs.run

        async def without(call: Call) -> Output:
            absent = call.program in {"chronyc", "timedatectl", "systemctl"}
            return Output(status=127, stderr="No such file or directory") if absent else await run(call)

        monkeypatch.setattr(world.programs, "run", without)
        assert await findings(world) == {}


async def test_all_findings_fit_into_the_message(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        for number in range(40):
            text = "stages:\n  boot:\n  - files:\n    - path: /etc/os-release\n"
            world.tree.write(f"/oem/{number}_{'ä' * 60}.yaml", text)
        _chrony(world)
        report = await report_of(world)
        assert len(world.reports[-1].encode()) <= 4096
        assert report.omitted > 0
        assert len(report.findings) + report.omitted == 41


async def test_order_is_that_of_the_table(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        for change in (_chrony, _grubcustom, _mapper, _many_cards, _full):
            change(world)
        set_arguments(world.tree.root, None)
        report = await report_of(world)
        checks: Sequence[Any] = [finding.check for finding in report.findings]
        assert checks == ["state-partition", "boot-arguments", "mapper-device", "oem-files", "time-sync"]
