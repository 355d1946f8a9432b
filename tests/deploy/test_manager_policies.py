"""Changes that are refused to a stolen token of the manager, on the real API server, beside one that is permitted."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.cluster.guarded_cluster import REPO, RUNNING, GuardedCluster
from tests.support.managers.manager_requests import (
    RBAC,
    Request,
    check,
    create,
    delete,
    delete_all,
    label,
    more,
    patch,
    row,
    secret,
    spec,
)
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM, LABEL_PLAN_UID
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    SECRETS,
    SERVICES,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

UID = {LABEL_PLAN_UID: "{uid}"}
NO_OWNER: dict[str, Any] = {"ownerReferences": None}
NO_CONTROLLER = {"upgrade.cattle.io/controller": None}
EVIL_POD = {"template": {"spec": {"containers": [{"name": "repo", "image": "docker.io/evil/image:v1"}]}}}
RANCHER_TOKEN = delete(SECRETS, "rancher-token", CATTLE_SYSTEM)
OF_RANCHER = {"kubernetes.io/service-account.name": "rancher"}
TOKEN = secret(type="kubernetes.io/service-account-token", annotations=OF_RANCHER)

foreign = partial(row, "objects", "only objects of an UpgradePlan")
stays = partial(row, "objects", "upgrade-plan-uid stays")
metadata_only = partial(row, "objects", "changes only metadata")


def change(resource: Resource, name: str, **fields: Any) -> Request:
    """Change an object in harvester-system."""
    return patch(resource, name, HARVESTER_SYSTEM, **fields)


def mark(resource: Resource, name: str, namespace: str = HARVESTER_SYSTEM, **metadata: Any) -> Request:
    """Change fields of an object's metadata."""
    return patch(resource, name, namespace, metadata=metadata)


def drop(resource: Resource, name: str) -> Request:
    """Delete an object in harvester-system."""
    return delete(resource, name, HARVESTER_SYSTEM)


def own(resource: Resource, namespace: str = HARVESTER_SYSTEM) -> Request:
    """Delete the objects of the active plan."""
    return delete_all(resource, namespace, selector=f"{LABEL_PLAN_UID}={{uid}}")


def claim(name: str, value: str | None, namespace: str = HARVESTER_SYSTEM) -> Request:
    """Change the label with the uid of a Job's plan."""
    return mark(JOBS, name, namespace, labels={LABEL_PLAN_UID: value})


ALL_SECRETS, OWN_SECRETS = delete_all(SECRETS, CATTLE_SYSTEM), own(SECRETS, CATTLE_SYSTEM)
UNLABELLED_SECRETS = delete_all(SECRETS, CATTLE_SYSTEM, selector=f"!{LABEL_PLAN_UID}")
ADOPTED = mark(JOBS, "early", labels=UID, **NO_OWNER)
EARLY = "early-preload-failed"
REPO_WITHOUT_OWNER = mark(DEPLOYMENTS, REPO, **NO_OWNER)
ALL_DEPLOYMENTS, ALL_IMAGES = (delete_all(kind, HARVESTER_SYSTEM) for kind in (DEPLOYMENTS, VIRTUAL_MACHINE_IMAGES))
INSIDE = create(SERVICES, GuardedCluster.service, more)
OUTSIDE = create(SERVICES, GuardedCluster.service, spec(externalIPs=["192.0.2.1"]))
EVIL_IMAGE = change(DEPLOYMENTS, "harvester", spec=EVIL_POD)
RESTORE_VM = "upgrade-restore-vm"

OBJECTS = [
    foreign("delete all Secrets of cattle-system", ALL_SECRETS, OWN_SECRETS),
    foreign("delete one Secret of cattle-system", UNLABELLED_SECRETS, OWN_SECRETS),
    row(RBAC, "cannot delete", "delete a Secret of cattle-system by name", RANCHER_TOKEN, OWN_SECRETS),
    row("objects", "only Secrets of type Opaque", "create a token of an account", TOKEN, secret(type="Opaque")),
    row("objects", "creates only objects", "create a Secret without label", secret(label("")), secret()),
    foreign("delete Jobs of others", delete_all(JOBS, HARVESTER_SYSTEM), own(JOBS)),
    foreign("delete a Job of others", drop(JOBS, "foreign"), drop(JOBS, RUNNING)),
    foreign("claim a Job of others", claim("foreign", "{uid}"), ADOPTED),
    stays("claim a Job of an earlier version for another plan", claim("early", "other"), ADOPTED),
    stays("change the uid of a Job", claim(RUNNING, "other"), mark(JOBS, RUNNING, labels={"other": "x"}, **NO_OWNER)),
    stays("remove the uid of a Job", claim(RUNNING, None), change(JOBS, RUNNING, spec={"ttlSecondsAfterFinished": 60})),
    foreign(
        "change a Job of others in cattle-system",
        mark(JOBS, "foreign", CATTLE_SYSTEM, labels={"a": "b"}),
        mark(JOBS, "preload-failed", CATTLE_SYSTEM, labels=NO_CONTROLLER),
    ),
    stays(
        "claim a Job of an earlier Plan",
        claim(EARLY, "other", CATTLE_SYSTEM),
        mark(JOBS, EARLY, CATTLE_SYSTEM, labels=NO_CONTROLLER),
    ),
    stays(
        "claim an orphaned Job of an earlier version", claim("early-orphaned", "other"), drop(JOBS, "early-orphaned")
    ),
    foreign(
        "scale Harvester",
        change(DEPLOYMENTS, "harvester", spec={"replicas": 0}),
        change(DEPLOYMENTS, REPO, spec={"replicas": 2}),
    ),
    row(("objects", "pods"), "the upgrade manager ", "change the image of Harvester", EVIL_IMAGE, REPO_WITHOUT_OWNER),
    foreign("delete Harvester", ALL_DEPLOYMENTS, own(DEPLOYMENTS)),
    foreign("delete Services of others", delete_all(SERVICES, HARVESTER_SYSTEM), own(SERVICES)),
    metadata_only(
        "change the selector of the repository's Service",
        change(SERVICES, REPO, spec={"selector": {"app": "evil"}}),
        mark(SERVICES, REPO, **NO_OWNER),
    ),
    row("objects", "without externalIPs", "create a Service with an address outside", OUTSIDE, INSIDE),
    foreign("delete images of users", ALL_IMAGES, own(VIRTUAL_MACHINE_IMAGES)),
    metadata_only(
        "change the source of an image",
        change(VIRTUAL_MACHINE_IMAGES, "iso", spec={"url": "http://evil/iso"}),
        mark(VIRTUAL_MACHINE_IMAGES, "iso", **NO_OWNER),
    ),
    foreign("delete ConfigMaps of others", drop(CONFIG_MAPS, "harvester"), drop(CONFIG_MAPS, RESTORE_VM)),
    foreign(
        "change ConfigMaps of others",
        change(CONFIG_MAPS, "harvester", data={"a": "c"}),
        mark(CONFIG_MAPS, RESTORE_VM, labels=UID, **NO_OWNER),
    ),
]


@pytest.mark.parametrize(("policy", "text", "abuse", "permitted"), OBJECTS)
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)
