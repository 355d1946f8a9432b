"""Changes of Harvester's chart and of KubeVirt that are refused to a stolen token of the manager."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.cluster.guarded_cluster import GuardedCluster
from tests.support.managers.manager_requests import RBAC, Request, check, delete, meta, patch, row
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import ANNOTATION_UPDATE_METHODS, FLEET_LOCAL, HARVESTER_SYSTEM
from upgrade_manager.kube.resources import KUBEVIRTS, MANAGED_CHARTS

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
HELD: dict[str, Any] = {"finalizers": ["a/b"]}
METADATA: dict[str, dict[str, Any]] = {
    "annotate": {"annotations": {"example.com/x": "y"}},
    "remove an annotation of": {"annotations": {"example.com/label-0999": None}},
    "label": {"labels": {"a": "b"}},
    "hold": HELD,
    "own": {"ownerReferences": [OWNER]},
}
#: The exception for KubeVirt and another entry, as the chart has them.
OWN = {
    "kind": "KubeVirt",
    "name": "kubevirt",
    "jsonPointers": ["/spec/workloadUpdateStrategy/workloadUpdateMethods"],
}
OTHER = {"kind": "Service", "name": "x"}

chart = partial(patch, MANAGED_CHARTS, "harvester", FLEET_LOCAL)
kubevirt = partial(patch, KUBEVIRTS, "kubevirt", HARVESTER_SYSTEM)


def values(**fields: Any) -> Request:
    """Change values of Harvester's chart."""
    return chart(spec={"values": fields})


def deployed(**fields: Any) -> Request:
    """Change values of KubeVirt's spec in Harvester's chart."""
    return values(kubevirt={"spec": fields})


def methods(*names: str) -> dict[str, Any]:
    """Return fields of KubeVirt's spec."""
    return {"workloadUpdateStrategy": {"workloadUpdateMethods": [*names]}}


def compared(*entries: dict[str, Any]) -> Request:
    """Replace the exceptions of Harvester's chart."""
    return chart(spec={"diff": {"comparePatches": [*entries]}})


EMPTIED, GIVEN_BACK = deployed(**methods()), deployed(**methods("Evict"))
REMOVED = compared(OTHER)
BATCH = {"workloadUpdateStrategy": {"batchEvictionSize": 9}}
value = partial(row, "managed-charts", "only the update methods of KubeVirt in a ManagedChart")
exception = partial(row, "managed-charts", "only exceptions for KubeVirt")
chart_metadata = partial(row, "managed-charts", "does not change the metadata of a ManagedChart")
own_list = partial(row, "kubevirts", "only the update methods of a KubeVirt")
CHART_ROWS = [
    value("change the version of the chart", chart(spec={"version": "9"}), EMPTIED),
    value("install another chart", chart(spec={"chart": "evil"}), GIVEN_BACK),
    value("pause the chart", chart(spec={"paused": True}), EMPTIED),
    value("change another value", values(large="x"), EMPTIED),
    value("add a value", values(evil={"image": "x"}), GIVEN_BACK),
    value("remove a value", values(large=None), deployed(workloadUpdateStrategy={"workloadUpdateMethods": None})),
    value("remove KubeVirt's values", values(kubevirt=None), EMPTIED),
    value("switch KubeVirt off", values(kubevirt={"enabled": False}), EMPTIED),
    value("change KubeVirt's monitoring", deployed(monitorAccount="evil"), EMPTIED),
    value("change the size of KubeVirt's batches", deployed(**BATCH), EMPTIED),
    exception("except another kind", compared(OWN, OTHER, {"kind": "Secret", "name": "x"}), REMOVED),
    exception("replace an entry of another kind", compared(OWN), REMOVED),
    exception("remove all other exceptions", chart(spec={"diff": None}), compared({**OWN, "jsonPointers": []}, OTHER)),
    exception("ignore another field", chart(spec={"diff": {"ignore": "x"}}), REMOVED),
    *(chart_metadata(f"{verb} the chart", chart(**meta(**fields)), EMPTIED) for verb, fields in METADATA.items()),
    row(
        RBAC,
        "cannot patch",
        "change another chart",
        patch(MANAGED_CHARTS, "harvester-crd", FLEET_LOCAL, spec={"paused": True}),
        chart(**meta(annotations={ANNOTATION_UPDATE_METHODS: None})),
    ),
    row(RBAC, "cannot delete", "delete the chart", delete(MANAGED_CHARTS, "harvester", FLEET_LOCAL), EMPTIED),
]
FILLED = kubevirt(spec=methods("LiveMigrate", "Evict"))
KUBEVIRT_ROWS = [
    own_list("change KubeVirt's monitoring", kubevirt(spec={"monitorAccount": "evil"}), FILLED),
    own_list("change KubeVirt's configuration", kubevirt(spec={"configuration": {"machineType": "x"}}), FILLED),
    own_list("change KubeVirt's batches", kubevirt(spec=BATCH), kubevirt(spec=methods())),
    *(
        own_list(f"{verb} KubeVirt", kubevirt(**meta(**fields)), FILLED)
        for verb, fields in METADATA.items()
        if None not in fields.get("annotations", {}).values()
    ),
    row(RBAC, "cannot delete", "delete KubeVirt", delete(KUBEVIRTS, "kubevirt", HARVESTER_SYSTEM), FILLED),
]


@pytest.mark.parametrize(("policy", "text", "abuse", "permitted"), [*CHART_ROWS, *KUBEVIRT_ROWS])
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)
