"""The guest's root file system: Debian's packages in the user's cache, and the files that make it a node.

disk.py makes images of it, and iso.py the release's root file system. The cache is filled under a temporary name and
renamed when it is complete, as that of the control plane is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.assets import cache_root
from hack.real_host.grub import ASSESSED, ASSESSMENT, TENTATIVE
from hack.real_host.initramfs import write_initramfs

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUITE = "bookworm"
_PACKAGES = (
    *("systemd", "systemd-sysv", "udev", "dbus", "e2fsprogs", "rsync", "kmod", "openssh-server", "iproute2"),
    *("linux-image-cloud-amd64", "containerd", "runc", "grub-common", "busybox-static", "ca-certificates"),
)
#: Files that no test reads.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/var/lib/apt/lists/*")
OLD_OS, NEW_OS = "Harvester v1.7.1", "Harvester v1.8.0"
#: The node's name.
NODE = "guest"
#: Below the persistent partition, which is mounted at /usr/local: what is mounted at /var.
VAR = ".state/var"
_RKE2 = "var/lib/rancher/rke2"
_STATE = "/run/initramfs/cos-state"
_FILES = {
    "etc/hostname": f"{NODE}\n",
    "etc/hosts": f"127.0.0.1 localhost {NODE}\n",
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "etc/fstab": f"""LABEL=COS_PERSISTENT /usr/local ext4 defaults 0 0
LABEL=COS_OEM /oem ext4 defaults 0 0
LABEL=COS_GRUB /run/elemental/efi vfat defaults 0 0
/usr/local/{VAR} /var none bind,x-systemd.requires-mounts-for=/usr/local 0 0
tmpfs /tmp tmpfs mode=1777 0 0
""",
    "etc/systemd/network/guest.network": "[Match]\nName=e*\n[Network]\nDHCP=ipv4\n",
    "etc/ssh/sshd_config.d/guest.conf": "PermitRootLogin prohibit-password\nUseDNS no\nUsePAM no\n",
    "etc/containerd/config.toml": f"""version = 2
root = "/{_RKE2}/agent/containerd"
state = "/run/k3s/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "/run/k3s/containerd/containerd.sock"
""",
    # elemental's cloud-config removes both marks in a boot of the active image, and keeps them in that of the fallback:
    # 08_boot_assessment.yaml of rancher/elemental-toolkit, before v1.0 in packages/cloud-config/oem, in v1.3.0 in
    # pkg/features/embedded/cloud-config-essentials/system/oem.
    "etc/systemd/system/boot-assessment.service": f"""[Unit]
ConditionPathExists=/run/cos/active_mode
After=local-fs.target
Before=ssh.service
[Service]
Type=oneshot
ExecStart=/bin/mount -o remount,rw {_STATE}
ExecStart=/usr/bin/grub-editenv {_STATE}/{ASSESSMENT} unset {TENTATIVE} {ASSESSED}
ExecStart=/bin/mount -o remount,ro {_STATE}
[Install]
WantedBy=multi-user.target
""",
    # As in elemental's own cloud-config, after the copy of the new system's files.
    "system/oem/boot-assessment.yaml": f"""name: Assess the next boot
stages:
  after-upgrade:
  - commands:
    - grub2-editenv {_STATE}/{ASSESSMENT} set {ASSESSED}=yes
""",
}
_UNITS = ("systemd-networkd", "ssh", "containerd", "boot-assessment")
_LINKS = {"usr/bin/grub2-editenv": "grub-editenv"}
#: Units that only cost time.
_MASKED = ("e2scrub_reap.service", "e2scrub_all.timer", "fstrim.timer", "apt-daily.timer", "apt-daily-upgrade.timer")


def base_archive(environ: Mapping[str, str]) -> Path:
    """Return the archive of Debian's packages, which is made where the cache lacks it."""
    digest = hashlib.sha256(repr((_SUITE, _PACKAGES, _LEFT_OUT)).encode()).hexdigest()[:12]
    folder = cache_root(environ).with_name("host")
    archive = folder / f"root-{digest}.tar"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as work:
            made = Path(work, "root.tar")
            excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT]
            packages = f"--include={','.join(_PACKAGES)}"
            _run("mmdebstrap", "--quiet", "--variant=minbase", *excluded, packages, _SUITE, str(made))
            made.rename(archive)
    return archive


def make_root(folder: Path, *, environ: Mapping[str, str], elemental: Path | None, public_key: str) -> Path:
    """Unpack and complete the root file system in a new folder below this one, and return it."""
    root = folder / "root"
    root.mkdir(parents=True)
    _run("tar", "--extract", "--file", str(base_archive(environ)), "--directory", str(root))
    for name, text in _FILES.items():
        _write(root / name, text)
    for name, target in _LINKS.items():
        (root / name).symlink_to(target)
    _write(root / "root/.ssh/authorized_keys", public_key)
    _run("ssh-keygen", "-q", "-A", "-f", str(root))
    _run("chroot", str(root), "/bin/systemctl", "--quiet", "enable", *_UNITS)
    _run("chroot", str(root), "/bin/systemctl", "--quiet", "mask", *_MASKED)
    for name in ("oem", "usr/local", "host", "system"):
        (root / name).mkdir(exist_ok=True)
    shutil.rmtree(root / "dev")
    (root / "dev").mkdir()
    if elemental is not None:
        shutil.copy(elemental, root / "usr/bin/elemental")
        (root / "usr/bin/elemental").chmod(0o755)
    _complete_boot(root, folder)
    set_os(root, OLD_OS)
    return root


def set_os(root: Path, name: str) -> None:
    """Give the root file system the name of a release."""
    _write(root / "etc/os-release", f'NAME="Harvester"\nID=harvester\nPRETTY_NAME="{name}"\n')


def make_persistent(root: Path, folder: Path, *, kubectl: Path | None) -> Path:
    """Make the persistent partition's files: what is mounted at /var, with RKE2's programs."""
    persistent = folder / "persistent"
    var = persistent / VAR
    var.parent.mkdir(parents=True)
    _run("cp", "--archive", str(root / "var"), str(var))
    rke2 = persistent / ".state" / _RKE2
    for name in ("bin", "agent/images"):
        (rke2 / name).mkdir(parents=True)
    (rke2 / "bin/ctr").symlink_to("/usr/bin/ctr")
    if kubectl is not None:
        shutil.copy(kubectl, rke2 / "bin/kubectl")
    return persistent


def _complete_boot(root: Path, folder: Path) -> None:
    """Leave the kernel and our initramfs below boot, under the names that GRUB reads."""
    kernel = next((root / "boot").glob("vmlinuz-*"))
    kernel.rename(root / "boot/vmlinuz")
    for name in ("initrd.img-*", "System.map-*", "config-*"):
        for path in (root / "boot").glob(name):
            path.unlink()
    for name in ("vmlinuz", "vmlinuz.old", "initrd.img", "initrd.img.old"):
        (root / name).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        write_initramfs(root, Path(work))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, env=os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
