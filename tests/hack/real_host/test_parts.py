"""The parts of the tier `host` that are missing, each with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    assert missing(machine(), "guest", "toolkit", "elemental") == ""


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
        ("elemental", {"environ": {}}, "no package has elemental: set ELEMENTAL to the program of elemental 1.1.7"),
        ("elemental", {"exists": lambda _: False}, "ELEMENTAL=/opt/elemental is no file"),
        ("without-elemental", {}, "it shows the toolkit on a node without elemental, and ELEMENTAL is set"),
    ],
)
def test_a_missing_part_has_a_reason_with_a_remedy(part: str, changes: dict[str, Any], reason: str) -> None:
    assert reason in missing(machine(**changes), part)


def test_a_test_without_elemental_runs_where_it_is_missing() -> None:
    assert missing(machine(environ={}), "without-elemental") == ""


def test_the_first_missing_part_is_the_reason() -> None:
    lacking = machine(user=1, exists=lambda _: False)
    assert missing(lacking, "elemental", "guest").startswith("ELEMENTAL=")


def test_the_built_image_is_where_the_build_leaves_it() -> None:
    script = (Path(parts.__file__).parents[1] / "images_on_debian.sh").read_text()
    assert "oci-archive:build/images/$1.tar" in script
    assert Path("build/images/toolkit.tar") == parts.BUILT_IMAGE.relative_to(Path(parts.__file__).parents[2])
