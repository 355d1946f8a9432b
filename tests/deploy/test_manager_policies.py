"""What a stolen token of the manager may not change: each attempt on the real API server, and one that is permitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    meta,
    more,
    patch,
    row,
    secret,
    spec,
)
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM, LABEL_PLAN_UID
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    SECRETS,
    SERVICES,
    VIRTUAL_MACHINE_IMAGES,
)

if TYPE_CHECKING:
    from tests.support.server.raw_client import RawClient

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

hs = {"namespace": HARVESTER_SYSTEM}
OWN = f"{LABEL_PLAN_UID}={{uid}}"
FOREIGN = "only objects of an UpgradePlan"
STAYS = "upgrade-plan-uid stays"
METADATA_ONLY = "changes only metadata"
EVIL_POD = {"template": {"spec": {"containers": [{"name": "repo", "image": "docker.io/evil/image:v1"}]}}}


OBJECTS = [
    row(
        "delete all Secrets of cattle-system",
        "objects",
        FOREIGN,
        delete_all(SECRETS, CATTLE_SYSTEM),
        delete_all(SECRETS, CATTLE_SYSTEM, selector=OWN),
    ),
    row(
        "delete one Secret of cattle-system",
        "objects",
        FOREIGN,
        delete_all(SECRETS, CATTLE_SYSTEM, selector=f"!{LABEL_PLAN_UID}"),
        delete_all(SECRETS, CATTLE_SYSTEM, selector=OWN),
    ),
    row(
        "delete a Secret of cattle-system by name",
        RBAC,
        "cannot delete",
        delete(SECRETS, "rancher-token", CATTLE_SYSTEM),
        delete_all(SECRETS, CATTLE_SYSTEM, selector=OWN),
    ),
    row(
        "create a token of another service account",
        "objects",
        "only Secrets of type Opaque",
        secret(
            type="kubernetes.io/service-account-token",
            annotations={"kubernetes.io/service-account.name": "rancher"},
        ),
        secret(type="Opaque"),
    ),
    row(
        "create a Secret without label",
        "objects",
        "creates only objects",
        secret(label("")),
        secret(),
    ),
    row(
        "delete Jobs of others",
        "objects",
        FOREIGN,
        delete_all(JOBS, HARVESTER_SYSTEM),
        delete_all(JOBS, HARVESTER_SYSTEM, selector=OWN),
    ),
    row("delete a Job of others", "objects", FOREIGN, delete(JOBS, "foreign", **hs), delete(JOBS, RUNNING, **hs)),
    row(
        "claim a Job of others",
        "objects",
        FOREIGN,
        patch(JOBS, "foreign", **hs, **meta(labels={LABEL_PLAN_UID: "{uid}"})),
        patch(JOBS, "early", **hs, **meta(labels={LABEL_PLAN_UID: "{uid}"}, ownerReferences=None)),
    ),
    row(
        "claim a Job of an earlier version for another plan",
        "objects",
        STAYS,
        patch(JOBS, "early", **hs, **meta(labels={LABEL_PLAN_UID: "other"})),
        patch(JOBS, "early", **hs, **meta(ownerReferences=None, labels={LABEL_PLAN_UID: "{uid}"})),
    ),
    row(
        "change the uid of a Job",
        "objects",
        STAYS,
        patch(JOBS, RUNNING, **hs, **meta(labels={LABEL_PLAN_UID: "other"})),
        patch(JOBS, RUNNING, **hs, **meta(labels={"other": "x"}, ownerReferences=None)),
    ),
    row(
        "remove the uid of a Job",
        "objects",
        STAYS,
        patch(JOBS, RUNNING, **hs, **meta(labels={LABEL_PLAN_UID: None})),
        patch(JOBS, RUNNING, **hs, spec={"ttlSecondsAfterFinished": 60}),
    ),
    row(
        "change a Job of others in cattle-system",
        "objects",
        FOREIGN,
        patch(JOBS, "foreign", CATTLE_SYSTEM, **meta(labels={"a": "b"})),
        patch(JOBS, "preload-failed", CATTLE_SYSTEM, **meta(labels={"upgrade.cattle.io/controller": None})),
    ),
    row(
        "claim a Job of an earlier Plan",
        "objects",
        STAYS,
        patch(JOBS, "early-preload-failed", CATTLE_SYSTEM, **meta(labels={LABEL_PLAN_UID: "other"})),
        patch(JOBS, "early-preload-failed", CATTLE_SYSTEM, **meta(labels={"upgrade.cattle.io/controller": None})),
    ),
    row(
        "claim an orphaned Job of an earlier version",
        "objects",
        STAYS,
        patch(JOBS, "early-orphaned", **hs, **meta(labels={LABEL_PLAN_UID: "other"})),
        delete(JOBS, "early-orphaned", **hs),
    ),
    row(
        "scale Harvester",
        "objects",
        FOREIGN,
        patch(DEPLOYMENTS, "harvester", **hs, spec={"replicas": 0}),
        patch(DEPLOYMENTS, REPO, **hs, spec={"replicas": 2}),
    ),
    row(
        "change the image of Harvester",
        ("objects", "pods"),
        "the upgrade manager ",
        patch(DEPLOYMENTS, "harvester", **hs, spec=EVIL_POD),
        patch(DEPLOYMENTS, REPO, **hs, **meta(ownerReferences=None)),
    ),
    row(
        "delete Harvester",
        "objects",
        FOREIGN,
        delete_all(DEPLOYMENTS, HARVESTER_SYSTEM),
        delete_all(DEPLOYMENTS, HARVESTER_SYSTEM, selector=OWN),
    ),
    row(
        "delete Services of others",
        "objects",
        FOREIGN,
        delete_all(SERVICES, HARVESTER_SYSTEM),
        delete_all(SERVICES, HARVESTER_SYSTEM, selector=OWN),
    ),
    row(
        "change the selector of the repository's Service",
        "objects",
        METADATA_ONLY,
        patch(SERVICES, REPO, **hs, spec={"selector": {"app": "evil"}}),
        patch(SERVICES, REPO, **hs, **meta(ownerReferences=None)),
    ),
    row(
        "create a Service with an address outside",
        "objects",
        "without externalIPs",
        create(SERVICES, GuardedCluster.service, spec(externalIPs=["192.0.2.1"])),
        create(SERVICES, GuardedCluster.service, more),
    ),
    row(
        "delete images of users",
        "objects",
        FOREIGN,
        delete_all(VIRTUAL_MACHINE_IMAGES, HARVESTER_SYSTEM),
        delete_all(VIRTUAL_MACHINE_IMAGES, HARVESTER_SYSTEM, selector=OWN),
    ),
    row(
        "change the source of an image",
        "objects",
        METADATA_ONLY,
        patch(VIRTUAL_MACHINE_IMAGES, "iso", **hs, spec={"url": "http://evil/iso"}),
        patch(VIRTUAL_MACHINE_IMAGES, "iso", **hs, **meta(ownerReferences=None)),
    ),
    row(
        "delete ConfigMaps of others",
        "objects",
        FOREIGN,
        delete(CONFIG_MAPS, "harvester", **hs),
        delete(CONFIG_MAPS, "upgrade-restore-vm", **hs),
    ),
    row(
        "change ConfigMaps of others",
        "objects",
        FOREIGN,
        patch(CONFIG_MAPS, "harvester", **hs, data={"a": "c"}),
        patch(CONFIG_MAPS, "upgrade-restore-vm", **hs, **meta(labels={LABEL_PLAN_UID: "{uid}"}, ownerReferences=None)),
    ),
]


@pytest.mark.parametrize(("policy", "text", "abuse", "permitted"), OBJECTS)
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)
