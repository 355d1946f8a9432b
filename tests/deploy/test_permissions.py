"""The permissions in deploy/rbac against all requests of an upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from hack import scenario as scenarios
from hack.apiserver.identity import ADMIN
from hack.bench.in_process import MANAGER, upgraded
from hack.bench.recorder import Recorder
from hack.simulation import Simulation
from hack.virtual_time import virtual_now
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.server.tokens import token_of
from tests.support.webhook.permissions import Permission, authorized, granted
from tests.support.webhook.webhook_certificates import RENEWAL, Replicas
from upgrade_manager.api.keys import LEASE
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from upgrade_manager.runtime.metrics_auth import ALLOWED, MetricsAuthorizer
from upgrade_manager.runtime.peers import Peers
from webhook.api_servers import ApiServers
from webhook.caches import ClusterCaches
from webhook.catalogue import CHECKS
from webhook.check import Subject
from webhook.cluster import LiveReader
from webhook.listings import CORDONED_NODES, LARGE
from webhook.runner import run_checks

ROLE = "harvester-upgrade-manager"
WEBHOOK_CONFIGURATIONS = (
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
)
#: Permissions that a healthy upgrade does not use: namespace, verbs and resource, and what uses them.
RARELY_USED = [
    ("", "get", "nodes/stats", "kubelets, which ask the API server"),
    ("", "get", "nodes/configz", "the same"),
    ("", "create", "tokenreviews.authentication.k8s.io", "authorization of scrapers"),
    ("", "create", "subjectaccessreviews.authorization.k8s.io", "authorization of scrapers"),
    ("", "update", "upgradeplans.management.harvesterhci.io/finalizers", "admission of owner references"),
    ("", "get", "namespaces", "deletion of a plan without its namespace"),
    ("default", "patch", "events", "a repeated event"),
    ("", "list watch", "pods", "a drain that does not end"),
    *(("", "list", kind, "a webhook that a remedy advised to delete") for kind in WEBHOOK_CONFIGURATIONS),
    ("", "list watch", "poddisruptionbudgets.policy", "a drain that does not end"),
    ("", "watch", "virtualmachineinstances.kubevirt.io", "a VM that does not leave its node"),
    ("", "list", "virtualmachines.kubevirt.io", "a VM that was stopped for the upgrade"),
    ("", "list watch", "virtualmachineinstancemigrations.kubevirt.io", "a VM that does not leave its node"),
    (
        "harvester-system",
        "patch",
        "kubevirts.kubevirt.io",
        "update methods that Harvester's toolkit emptied itself",
    ),
    ("longhorn-system", "list watch", "volumes.longhorn.io", "a pre-drain Job that waits for volumes"),
    ("longhorn-system", "list watch", "engines.longhorn.io", "a pre-drain Job that waits for volumes"),
    ("harvester-system", "list watch", "serviceaccounts", "a Job whose Pods are refused"),
    ("cattle-system", "list watch", "serviceaccounts", "a Job whose Pods are refused"),
    ("harvester-system", "list watch", "persistentvolumeclaims", "an import without progress"),
    ("harvester-system", "list watch", "datavolumes.cdi.kubevirt.io", "an import without progress"),
    ("harvester-system", "get create update", "leases.coordination.k8s.io", "leader election"),
    ("harvester-system", "list", "pods", "the termination message of a failed Job"),
    ("harvester-system", "list watch", "events", "a Job that has no Pod"),
    ("cattle-system", "list", "pods", "the termination message of a failed Job"),
    ("cattle-system", "list watch", "events", "a Plan whose Jobs do not start"),
    ("harvester-system", "watch", "pods", "a Job whose Pod does not start"),
    ("cattle-system", "watch", "pods", "a Job whose Pod does not start"),
    ("cattle-system", "list watch", "deployments.apps", "a Plan without Jobs, and Rancher"),
    ("cattle-system", "patch", "jobs.batch", "the failed Jobs of a failed plan, to keep them"),
    ("cattle-system", "deletecollection", "jobs.batch", "the same, when the plan is deleted"),
    ("harvester-system", "delete", "jobs.batch", "the Jobs of a failed plan, less those that failed"),
    ("harvester-system", "patch", "jobs.batch", "a paused node, and the running Jobs of a deleted plan"),
    ("fleet-local", "create", "events", "a plan that ends before all nodes are upgraded"),
    ("fleet-local", "patch", "events", "the same, repeated"),
    ("harvester-system", "delete", "configmaps", "the list of VMs, at the end"),
    ("harvester-system", "get", "persistentvolumeclaims", "the volume of spec.image"),
    ("harvester-system", "get", "jobs.batch", "an object that exists"),
    ("harvester-system", "get", "deployments.apps", "an object that exists"),
    ("harvester-system", "patch", "deployments.apps", "a repository that a user scaled down"),
    ("cattle-system", "get", "plans.upgrade.cattle.io", "nodes with an earlier Plan's label"),
    ("harvester-system", "get", "services", "a Service that has no endpoint, or exists"),
    ("harvester-system", "patch", "services", "the repository of the running Jobs of a deleted plan"),
    ("harvester-system", "get", "virtualmachineimages.harvesterhci.io", "an object that exists"),
    ("harvester-system", "patch", "virtualmachineimages.harvesterhci.io", "the same as for its Service"),
]


@pytest.mark.rule(
    "nodes: acknowledging changes two annotations of the Secret, whose data is never read",
    "workloads: a Plan is never updated after its creation",
)
@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        # Its Jobs would start again.
        pytest.param("plans.upgrade.cattle.io", {"update", "patch"}, id="a Plan is not edited"),
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


@pytest.mark.full
async def test_every_request_is_permitted_and_every_permission_used() -> None:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        # The clean-up follows the end.
        await asyncio.sleep(10)
        calls = [authorized(exchange.request) for exchange in upgrade.recorder.of(MANAGER)]
    permissions = list(granted(ROLE))
    assert [call for call in calls if not any(permission.permits(call) for permission in permissions)] == []
    unused = {permission[:3] for permission in permissions if not any(permission.permits(call) for call in calls)}
    assert unused == {(namespace, name, verb) for namespace, verbs, name, _ in RARELY_USED for verb in verbs.split()}


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


#: Kinds that the leader must not change: admission.
ADMISSION = {
    *WEBHOOK_CONFIGURATIONS,
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
}


@pytest.mark.rule("admission: the manager's account can change neither the webhook's certificate nor its configuration")
def test_manager_has_no_permission_of_the_webhook() -> None:
    manager = [*granted(ROLE)]
    admission = {(one.resource, one.verb) for one in manager if one.resource in ADMISSION}
    assert admission == {(kind, "list") for kind in WEBHOOK_CONFIGURATIONS}
    assert not [one for one in manager if (one.resource, one.namespace) == ("secrets", "harvester-system")]
    own = {(one.resource, one.verb) for one in manager}
    of_checks = {one.resource for one in of_webhook() if (one.resource, one.verb) not in own}
    assert of_checks == {
        "settings.harvesterhci.io",
        "schedulevmbackups.harvesterhci.io",
        "virtualmachinebackups.harvesterhci.io",
        "versions.harvesterhci.io",
        "features.management.cattle.io",
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
        # Only of cordoned nodes the checks read the machine-plan Secrets.
        await simulation.client().patch(NODES, "node-0", MergePatch({"spec": {"unschedulable": True}}))
        for spec in ({"version": "v1.8.0"}, {"image": "harvester-system/iso"}):
            plan = Subject.of({"metadata": {"name": "demo"}, "spec": spec}, cluster=LiveReader(client), toolkit=TOOLKIT)
            await run_checks(CHECKS, plan)
        await simulation.client().patch(NODES, "node-0", MergePatch({"spec": {"unschedulable": False}}))
        await fill_caches(client)
        await ApiServers(client, Peers()).refresh()
        await authorize_scraper(simulation, client)
    permissions, calls = list(of_webhook()), [authorized(one.request) for one in recorder.exchanges]
    assert [call for call in calls if not any(one.permits(call) for one in permissions)] == []
    assert [one for one in permissions if not any(one.permits(call) for call in calls)] == []
