"""The node's clock: certificates and etcd need one that agrees with the other nodes' clocks.

Only a service that is configured and runs is asked; a cluster without NTP servers has no finding.

checks.py lists the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_programs import Call

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_CHRONY, _TIMESYNCD = "chronyd.service", "systemd-timesyncd.service"
#: The last field of chronyc's tracking report without a time (chrony 4.3: client.c).
_UNSYNCHRONISED = "Not synchronised"
#: Seconds.
_TIMEOUT = 5.0


async def time_sync(context: ToolkitContext) -> list[str]:
    """Find a clock that its service has not synchronised."""
    if await _runs(context, _CHRONY):
        return await _of_chrony(context)
    if await _runs(context, _TIMESYNCD):
        shown = await _output(context, "timedatectl", "show", "--property=NTPSynchronized", "--value")
        return [_finding(_TIMESYNCD, "timedatectl timesync-status")] if shown == "no" else []
    return []


async def _of_chrony(context: ToolkitContext) -> list[str]:
    if not await _output(context, "chronyc", "-n", "-c", "sources"):
        return []
    tracking = await _output(context, "chronyc", "-n", "-c", "tracking")
    return [_finding(_CHRONY, "chronyc sources")] if tracking.endswith(f",{_UNSYNCHRONISED}") else []


def _finding(unit: str, command: str) -> str:
    return (
        f"Its clock is not synchronised, although {unit} runs. Show the time servers that it asks ({command}), and "
        "make one of them answer."
    )


async def _runs(context: ToolkitContext, unit: str) -> bool:
    output = await context.programs.run(Call(argv=("systemctl", "is-active", "--quiet", unit), timeout=_TIMEOUT))
    return output.status == 0


async def _output(context: ToolkitContext, *argv: str) -> str:
    """Return what the program prints; empty if the host lacks it or the service does not answer."""
    output = await context.programs.run(Call(argv=argv, timeout=_TIMEOUT))
    return output.stdout.strip() if output.status == 0 else ""
