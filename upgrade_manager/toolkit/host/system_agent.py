"""Restores the unit of rancher-system-agent, which is held back while Rancher is upgraded.

The commands pre_drain and single_node_upgrade restore it; charts/rancher.py causes the hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.run.errors import ProgramFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

UNIT = "rancher-system-agent.service"
#: The directory of the unit's drop-ins, which is lost at a reboot like all of /run.
_DROP_INS = f"/run/systemd/system/{UNIT}.d"
#: The files that hold the agent back; other files in that directory belong to the user.
_TEMPORARY = (f"{_DROP_INS}/override.conf", f"{_DROP_INS}/10-harvester-upgrade.env")
#: A file that exists from the removal of the first drop-in until the agent has restarted. systemd reads only *.conf.
_MARKER = f"{_DROP_INS}/harvester-upgrade-restores"
#: Seconds; a restart waits for the agent to end.
_TIMEOUT = 180.0


async def system_agent_override(context: ToolkitContext) -> str:
    """Return the files that hold the agent back, or the marker of an interrupted restoration; empty without files."""
    present = [path for path in (*_TEMPORARY, _MARKER) if context.tree.exists(path)]
    return f"{UNIT} is overridden by {', '.join(present)}" if present else ""


async def restore_system_agent(context: ToolkitContext) -> None:
    """Remove the files and restart the agent. Raises ProgramFailed, after which the next run repeats the step."""
    tree = context.tree
    tree.write(_MARKER, "")
    for path in _TEMPORARY:
        tree.remove(path)
    await _systemctl(context, "daemon-reload")
    await _systemctl(context, "restart", UNIT)
    # In a chroot, systemctl may ignore a command and still succeed, but then shows no state.
    state = await _systemctl(context, "show", "--property=ActiveState", "--value", UNIT)
    if state != "active":
        raise ProgramFailed(f"{UNIT} is {state or 'in an unknown state'} after its restart, not active")
    tree.remove(_MARKER)
    tree.remove_empty(_DROP_INS)


async def _systemctl(context: ToolkitContext, *arguments: str) -> str:
    call = Call(argv=("systemctl", *arguments), timeout=_TIMEOUT)
    return (await run_program(context.programs, call)).stdout.strip()
