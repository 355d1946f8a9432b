"""Restores the unit of rancher-system-agent, which is held back while Rancher is upgraded.

The commands pre_drain and single_node_upgrade restore it; resources/host_scripts.py holds the agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.resources.host_scripts import (
    AGENT,
    AGENT_ENVIRONMENT,
    AGENT_FOLDER,
    AGENT_MARKER,
    AGENT_OVERRIDE,
)
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.run.errors import ProgramFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_TEMPORARY = (AGENT_OVERRIDE, AGENT_ENVIRONMENT)
#: Seconds; a restart waits for the agent to end.
_TIMEOUT = 180.0


async def system_agent_override(context: ToolkitContext) -> str:
    """Return the files that hold the agent back, or the marker of an interrupted restoration; empty without files."""
    present = [path for path in (*_TEMPORARY, AGENT_MARKER) if context.tree.exists(path)]
    return f"{AGENT} is overridden by {', '.join(present)}" if present else ""


async def restore_system_agent(context: ToolkitContext) -> None:
    """Remove the files and restart the agent. Raises ProgramFailed, after which the next run repeats the step."""
    tree = context.tree
    tree.write(AGENT_MARKER, "")
    for path in _TEMPORARY:
        tree.remove(path)
    await _systemctl(context, "daemon-reload")
    await _systemctl(context, "restart", AGENT)
    # In a chroot, systemctl may ignore a command and still succeed, but then shows no state.
    state = await _systemctl(context, "show", "--property=ActiveState", "--value", AGENT)
    if state != "active":
        raise ProgramFailed(f"{AGENT} is {state or 'in an unknown state'} after its restart, not active")
    tree.remove(AGENT_MARKER)
    tree.remove_empty(AGENT_FOLDER)


async def _systemctl(context: ToolkitContext, *arguments: str) -> str:
    call = Call(argv=("systemctl", *arguments), timeout=_TIMEOUT)
    return (await run_program(context.programs, call)).stdout.strip()
