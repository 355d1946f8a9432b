"""The audit log of docs/examples/audit, for a stolen token of the manager."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ControlPlane
from tests.support.cluster.guarded_cluster import RUNNING, TOOLKIT, GuardedCluster, manifest
from tests.support.managers.upgrade import ACCOUNT
from tests.support.server.audit_log import AuditLog, user
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM
from upgrade_manager.kube.resources import DEPLOYMENTS, EVENTS, JOBS, LEASES, NODES, SECRETS, UPGRADE_PLANS

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

STATUS = UPGRADE_PLANS.path("upgrade", subresource="status")
EVIL_SPEC = {"spec": {"unschedulable": True}}
LEASE: dict[str, Any] = manifest(LEASES, "other", HARVESTER_SYSTEM)
EVENT: dict[str, Any] = manifest(EVENTS, "other", "default", reason="x", action="x", reportingController="x/y")
#: Method, path and body of what a policy denies, with the verb and the resource in the log.
DENIED = [
    ("DELETE", SECRETS.path(namespace=CATTLE_SYSTEM), None, "deletecollection", "secrets"),
    ("DELETE", JOBS.path("foreign", namespace=HARVESTER_SYSTEM), None, "delete", "jobs"),
    (
        "PATCH",
        DEPLOYMENTS.path("harvester", namespace=HARVESTER_SYSTEM),
        {"spec": {"replicas": 0}},
        "patch",
        "deployments",
    ),
    ("PATCH", NODES.path("node-1"), EVIL_SPEC, "patch", "nodes"),
    ("PATCH", STATUS, {"status": {"toolkitImage": None}}, "patch", "upgradeplans"),
]
#: Requests that the policies permit.
PERMITTED = [
    ("PATCH", STATUS, {"status": {"toolkitImage": TOOLKIT}}, "patch", "upgradeplans"),
    ("DELETE", JOBS.path(RUNNING, namespace=HARVESTER_SYSTEM), None, "delete", "jobs"),
]


@pytest.fixture
async def token_holder(
    guarded_plane: ControlPlane, admin: RawClient, cluster: GuardedCluster
) -> AsyncIterator[RawClient]:
    """Provide a client with a token of the manager's account: audit rules do not match impersonated users."""
    assert cluster.uid
    accounts = f"/api/v1/namespaces/{HARVESTER_SYSTEM}/serviceaccounts"
    name = ACCOUNT.rpartition(":")[2]
    assert (await admin.post(accounts, {"metadata": {"name": name}})).status in {201, 409}
    issued = await admin.post(f"{accounts}/{name}/token", {"spec": {}})
    assert issued.status == 201, issued.body
    async with direct(guarded_plane, token=issued.body["status"]["token"]) as transport:
        yield RawClient(transport)


@pytest.mark.rule("security: the API server's audit log shows each write of the manager's account, and what was denied")
async def test_audit_log_shows_what_the_managers_token_wrote(
    guarded_plane: ControlPlane, token_holder: RawClient
) -> None:
    log = AuditLog(guarded_plane)
    for method, path, body, *_ in DENIED + PERMITTED:
        await token_holder.call(method, path, body, kind="merge", dryRun="All")
    last = await log.find(lambda event: event["verb"] == "delete" and event["objectRef"].get("name") == RUNNING)
    assert user(last) == ACCOUNT
    found = [
        (event["verb"], event["objectRef"]["resource"], event["responseStatus"]["code"])
        for event in log.events()
        if user(event) == ACCOUNT
    ]
    denied = [(verb, resource, 403) for _, _, _, verb, resource in DENIED]
    assert found == denied + [(verb, resource, 200) for _, _, _, verb, resource in PERMITTED]


async def test_audit_log_has_no_leases_and_events_of_the_manager(
    guarded_plane: ControlPlane, token_holder: RawClient
) -> None:
    log = AuditLog(guarded_plane)
    for resource, one in ((LEASES, LEASE), (EVENTS, EVENT)):
        await token_holder.post(resource.path(namespace=one["metadata"]["namespace"]), one, dryRun="All")
    await token_holder.patch(STATUS, {"status": {"toolkitImage": TOOLKIT}}, dryRun="All")
    await log.find(lambda event: event["objectRef"]["resource"] == "upgradeplans")
    assert {event["objectRef"]["resource"] for event in log.events() if user(event) == ACCOUNT} == {"upgradeplans"}
