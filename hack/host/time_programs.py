"""chronyc and timedatectl: they show whether the host's clock is synchronised.

The fields are those of chrony 4.3 (client.c, process_cmd_tracking and process_cmd_sources, with the option -c) and of
systemd 252 (src/timedate/timedatectl.c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_programs import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hack.host.state import HostState

_CHRONY, _TIMESYNCD = "chronyd.service", "systemd-timesyncd.service"
_TRACKING = "C0A80001,192.168.0.1,3,1700000000.0,0.0001,0.0001,0.0002,-1.2,0.001,0.02,0.01,0.001,64.5"


class TimePrograms:
    """The programs of the services that set the clock."""

    def __init__(self, state: HostState) -> None:
        self._state = state
        self.handlers: dict[str, Callable[[Sequence[str], bytes], Awaitable[Output]]] = {
            "chronyc": self._chronyc,
            "timedatectl": self._timedatectl,
        }

    async def _chronyc(self, arguments: Sequence[str], _: bytes) -> Output:
        if self._state.time_service != _CHRONY:
            return Output(status=1, stdout="506 Cannot talk to daemon\n")
        match list(arguments):
            case ["-n", "-c", "sources"]:
                servers = "".join(f"^,*,{server},2,6,377,41,0.0,0.0,0.0\n" for server in self._state.time_servers)
                return Output(status=0, stdout=servers)
            case ["-n", "-c", "tracking"]:
                leap = "Normal" if self._state.is_synchronised else "Not synchronised"
                return Output(status=0, stdout=f"{_TRACKING},{leap}\n")
        return Output(status=1, stderr="Unrecognized command")

    async def _timedatectl(self, arguments: Sequence[str], _: bytes) -> Output:
        if list(arguments) != ["show", "--property=NTPSynchronized", "--value"]:
            return Output(status=1, stderr=f"Unknown command verb {arguments[0]}.")
        return Output(status=0, stdout="yes\n" if self._state.is_synchronised else "no\n")
