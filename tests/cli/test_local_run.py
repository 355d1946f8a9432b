"""`make run`: a manager on the user's machine, with nothing but a kubeconfig."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from tests.support.cluster.served import manager, result, served
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.polling import eventually
from tests.support.server.kube_server import Reply, ScriptedTransport, failure, success
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.cli.api_server_check import StartError
from upgrade_manager.cli.leader_check import refuse_beside_leader
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.resources import LEASES, UPGRADE_PLANS
from upgrade_manager.runtime.lease import new_lease

NOW, LONG_AGO = datetime(2030, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
PORTS = ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--webhook-bind-address=0"]


@pytest.mark.rule("pipeline: a manager on a user's machine is refused beside a leader")
@pytest.mark.real_loop
async def test_manager_beside_a_leader_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        lease = new_lease(LEASE, namespace=HARVESTER_SYSTEM, identity="pod-a_1", now=datetime.now(UTC))
        await cluster.client.create(LEASES, lease)
        refused = await result(await manager("run", f"--kubeconfig={cluster.kubeconfig}", *PORTS, home=tmp_path))
    assert refused.code == 1
    assert re.fullmatch(
        rf"upgrade-manager: cannot start: pod-a leads: it renewed lease harvester-system/{LEASE} \d+ s ago\. "
        r"Stop it with kubectl -n harvester-system scale deployment/harvester-upgrade-manager --replicas=0, "
        r"or add --leader-elect, with which this manager waits until it can lead",
        refused.line,
    )


@pytest.mark.parametrize(
    ("replies", "passes"),
    [
        pytest.param([failure(404, "NotFound")], True, id="no Lease"),
        pytest.param([failure(403, "Forbidden")], True, id="may not be read"),
        pytest.param([success(new_lease("x", namespace="x", identity="a", now=LONG_AGO))], True, id="expired"),
        pytest.param([success(new_lease("x", namespace="x", identity="", now=NOW))], True, id="released"),
        pytest.param([success(new_lease("x", namespace="x", identity="a", now=NOW))], False, id="held"),
    ],
)
async def test_only_a_live_leader_refuses(replies: list[Reply], *, passes: bool) -> None:
    client = Client(ScriptedTransport(others=replies), user_agent="test", random=Random(1))
    with contextlib.nullcontext() if passes else pytest.raises(StartError, match=r"^a leads: "):
        await refuse_beside_leader(client, clock=Frozen())


class Frozen(SystemClock):
    """A clock that stands still."""

    def now(self) -> datetime:
        return NOW


@pytest.mark.rule("pipeline: from outside the cluster the repository is read through the API server")
@pytest.mark.real_loop
@pytest.mark.full
async def test_manager_with_a_kubeconfig_upgrades_a_cluster(tmp_path: Path) -> None:
    async with served(tmp_path, scenario="one-node", scale=0.0) as cluster:
        process = await manager("run", f"--kubeconfig={cluster.kubeconfig}", *PORTS, home=tmp_path)

        async def has_succeeded() -> bool:
            plan = await cluster.client.get(UPGRADE_PLANS, "demo")
            return objects.status(plan).get("currentPhase") == SUCCEEDED

        try:
            await cluster.client.create(UPGRADE_PLANS, MANIFEST)
            await eventually(has_succeeded, seconds=60)
        finally:
            if process.returncode is None:
                process.terminate()
            _, err = await process.communicate()
    assert (process.returncode, "Traceback" in err.decode()) == (0, False)
