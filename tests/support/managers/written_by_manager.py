"""Net writes of a manager in a whole upgrade with this project's toolkit, for the listings in tests/golden/writes.

A line begins with the row of release/migrations that causes the write, or with the phase in which it was first made.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from hack.simulation import Simulation
from tests.support.cluster.net_writes import NetWrites
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.api.phases import PHASE_SPECS
from upgrade_manager.kube import objects
from upgrade_manager.release.migrations import generic, hosts

if TYPE_CHECKING:
    from hack.apiserver.call import Call
    from upgrade_manager.kube.transport import Response

#: Rows by the object and field that they write.
_ROWS = (
    (re.compile(r"-agent-(?:hold|release)\b"), hosts.AGENT_HOLD.id),
    (re.compile(r"-skip-(?:on|off)\b"), hosts.SKIP_MULTUS.id),
    (re.compile(r"workloadUpdate|comparePatches"), generic.UPDATE_METHODS.id),
)
#: Kinds with many fields, of which the server adds most, and the fields that say what an object of them does.
_LONG = re.compile(r"(?:Job|Plan|Deployment)\.")
_TELLING = re.compile(
    r"(?:image|command|args|concurrency|tolerations|hostPID|hostIPC|hostNetwork|replicas|ttlSecondsAfterFinished|"
    r"jobActiveDeadlineSecs|serviceAccountName|nodeName|nodeSelector\.matchLabels\S+)$|^spec\.(?:secrets|paused)"
)
_LABEL = "metadata.labels[management.harvesterhci.io/"


class _Writes(NetWrites):
    """The writes of a manager; knows the phase of its plan."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation.client("reader"), self._of)
        self._phase = PHASE_SPECS[0].name

    async def after(self, number: int, call: Call, response: Response) -> None:
        await super().after(number, call, response)
        if call.resource.startswith("upgradeplans") and response.body:
            value = objects.status(json.loads(response.body)).get("currentPhase") or ""
            self._phase = next((one.name for one in PHASE_SPECS if value in {one.active, one.completed}), self._phase)

    def add(self, name: str, field: str, *, verb: str, before: str = "", after: str) -> None:
        is_listed = not _LONG.match(name) or verb != "create" or _TELLING.search(field) is not None
        if is_listed and not field.startswith(_LABEL):
            super().add(name, field, verb=verb, before=before, after=after)

    def _of(self, name: str, field: str) -> str:
        row = next((row for pattern, row in _ROWS if pattern.search(f"{name} {field}")), "")
        return row or f"phase {self._phase}"


async def written(scenario: str) -> list[str]:
    """Return the listing of the manager of an upgrade from v1.7.1 to v1.8.0."""
    async with Simulation(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OWN
        writes = simulation.middleware.hook = _Writes(simulation)
        async with stage.life():
            await stage.create_plan({"version": "v1.8.0", "restoreVM": True})
            await stage.until_ended()
            await stage.settle()
    return ["# manager", *writes.lines()]
