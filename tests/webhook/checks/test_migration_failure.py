from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader
from tests.support.webhook.webhook import NO_CACHES
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND, ToolkitKind
from upgrade_manager.api.toolkit_image import ToolkitConfig
from webhook.admission import Admission
from webhook.check import Check, Subject
from webhook.checks import migration_failure
from webhook.review import PLAN_KIND, AdmissionRequest
from webhook.runner import run_checks

HARVESTERS = ToolkitConfig(version="0.1.0")
OWN = ToolkitConfig(version="0.1.0", kind=ToolkitKind.OWN, image=ImageName(repository="me/own"))
TO_OWN = {ANNOTATION_TOOLKIT_KIND: "own", ANNOTATION_TOOLKIT_IMAGE: "rancher/harvester-upgrade-toolkit"}
TO_HARVESTERS = {ANNOTATION_TOOLKIT_KIND: "harvester"}
#: Kind own without an image, which the check of the toolkit image refuses.
NO_IMAGE = {ANNOTATION_TOOLKIT_KIND: "own"}
REFUSED = (
    "spec.nodeUpgradeOption.onMigrationFailure is Wait, and Harvester's toolkit (kind harvester) cannot wait: it stops "
    "each VM whose migration fails. Set it to Stop or remove it, or create a plan with the manager's own toolkit "
    "(annotation management.harvesterhci.io/upgrade-toolkit-kind: own, or the manager's --toolkit-kind own)"
)


def plan(policy: str, annotations: dict[str, str], status: dict[str, Any] | None = None) -> dict[str, Any]:
    option = {"nodeUpgradeOption": {"onMigrationFailure": policy}} if policy else {}
    metadata = {"name": "demo", "annotations": annotations}
    return {"metadata": metadata, "spec": {"version": "v1.8.0", **option}, "status": status or {}}


async def messages(check: Check, found: object, config: ToolkitConfig) -> list[str]:
    (result,) = await run_checks([check], Subject.of(found, cluster=MemoryReader({}), toolkit=config))
    assert {one.field for one in result.findings} <= {"spec.nodeUpgradeOption.onMigrationFailure"}
    return [one.message for one in result.findings]


@pytest.mark.rule("admission: Wait is denied with Harvester's toolkit, which cannot wait, on create and update")
@pytest.mark.parametrize(
    ("policy", "annotations", "config", "denied"),
    [
        pytest.param("Wait", {}, HARVESTERS, True, id="flag"),
        pytest.param("Wait", TO_HARVESTERS, OWN, True, id="annotation"),
        pytest.param("Wait", {}, OWN, False, id="own by flag"),
        pytest.param("Wait", TO_OWN, HARVESTERS, False, id="own by annotation"),
        pytest.param("Stop", {}, HARVESTERS, False, id="Stop"),
        pytest.param("", {}, HARVESTERS, False, id="absent"),
        pytest.param("wait", {}, HARVESTERS, False, id="refused by the schema"),
        pytest.param("Wait", NO_IMAGE, HARVESTERS, False, id="refused by another check"),
    ],
)
async def test_new_plan_with_wait(
    policy: str,
    annotations: dict[str, str],
    config: ToolkitConfig,
    denied: bool,  # noqa: FBT001  # a case
) -> None:
    found = await messages(migration_failure.CHECK, plan(policy, annotations), config)
    assert found == ([REFUSED] if denied else [])


def recorded(kind: str, phase: str = "NodeUpgrading") -> dict[str, Any]:
    return {"toolkitImage": {"repository": "r", "tag": "t", "kind": kind}, "currentPhase": phase}


UPDATES = [
    pytest.param(plan("", {}, recorded("harvester")), plan("Wait", {}), HARVESTERS, True, id="set"),
    pytest.param(plan("Stop", {}, recorded("harvester")), plan("Wait", {}), HARVESTERS, True, id="changed"),
    pytest.param(plan("Wait", {}, recorded("harvester")), plan("Stop", {}), HARVESTERS, False, id="back to Stop"),
    pytest.param(plan("", {}, recorded("own")), plan("Wait", {}), HARVESTERS, False, id="recorded kind"),
    pytest.param(plan("", {}, recorded("harvester")), plan("Wait", TO_OWN), HARVESTERS, True, id="too late"),
    pytest.param(plan("", {}), plan("Wait", {}), HARVESTERS, True, id="not recorded"),
    pytest.param(plan("Wait", {}), plan("Wait", TO_HARVESTERS), OWN, True, id="new kind"),
    pytest.param(plan("", {}, recorded("own", "Failed")), plan("Wait", {}), HARVESTERS, True, id="next attempt"),
    pytest.param(plan("Wait", {}, recorded("harvester")), plan("Wait", {"a": "b"}), HARVESTERS, False, id="unchanged"),
]


@pytest.mark.rule("admission: Wait is denied with Harvester's toolkit, which cannot wait, on create and update")
@pytest.mark.parametrize(("old", "new", "config", "denied"), UPDATES)
async def test_update_to_wait(
    old: dict[str, Any],
    new: dict[str, Any],
    config: ToolkitConfig,
    denied: bool,  # noqa: FBT001  # a case
) -> None:
    admission = Admission(MemoryReader({}), caches=NO_CACHES, toolkit=config)
    new = {**new, "status": old["status"]}
    request = AdmissionRequest(
        uid="1", operation="UPDATE", kind=PLAN_KIND, subresource="", name="demo", new=new, old=old
    )
    found = [one.message for one in (await admission.decide(request)).findings]
    assert found == ([REFUSED] if denied else [])
