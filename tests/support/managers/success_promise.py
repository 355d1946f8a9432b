"""The promise of "Succeeded", checked at the end of a run: the state of nodes, VMs and settings.

Random runs make the same checks with what their users have changed (random_runs/random_run.py); success_truth.py checks
the moment at which a plan records its success.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tests.support.random_runs import end_state_checks
from tests.support.random_runs.machines_on import MachinesOn

if TYPE_CHECKING:
    from hack.simulation import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessPromise:
    """The cluster before an upgrade, on the embedded server."""

    simulation: Simulation
    machines: MachinesOn
    #: The values that an upgrade must not change, or must restore, by the object's title.
    before: dict[str, Any]

    @classmethod
    async def of(cls, simulation: Simulation) -> Self:
        """Read the cluster, before a plan exists."""
        return cls(
            simulation=simulation,
            machines=MachinesOn(simulation),
            before=await end_state_checks.others(simulation),
        )

    async def broken(self, *, settings: bool = True) -> list[str]:
        """Return one sentence for each broken clause; without `settings` if users have changed them."""
        kept = {name: (value,) for name, value in self.before.items()} if settings else {}
        return [
            *await end_state_checks.check_nodes(self.simulation),
            *await self.machines.missing(),
            *await end_state_checks.check_others(self.simulation, kept),
        ]
