"""A virtctl for commands of remedies in simulated clusters, which do not serve KubeVirt's subresources to kubectl."""

from __future__ import annotations

from pathlib import Path

#: Does what KubeVirt does with a VM that virtctl stops or starts: its API has subresources for that.
VIRTCTL = """\
#!/bin/sh
case $1 in
stop) strategy=Halted; status=Stopped ;;
start) strategy=Always; status=Running ;;
esac
patch="kubectl patch virtualmachines.kubevirt.io $2 $3 $4 --type=merge -p"
$patch "{\\"spec\\":{\\"runStrategy\\":\\"$strategy\\"}}" &&
  $patch "{\\"status\\":{\\"printableStatus\\":\\"$status\\"}}" --subresource=status
"""


def install_virtctl(folder: Path) -> None:
    """Write the program into a folder, which the caller adds to PATH."""
    program = folder / "virtctl"
    program.write_text(VIRTCTL)
    program.chmod(0o755)
