"""The tree of a host that runs Harvester: the files that the toolkit's commands read, change and remove."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hack.host import network, state_partition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Keeps rancher-system-agent from restarting RKE2 while Rancher is upgraded.
_DROP_IN = "run/systemd/system/rancher-system-agent.service.d"
_HOLD = {
    f"{_DROP_IN}/override.conf": "[Service]\nEnvironmentFile=-/run/systemd/system/10-harvester-upgrade.env\n",
    f"{_DROP_IN}/10-harvester-upgrade.env": "INSTALL_RKE2_SKIP_ENABLE=true\n",
}
_FILES = {
    "etc/rancher/rke2/config.yaml.d/50-rancher.yaml": '{"node-label": ["harvesterhci.io/managed=true"]}\n',
    "var/lib/rancher/rke2/agent/etc/crictl.yaml": "runtime-endpoint: unix:///run/k3s/containerd/containerd.sock\n",
}
#: Directories of the running system only, empty after a boot.
_VOLATILE = ("run/systemd", "tmp")


def create(root: Path, *, os_image: str) -> None:
    """Create the tree of a host that runs this operating system; an existing one is kept."""
    if not root.exists():
        fill(root, os_image=os_image)


def fill(root: Path, *, os_image: str, held: bool = True) -> None:
    """Add the files of a host that runs this operating system; `held` adds those that hold its agent back."""
    _write(root, _FILES)
    if held:
        hold(root)
    for name in ("usr/local", "usr/bin", *_VOLATILE):
        (root / name).mkdir(parents=True, exist_ok=True)
    state_partition.fill(root)
    network.fill(root)
    _set_os(root, os_image)
    _count_boot(root)


def hold(root: Path) -> None:
    """Hold the agent back, as Harvester's own upgrade does before it upgrades Rancher."""
    _write(root, _HOLD)


def release(root: Path) -> None:
    """End the hold."""
    for name in _HOLD:
        (root / name).unlink(missing_ok=True)


def is_held(root: Path) -> bool:
    """Report whether files hold the agent back."""
    return any((root / name).exists() for name in _HOLD)


def boot(root: Path, *, os_image: str, mounts: Iterable[str]) -> None:
    """Change the tree as a boot of this operating system does: an image runs, and these mounts have ended."""
    for target in mounts:
        path = root / target.lstrip("/")
        if path.is_dir() and target != state_partition.STATE:
            shutil.rmtree(path)
            path.mkdir()
    for name in _VOLATILE:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    state_partition.boot(root, os_image=os_image)
    _set_os(root, os_image)
    _count_boot(root)


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _set_os(root: Path, os_image: str) -> None:
    (root / "etc").mkdir(parents=True, exist_ok=True)
    (root / "etc/os-release").write_text(f'NAME="SLE Micro"\nPRETTY_NAME="{os_image}"\n', encoding="utf-8")


def _count_boot(root: Path) -> None:
    path = root / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True, exist_ok=True)
    number = int(path.read_text(encoding="utf-8")) + 1 if path.exists() else 1
    path.write_text(f"{number}\n", encoding="utf-8")
