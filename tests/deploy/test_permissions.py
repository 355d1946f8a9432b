"""The permissions in deploy/rbac against all requests of an upgrade."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from hack import scenario as scenarios
from hack.apiserver.identity import ADMIN
from hack.bench.in_process import MANAGER, upgraded
from hack.simulation import Simulation
from hack.virtual_time import virtual_now
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.server.tokens import token_of
from tests.support.webhook.permissions import Permission, authorized, granted
from tests.support.webhook.webhook_certificates import RENEWAL, Replicas
from upgrade_manager.cli.application import LEASE
from upgrade_manager.kube.client import Client
from upgrade_manager.runtime.metrics_auth import ALLOWED, MetricsAuthorizer
from upgrade_manager.runtime.peers import Peers
from webhook.api_servers import ApiServers
from webhook.caches import ClusterCaches
from webhook.catalogue import CHECKS
from webhook.check import Subject
from webhook.cluster import LiveReader
from webhook.listings import CORDONED_NODES, LARGE
from webhook.runner import run_checks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager

    from hack.apiserver.call import Call
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

ROLE = "harvester-upgrade-manager"
#: (namespace, resource, verb) that a healthy upgrade does not use, and what uses it.
RARELY_USED = {
    ("", "nodes/stats", "get"): "kubelets, which ask the API server",
    ("", "nodes/configz", "get"): "the same",
    ("", "tokenreviews.authentication.k8s.io", "create"): "authorization of scrapers",
    ("", "subjectaccessreviews.authorization.k8s.io", "create"): "authorization of scrapers",
    ("", "upgradeplans.management.harvesterhci.io/finalizers", "update"): "admission of owner references",
    ("", "namespaces", "get"): "deletion of a plan without its namespace",
    ("default", "events", "patch"): "a repeated event",
    ("", "pods", "list"): "a drain that does not end",
    ("", "pods", "watch"): "a drain that does not end",
    ("", "poddisruptionbudgets.policy", "list"): "a drain that does not end",
    ("", "poddisruptionbudgets.policy", "watch"): "a drain that does not end",
    ("", "virtualmachineinstances.kubevirt.io", "list"): "a VM that does not leave its node",
    ("", "virtualmachineinstances.kubevirt.io", "watch"): "a VM that does not leave its node",
    ("", "virtualmachineinstancemigrations.kubevirt.io", "list"): "a VM that does not leave its node",
    ("", "virtualmachineinstancemigrations.kubevirt.io", "watch"): "a VM that does not leave its node",
    ("longhorn-system", "volumes.longhorn.io", "list"): "a pre-drain Job that waits for volumes",
    ("longhorn-system", "volumes.longhorn.io", "watch"): "a pre-drain Job that waits for volumes",
    ("longhorn-system", "engines.longhorn.io", "list"): "a pre-drain Job that waits for volumes",
    ("longhorn-system", "engines.longhorn.io", "watch"): "a pre-drain Job that waits for volumes",
    ("harvester-system", "serviceaccounts", "list"): "a Job whose Pods are refused",
    ("harvester-system", "serviceaccounts", "watch"): "a Job whose Pods are refused",
    ("cattle-system", "serviceaccounts", "list"): "a Job whose Pods are refused",
    ("cattle-system", "serviceaccounts", "watch"): "a Job whose Pods are refused",
    ("harvester-system", "persistentvolumeclaims", "list"): "an import without progress",
    ("harvester-system", "persistentvolumeclaims", "watch"): "an import without progress",
    ("harvester-system", "datavolumes.cdi.kubevirt.io", "list"): "an import without progress",
    ("harvester-system", "datavolumes.cdi.kubevirt.io", "watch"): "an import without progress",
    ("harvester-system", "leases.coordination.k8s.io", "get"): "leader election",
    ("harvester-system", "leases.coordination.k8s.io", "create"): "leader election",
    ("harvester-system", "leases.coordination.k8s.io", "update"): "leader election",
    ("harvester-system", "pods", "list"): "the termination message of a failed Job",
    ("harvester-system", "events", "list"): "a Job that has no Pod",
    ("cattle-system", "pods", "list"): "the termination message of a failed Job",
    ("cattle-system", "events", "list"): "a Plan whose Jobs do not start",
    ("harvester-system", "pods", "watch"): "a Job whose Pod does not start",
    ("harvester-system", "events", "watch"): "a Job that has no Pod",
    ("cattle-system", "pods", "watch"): "a Job whose Pod does not start",
    ("cattle-system", "events", "watch"): "a Plan whose Jobs do not start",
    ("cattle-system", "deployments.apps", "list"): "a Plan without Jobs, and Rancher",
    ("cattle-system", "deployments.apps", "watch"): "a Plan without Jobs, and Rancher",
    ("cattle-system", "jobs.batch", "patch"): "the failed Jobs of a failed plan, to keep them",
    ("cattle-system", "jobs.batch", "deletecollection"): "the same, when the plan is deleted",
    ("harvester-system", "jobs.batch", "delete"): "the Jobs of a failed plan, less those that failed",
    ("harvester-system", "jobs.batch", "patch"): "a paused node, and the running Jobs of a deleted plan",
    ("fleet-local", "events", "create"): "a plan that ends before all nodes are upgraded",
    ("fleet-local", "events", "patch"): "the same, repeated",
    ("harvester-system", "configmaps", "get"): "restoreVM",
    ("harvester-system", "configmaps", "patch"): "the list of VMs of a failed plan, or for running restore-vm Jobs",
    ("harvester-system", "configmaps", "delete"): "the same, at the end",
    ("harvester-system", "persistentvolumeclaims", "get"): "the volume of spec.image",
    ("harvester-system", "jobs.batch", "get"): "an object that exists",
    ("harvester-system", "deployments.apps", "get"): "an object that exists",
    ("harvester-system", "deployments.apps", "patch"): "a repository that a user scaled down",
    ("cattle-system", "plans.upgrade.cattle.io", "get"): "nodes with an earlier Plan's label",
    ("harvester-system", "services", "get"): "a Service that has no endpoint, or exists",
    ("harvester-system", "services", "patch"): "the repository of the running Jobs of a deleted plan",
    ("harvester-system", "virtualmachineimages.harvesterhci.io", "get"): "an object that exists",
    ("harvester-system", "virtualmachineimages.harvesterhci.io", "patch"): "the same as for its Service",
}


@pytest.mark.rule(
    "nodes: acknowledging changes one annotation of the Secret, whose data is never read",
    "workloads: a Plan is never updated after its creation",
)
@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        pytest.param(
            "plans.upgrade.cattle.io", {"update", "patch"}, id="a Plan is not edited: its Jobs would start again"
        ),
        pytest.param("secrets", {"get", "update"}, id="a machine plan is not read, nor replaced as a whole"),
    ],
)
def test_forbidden_verbs_are_not_granted(resource: str, verbs: set[str]) -> None:
    granted_verbs = {verb for _, name, verb, _ in granted(ROLE) if name == resource}
    assert granted_verbs
    assert not granted_verbs & {*verbs, "*"}


def test_only_the_own_lease_is_read_and_written() -> None:
    """Kubernetes cannot restrict creation to a name."""
    leases = [permission for permission in granted(ROLE) if permission.resource == "leases.coordination.k8s.io"]
    names = {(permission.verb, permission.name) for permission in leases}
    assert names == {("create", ""), ("get", LEASE), ("update", LEASE)}


async def test_every_request_is_permitted_and_every_permission_used() -> None:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        # The clean-up follows the end.
        await asyncio.sleep(10)
        calls = [authorized(exchange.request) for exchange in upgrade.recorder.of(MANAGER)]
    permissions = list(granted(ROLE))
    assert [call for call in calls if not any(permission.permits(call) for permission in permissions)] == []
    unused = {permission[:3] for permission in permissions if not any(permission.permits(call) for call in calls)}
    assert unused == set(RARELY_USED)


class Recorder:
    """A transport that records requests."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.calls: list[Call] = []

    async def send(self, request: Request) -> Response:
        self.calls.append(authorized(request))
        return await self._inner.send(request)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        self.calls.append(authorized(request))
        return self._inner.open(request)


async def fill_caches(client: Client) -> None:
    caches = ClusterCaches(client, listings=LARGE, changes=CORDONED_NODES, live=LiveReader(client), random=Random(1))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(caches.run())
        await caches.reader()
        caches.start()
        await asyncio.sleep(10)
        assert await caches.reader() is not None
        task.cancel()


def of_webhook() -> Iterator[Permission]:
    """Yield the permissions of a webhook that makes its certificate by itself."""
    yield from granted(f"{ROLE}-webhook")
    yield from granted(f"{ROLE}-webhook-certificates")


#: What the leader must not change: admission.
ADMISSION = {
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
}


@pytest.mark.rule("admission: the manager's account can change neither the webhook's certificate nor its configuration")
def test_manager_has_no_permission_of_the_webhook() -> None:
    manager = [*granted(ROLE)]
    assert not [one for one in manager if one.resource in ADMISSION]
    assert not [one for one in manager if (one.resource, one.namespace) == ("secrets", "harvester-system")]
    own = {(one.resource, one.verb) for one in manager}
    of_checks = {one.resource for one in of_webhook() if (one.resource, one.verb) not in own}
    assert of_checks == {
        "addons.harvesterhci.io",
        "schedulevmbackups.harvesterhci.io",
        "virtualmachinebackups.harvesterhci.io",
        "upgrades.harvesterhci.io",
        "versions.harvesterhci.io",
        "managedcharts.management.cattle.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "secrets",
    }


async def authorize_scraper(simulation: Simulation, client: Client) -> None:
    """Let the client decide about a scraper, as the webhook's metrics server does."""
    token = token_of("scraper")
    simulation.server.authenticator.register(token, ADMIN)
    authorizer = MetricsAuthorizer(client, path="/metrics", now=virtual_now)
    assert await authorizer.authorize(f"Bearer {token}", peer="192.0.2.1") == ALLOWED


async def test_webhook_needs_exactly_its_permissions() -> None:
    async with Simulation(actors=False) as simulation:
        recorder = Recorder(simulation.transport())
        client = Client(recorder, user_agent="webhook", random=Random(1))
        replicas = Replicas(simulation)
        await replicas.install()
        replica = replicas.replica(client=client)
        await replica.rotate()
        replicas.shift = RENEWAL
        await replica.rotate()
        for spec in ({"version": "v1.8.0"}, {"image": "harvester-system/iso"}):
            plan = Subject.of({"metadata": {"name": "demo"}, "spec": spec}, cluster=LiveReader(client), toolkit=TOOLKIT)
            await run_checks(CHECKS, plan)
        await fill_caches(client)
        await ApiServers(client, Peers()).refresh()
        await authorize_scraper(simulation, client)
    permissions = list(of_webhook())
    assert [call for call in recorder.calls if not any(one.permits(call) for one in permissions)] == []
    assert [one for one in permissions if not any(one.permits(call) for call in recorder.calls)] == []
