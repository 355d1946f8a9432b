"""The reboot into the release's operating system, which happens only after the command's Pod has succeeded.

The commands post_drain and single_node_upgrade end with it.

If a Pod rebooted its node, the Pod would fail, and its Job would start another Pod. Therefore a unit of the host's
systemd waits for the end of the Pod, by the kubelet's credentials, and outlives the Pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.release.migrations.nodes import POD_MANIFESTS as MANIFESTS_ROW
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, KUBECTL, KUBELET_CONFIG, POD_MANIFESTS
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.os.os_record import is_verified
from upgrade_manager.toolkit.os.os_release import release_os, runs_release
from upgrade_manager.toolkit.os.os_upgrade import record_of
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_PREFIX = "harvester-upgrade-reboot"
#: Seconds.
_TIMEOUT = 60.0
#: Seconds between two reads of the Pod.
_POLL = "5"
#: Waits for the Pod; arguments: kubectl, its configuration, the node, namespace and Pod, seconds between two reads, and
#: the folder that it empties before the reboot.
#:
#: A list, because a kubelet that reads a deleted Pod by its name gets 403 (Forbidden), as it does while the API server
#: starts. A failed read is repeated without a limit: in the end the Pod has ended or is deleted. The API server of this
#: node ends with its manifest, so that the Pod is not read again when systemd refuses the reboot. systemd expands
#: braces after a dollar sign, so there are none.
SCRIPT = (
    'phase_of() { "$1" --kubeconfig "$2" --request-timeout 30s get pods --namespace "$4" '
    '--field-selector "spec.nodeName=$3,metadata.name=$5" --output "jsonpath={.items[*].status.phase}"; }; '
    "while true; do "
    'if phase=$(phase_of "$@"); then case $phase in '
    'Succeeded) echo "Pod $5 has succeeded, rebooting"; rm -f "$7"/*; '
    'until systemctl reboot; do sleep "$6"; done; exit 0;; '
    'Failed) echo "Pod $5 has failed, not rebooting"; exit 0;; '
    '"") echo "Pod $5 is deleted, not rebooting"; exit 0;; '
    "esac; fi; "
    'sleep "$6"; done'
)


def unit_of(pod: str) -> str:
    """Return the unit that waits for this Pod; an earlier attempt's unit waits for that attempt's Pod."""
    return f"{_PREFIX}-{pod}.service"


async def reboot_missing(context: ToolkitContext) -> str:
    """Return an empty text once the reboot is arranged, or not needed."""
    if await runs_release(context):
        return ""
    unit = unit_of(context.pod)
    output = await context.programs.run(Call(argv=("systemctl", "is-active", "--quiet", unit), timeout=_TIMEOUT))
    return "" if output.status == 0 else f"unit {unit} does not run"


async def arrange_reboot(context: ToolkitContext) -> None:
    """Start the unit. Raises StepFailed."""
    if not is_verified(context.tree, await record_of(context)):
        raise StepFailed(f"{ACTIVE_IMAGE} has changed since it was checked as {await release_os(context)}")
    unit = ("systemd-run", f"--unit={unit_of(context.pod)}", "--collect")
    arguments = (KUBECTL, KUBELET_CONFIG, context.node, HARVESTER_SYSTEM, context.pod, _POLL, POD_MANIFESTS)
    argv = (*unit, "/bin/sh", "-c", SCRIPT, _PREFIX, *arguments)
    await run_program(context.programs, Call(argv=argv, timeout=_TIMEOUT))


ARRANGE_REBOOT = Step(name="arrange-reboot", timeout=300, missing=reboot_missing, act=arrange_reboot, row=MANIFESTS_ROW)
