"""kubectl wait: conditions, fields, deletion, timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.kubectl import PLANS

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


#: The waits for the end of an upgrade.
FINISHED = ["--for=condition=Progressing=False", "--for=jsonpath={.status.currentPhase}=Succeeded"]


def progressing(status: str) -> dict[str, Any]:
    condition = {"type": "Progressing", "status": status, "reason": "Succeeded", "message": "", "observedGeneration": 1}
    condition |= {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"status": {"currentPhase": "Succeeded" if status == "False" else "Initializing", "conditions": [condition]}}


@pytest.mark.rule("api: kubectl wait for Progressing=False works", "api: kubectl wait for currentPhase=Succeeded works")
@pytest.mark.parametrize("what", FINISHED)
async def test_wait_returns_when_the_condition_is_met(cluster: Cluster, what: str) -> None:
    await cluster.plan()
    await cluster.wire.patch(f"{PLANS}/demo/status", progressing("True"))
    async with cluster.running("wait", what, "up/demo", "--timeout=30s") as output:
        await cluster.wire.patch(f"{PLANS}/demo/status", progressing("False"))
        assert await output.readline() == b"upgradeplan.management.harvesterhci.io/demo condition met\n"


async def test_wait_times_out(cluster: Cluster) -> None:
    message = await cluster.fail("wait", "--for=condition=Available", "up/demo", "--timeout=100ms")
    assert 'upgradeplans.management.harvesterhci.io "demo" not found' in message
    await cluster.plan()
    for what in FINISHED:
        message = await cluster.fail("wait", what, "up/demo", "--timeout=100ms")
        assert message == "error: timed out waiting for the condition on upgradeplans/demo\n"


async def test_wait_returns_after_a_deletion(cluster: Cluster) -> None:
    await cluster.plan()
    async with cluster.running("wait", "--for=delete", "up/demo", "--timeout=30s") as output:
        await cluster.wire.delete(f"{PLANS}/demo")
        assert await output.readline() in {b"upgradeplan.management.harvesterhci.io/demo condition met\n", b""}
