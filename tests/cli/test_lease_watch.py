"""The Lease that leader election has left behind, after a change of the Deployment's arguments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.support.server.kube_server import Reply, ScriptedTransport, failure, success
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE, MANAGER
from upgrade_manager.cli.lease_watch import LeaseWatch
from upgrade_manager.display.leader import leader_row
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import DEPLOYMENTS, LEASES
from upgrade_manager.kube.transport import Request
from upgrade_manager.runtime.lease import new_lease

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PATHS = (
    LEASES.path(LEASE, namespace=HARVESTER_SYSTEM),
    DEPLOYMENTS.path(MANAGER, namespace=HARVESTER_SYSTEM),
)


def deployment(*arguments: str) -> Reply:
    container = {"name": "manager", "args": ["run", *arguments]}
    return success({"spec": {"template": {"spec": {"containers": [container]}}}})


def lease(seconds: int) -> dict[str, Any]:
    renewed = NOW - timedelta(seconds=seconds)
    return new_lease(LEASE, namespace=HARVESTER_SYSTEM, identity="pod-a_1", now=renewed)


@pytest.mark.rule("status: a Lease that leader election has left behind is not an alarm")
@pytest.mark.parametrize(
    ("age", "reply", "state", "reads"),
    [
        pytest.param(2, deployment("--leader-elect"), "Leading", 1, id="led"),
        pytest.param(552, deployment("--leader-elect"), "None", 2, id="election is on"),
        pytest.param(552, deployment("--leader-elect=true"), "None", 2, id="election is on, as in Go"),
        pytest.param(552, deployment(), "Unknown", 2, id="election was turned off"),
        pytest.param(552, deployment("--leader-elect=false"), "Unknown", 2, id="turned off, as in Go"),
        pytest.param(552, failure(404, "NotFound"), "None", 2, id="no Deployment"),
        pytest.param(552, failure(403, "Forbidden"), "None", 2, id="may not read the Deployment"),
    ],
)
async def test_leadership_follows_from_lease_and_deployment(age: int, reply: Reply, state: str, reads: int) -> None:
    paths: list[str] = []

    def respond(request: Request) -> Reply:
        paths.append(request.path)
        return dict(zip(PATHS, (success(lease(age)), reply), strict=True))[request.path]

    client = Client(ScriptedTransport(respond), user_agent="test", random=Random(0))
    watch = LeaseWatch(client, now=lambda: NOW)
    await watch.read()
    row = leader_row(watch.reading, is_needed=True, now=NOW)
    assert (row.state, bool(row.message), len(paths)) == (state, state == "None", reads)
