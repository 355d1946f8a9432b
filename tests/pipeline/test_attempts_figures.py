"""Requests and seconds from the request of an attempt to the Job of the node that failed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from hack.simulation import Simulation
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import SHORT_LOOK, Ledger, UpgradeRun
from tests.support.programs.polling import eventually
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube.transport import Request, Response, Stream

#: Virtual seconds to the first write, and requests until the node's Job is created, at most.
FIRST_EFFECT, REQUESTS = 2.0, 20
#: The writes of the attempt's own state come first.
_EFFECT = "PATCH /apis/management.harvesterhci.io/v1beta1/upgradeplans/upgrade/status"


class Requests(Ledger):
    """Records the managers' requests with their times."""

    def __init__(self, inner: Ledger) -> None:
        super().__init__(inner)
        self._sent: list[tuple[float, str]] = []
        self._watches: list[tuple[float, str]] = []

    async def send(self, request: Request) -> Response:
        """Record and send the request."""
        self._record(self._sent, request)
        return await super().send(request)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Record and open the watch."""
        self._record(self._watches, request)
        async with super().open(request) as stream:
            yield stream

    def since(self, began: float) -> list[tuple[float, str]]:
        """Return the requests since that time, without events, watches and the list before each watch."""
        lists = Counter(text for time, text in self._watches if time >= began)
        found = []
        for time, text in self._sent:
            if time < began or text.endswith("/events"):
                continue
            if lists[text]:
                lists[text] -= 1
                continue
            found.append((time - began, text))
        return found

    def _record(self, requests: list[tuple[float, str]], request: Request) -> None:
        requests.append((asyncio.get_running_loop().time(), f"{request.method} {request.path}"))


@pytest.mark.full
@pytest.mark.rule("control: the Job of a failed node begins within 20 requests, watches and events aside")
@pytest.mark.parametrize("options", [OWN, RunOptions()], ids=["our toolkit", "Harvester's toolkit"])
@pytest.mark.parametrize("work", ["post-drain", "pre-drain"])
@pytest.mark.thin
async def test_failed_node_goes_on_within_seconds(work: str, options: RunOptions) -> None:
    scenario = RepairableScenario.of(**fault(work, SECOND))
    async with Simulation(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        requests = Requests(stage.ledger)
        stage = replace(stage, ledger=requests, options=options)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
            await asyncio.sleep(60)
            scenario.repair()
            began = asyncio.get_running_loop().time()
            await stage.patch(spec={"attempt": 2})
            name = f"upgrade-node-upgrade-{work}-{SECOND}-a2"

            async def is_created() -> bool:
                return name in requests.names("jobs")

            await eventually(is_created, seconds=60, pause=SHORT_LOOK)
            sent = requests.since(began)
        texts = [text for _, text in sent]
        until_job = sent[: texts.index("POST /apis/batch/v1/namespaces/harvester-system/jobs") + 1]
        assert next(time for time, text in sent if text == _EFFECT) <= FIRST_EFFECT
        assert len(until_job) <= REQUESTS
        # The count has requests at all.
        assert len(until_job) > REQUESTS / 2
