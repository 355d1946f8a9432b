"""The parts of the tier `host` that are missing, each with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hack.control_plane.elemental import VERSIONS, expected_elemental
from hack.real_host import parts
from hack.real_host.parts import Machine, missing

BOOT_SECTOR = Path("/usr/lib/grub/i386-pc/boot.img")


def machine(**changes: Any) -> Machine:
    """Return a machine that has everything."""
    fields: dict[str, Any] = {
        "user": 0,
        "environ": {"ELEMENTAL": "/opt/elemental"},
        "which": lambda program: f"/usr/bin/{program}",
        "exists": lambda _: True,
    }
    return Machine(**(fields | changes))


def without(*programs: str) -> Callable[[str], str | None]:
    return lambda program: None if program in programs else f"/usr/bin/{program}"


def test_nothing_is_missing_from_a_complete_machine() -> None:
    assert missing(machine(), "guest", "toolkit", "elemental-1.3.0") == ""


@pytest.mark.parametrize(
    ("part", "changes", "reason"),
    [
        ("guest", {"user": 1000}, "the guest's root file system is made by root: run the tier as root, on Debian"),
        (
            "guest",
            {"which": without("ssh-keygen", "qemu-system-x86_64")},
            "run `apt-get install --no-install-recommends qemu-system-x86 openssh-client`",
        ),
        ("guest", {"exists": lambda path: path != BOOT_SECTOR}, "install --no-install-recommends grub-pc-bin`"),
        ("control-plane", {"environ": {"XDG_CACHE_HOME": "/nowhere"}}, "run `make real-kube`"),
        ("toolkit", {"exists": lambda _: False}, "run `make images-debian`, or set TOOLKIT_IMAGE"),
        (
            "toolkit",
            {"exists": lambda _: False, "environ": {"TOOLKIT_IMAGE": "/images/other.tar"}},
            "the toolkit's image is not at /images/other.tar",
        ),
        (
            "elemental-0.3.1",
            {"environ": {"XDG_CACHE_HOME": "/nowhere"}},
            "is not built: run `make elemental` (once, about 2 minutes), or set ELEMENTAL to the program",
        ),
        ("elemental-1.3.0", {"exists": lambda _: False}, "ELEMENTAL=/opt/elemental is not a file"),
        ("elemental-0.3.1", {}, "ELEMENTAL names the program that runs"),
    ],
)
def test_a_missing_part_has_a_reason_with_a_remedy(part: str, changes: dict[str, Any], reason: str) -> None:
    assert reason in missing(machine(**changes), part)


def test_built_versions_of_elemental_are_found_in_the_cache(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    for version in VERSIONS:
        program = expected_elemental(version, environ)
        program.parent.mkdir(parents=True)
        program.touch()
        part = parts.elemental_part(version)
        assert missing(machine(environ=environ), part) == ""
        assert f"{part}: {program} runs" in parts.report(machine(environ=environ))


def test_report_names_each_part_and_what_it_lacks() -> None:
    assert parts.report(machine(user=1))[0].startswith("guest: the guest's root file system is made by root")
    assert "elemental-1.3.0: /opt/elemental runs" in parts.report(machine())


def test_the_first_missing_part_is_the_reason() -> None:
    lacking = machine(user=1, exists=lambda _: False)
    assert missing(lacking, "elemental-1.3.0", "guest").startswith("ELEMENTAL=")


def test_the_built_image_is_where_the_build_leaves_it() -> None:
    script = (Path(parts.__file__).parents[1] / "images_on_debian.sh").read_text()
    assert "oci-archive:build/images/$1.tar" in script
    assert Path("build/images/toolkit.tar") == parts.BUILT_IMAGE.relative_to(Path(parts.__file__).parents[2])
