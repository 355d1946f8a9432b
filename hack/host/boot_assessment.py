"""GRUB's marks of an attempt to boot, on the state partition of a simulated host.

state_partition.py boots by them, and elemental.py sets one. After an upgrade, elemental's cloud-config enables the
assessment of the next boot. GRUB marks that boot as an attempt, and starts the fallback where it finds the mark of an
attempt that has not ended. A boot of the active image removes both marks; that of the fallback keeps them, so that GRUB
would not try the image of another upgrade (rancher/elemental-toolkit v1.3.0:
pkg/features/embedded/cloud-config-essentials/system/oem/08_boot_assessment.yaml; before v1.0 the same, in
packages/cloud-config/oem/08_boot_assessment.yaml).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: On the state partition; the first upgrade creates it.
FILE = "boot_assessment"
ENABLED, TENTATIVE = "enable_boot_assessment", "boot_assessment_tentative"
_YES = "yes"
_FIRST = "# GRUB Environment Block\n"
_SIZE = 1024


def enable(folder: Path) -> None:
    """Let GRUB assess the next boot, as elemental's hook does, whose errors are ignored."""
    values = _read(folder)
    if values is not None:
        write_block(folder / FILE, values | {ENABLED: _YES})


def starts_fallback(folder: Path) -> bool:
    """Return True if GRUB finds the mark of an attempt that has not ended."""
    values = _read(folder) or {}
    return values.get(ENABLED) == values.get(TENTATIVE) == _YES


def fail(folder: Path) -> None:
    """Leave the marks of an upgrade whose image did not boot."""
    write_block(folder / FILE, (_read(folder) or {}) | dict.fromkeys((ENABLED, TENTATIVE), _YES))


def succeed(folder: Path) -> None:
    """Remove the marks, as a boot of the active image does."""
    values = _read(folder)
    if values:
        write_block(folder / FILE, {name: value for name, value in values.items() if name not in {ENABLED, TENTATIVE}})


def values_in(content: bytes) -> dict[str, str] | None:
    """Return the variables of an environment block, None for what is not a block."""
    if not content.startswith(_FIRST.encode()):
        return None
    lines = content.decode().rstrip("#").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def write_block(file: Path, values: dict[str, str]) -> None:
    """Write an environment block with these variables."""
    text = _FIRST + "".join(f"{name}={value}\n" for name, value in values.items())
    file.write_bytes(text.encode().ljust(_SIZE, b"#"))


def _read(folder: Path) -> dict[str, str] | None:
    file = folder / FILE
    return values_in(file.read_bytes()) if file.exists() else {}
