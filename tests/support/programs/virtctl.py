"""A virtctl for commands of remedies in simulated clusters, which do not serve KubeVirt's subresources to kubectl."""

from __future__ import annotations

from pathlib import Path

#: Does what KubeVirt does with a VM that virtctl stops, starts or migrates: its API has subresources for that.
VIRTCTL = """\
#!/bin/sh
migration=virtualmachineinstancemigrations.kubevirt.io
case $1 in
migrate) kubectl create $3 $4 -f - <<END
{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
 "metadata": {"name": "by-hand-$2"}, "spec": {"vmiName": "$2"}}
END
  exit ;;
migrate-cancel) kubectl delete $migration $3 $4 -l kubevirt.io/vmi-name=$2; exit ;;
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
