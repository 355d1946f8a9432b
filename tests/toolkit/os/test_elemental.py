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
_MOUNT = "Failed mounting device /dev/sda4 with label COS_STATE (mount: /run/initramfs/cos-state: mount point is busy)"


@pytest.mark.parametrize(
    ("stdout", "stderr", "error"),
    [
        pytest.param(_LOG, _BUSY, _MOUNT, id="its log on standard output"),
        pytest.param("", f"{_LOG}{_BUSY}", _MOUNT, id="its log on standard error"),
        pytest.param("ERRO[0001] first\nERRO[0002] last\nINFO[0003] cleaning\n", "", "last", id="the last error"),
        pytest.param("INFO[0001] begun\n", "Killed\n", "Killed", id="no error"),
        pytest.param("", "", "no output", id="nothing"),
    ],
)
def test_error_names_elementals_own_line(stdout: str, stderr: str, error: str) -> None:
    assert error_of(Output(status=1, stdout=stdout, stderr=stderr)) == error
