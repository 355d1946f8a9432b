from __future__ import annotations

import pytest

from upgrade_manager.toolkit.host.host_programs import Output
from upgrade_manager.toolkit.os.elemental import error_of

_BUSY = """E0101 00:00:00.000000   22803 mount_linux.go:195] Mount failed: exit status 32
Mounting command: mount
Output: mount: /run/initramfs/cos-state: mount point is busy.
       dmesg(1) may have more information after failed mount system call.
"""
_LOG = """DEBU[2026-01-01T00:00:00Z] Mounting partition COS_STATE
\x1b[31mERRO\x1b[0m[2026-01-01T00:00:00Z] Failed mounting device /dev/sda4 with label COS_STATE \n"""
#: As both versions were seen to end when an image is too small.
_FULL = """\x1b[31mERRO\x1b[0m[2026-01-01T00:00:00Z] rsync finished with errors: exit status 11
\x1b[37mDEBU\x1b[0m[2026-01-01T00:00:00Z] Running cmd: 'losetup -d /dev/loop1'
\x1b[31mERRO\x1b[0m[2026-01-01T00:00:00Z] failed creating transition image
\x1b[37mDEBU\x1b[0m[2026-01-01T00:00:00Z] Unmounting partition COS_RECOVERY
"""
_CAUSE = "rsync finished with errors: exit status 11; failed creating transition image"
_MOUNT = "Failed mounting device /dev/sda4 with label COS_STATE (mount: /run/initramfs/cos-state: mount point is busy)"


@pytest.mark.parametrize(
    ("stdout", "stderr", "error"),
    [
        pytest.param(_LOG, _BUSY, _MOUNT, id="its log on standard output"),
        pytest.param("", f"{_LOG}{_BUSY}", _MOUNT, id="its log on standard error"),
        pytest.param(_FULL, "", _CAUSE, id="1.3.0"),
        pytest.param(_FULL[_FULL.index("DEBU") :], "", "failed creating transition image", id="0.3.1, without a cause"),
        pytest.param(f"ERRO[0001] of a hook\n{_FULL}", "", _CAUSE, id="the last two errors"),
        pytest.param("ERRO[1] twice\nERRO[2] twice\n", "", "twice", id="the same error twice"),
        pytest.param("INFO[0001] begun\n", "Killed\n", "Killed", id="no error"),
        pytest.param("", "", "no output", id="nothing"),
    ],
)
def test_error_names_elementals_own_line(stdout: str, stderr: str, error: str) -> None:
    assert error_of(Output(status=1, stdout=stdout, stderr=stderr)) == error
