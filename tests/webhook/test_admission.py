"""The verdicts about requests for plans."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.webhook import webhook
from tests.support.webhook.webhook import EmptyCluster
from upgrade_manager.api.keys import ANNOTATION_TOOLKIT_IMAGE as IMAGE
from upgrade_manager.api.keys import ANNOTATION_TOOLKIT_KIND as KIND
from upgrade_manager.api.keys import PREFIX
from upgrade_manager.api.spec import MAX_NODES
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from webhook.admission import Admission
from webhook.check import Check, Finding, Subject
from webhook.cluster import LiveReader
from webhook.review import PLAN_KIND, AdmissionRequest, Verdict


def request(operation: str, *, new: object = None, old: object = None) -> AdmissionRequest:
    return AdmissionRequest(uid="1", operation=operation, kind=PLAN_KIND, subresource="", name="demo", new=new, old=old)


def plan(*, annotations: dict[str, str] | None = None, status: Object | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "demo", "annotations": annotations or {}}, "spec": spec, "status": status or {}}


def progressing(phase: str, **annotations: str) -> Object:
    conditions = [{"type": "Progressing", "status": "True"}]
    status = {"currentPhase": phase, "conditions": conditions}
    return plan(annotations={f"{PREFIX}/{key}": value for key, value in annotations.items()}, status=status)


def messages(verdict: Verdict) -> list[str]:
    return [f"{finding.field}: {finding.message}" for finding in verdict.findings]


@pytest.fixture
async def simulation() -> AsyncIterator[Simulation]:
    async with Simulation(actors=False) as simulation:
        yield simulation


@pytest.fixture
def admission(simulation: Simulation) -> Admission:
    return webhook.admission(reader=LiveReader(simulation.client()))


async def test_all_reasons_are_given_at_once(simulation: Simulation, admission: Admission) -> None:
    await simulation.client().patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": True}}))
    created = plan(version="v9", nodeUpgradeOption={"pauseNodes": ["node-0", "node-9"]})
    assert messages(await admission.decide(request("CREATE", new=created))) == [
        (
            "spec.version: Version harvester-system/v9 does not exist. Create it, or create a plan for one of: "
            "kubectl get versions.harvesterhci.io -n harvester-system"
        ),
        "spec.nodeUpgradeOption.pauseNodes[1]: Node node-9 does not exist. Correct the name, or remove it",
        "spec: Node node-1 is cordoned. Uncordon it: kubectl uncordon node-1",
    ]


async def test_update_checks_added_names_only(admission: Admission) -> None:
    old = plan(nodeUpgradeOption={"pauseNodes": ["node-8"]})
    new = plan(nodeUpgradeOption={"pauseNodes": ["node-0", "node-8", "node-9"]})
    assert messages(await admission.decide(request("UPDATE", new=new, old=old))) == [
        "spec.nodeUpgradeOption.pauseNodes[2]: Node node-9 does not exist. Correct the name, or remove it"
    ]


@pytest.mark.rule("nodes: a pause of a node whose upgrade has started is a warning at admission and an event")
async def test_pause_that_comes_too_late_is_a_warning(admission: Admission) -> None:
    old = {**plan(), "status": {"nodeUpgradeStatuses": {"node-0": {"state": "PreDraining"}, "node-1": {"state": ""}}}}
    new = {**plan(nodeUpgradeOption={"pauseNodes": ["node-0", "node-1"]}), "status": old["status"]}
    verdict = await admission.decide(request("UPDATE", new=new, old=old))
    late = "Node node-0 is in pauseNodes and is not paused: its upgrade has started (PreDraining)"
    assert (verdict.is_allowed, [*verdict.warnings]) == (True, [late])


def begun(status: dict[str, Any], *points: str) -> Object:
    """Return a plan whose nodes are upgraded, with the points of pauseBefore."""
    return {**plan(nodeUpgradeOption={"pauseBefore": [*points]}), "status": {"currentPhase": "NodeUpgrading", **status}}


DRAINED_LATE = (
    "Node node-0 (PreDraining) is not held before its drain once its Job has begun: "
    "pauseBefore Drain holds nodes that begin later only"
)
REBOOTS_LATE = (
    "({}) is not held before its reboot once its Job has begun: pauseBefore Reboot holds Jobs that begin later only"
)
HELD = {"holds": "before the drain of node-0"}


@pytest.mark.rule("control: a hold that is added too late for a node is a warning of the webhook, which names the node")
@pytest.mark.parametrize(
    ("entries", "more", "late"),
    [
        pytest.param({"node-0": {"state": "PreDraining"}}, {}, [DRAINED_LATE], id="drain"),
        *(
            pytest.param({"node-1": {"state": state}}, {}, [f"Node node-1 {REBOOTS_LATE.format(state)}"], id=state)
            for state in ("PostDraining", "WaitingReboot")
        ),
        pytest.param({"node-0": {"state": "PreDrained"}}, {}, [], id="before its Job"),
        pytest.param({"node-0": {"state": "PostDraining", "holds": "Reboot"}}, {}, [], id="holds"),
        pytest.param({"node-0": {"state": "PostDraining"}}, HELD, [], id="paused before its Job"),
        pytest.param({"node-0": {"state": "PostDraining"}}, {"currentPhase": "Initializing"}, [], id="attempt begins"),
        pytest.param({"node-0": {"state": "PostDrained"}}, {}, [], id="upgraded"),
    ],
)
async def test_hold_that_comes_too_late_is_a_warning(
    admission: Admission, entries: dict[str, Any], more: dict[str, Any], late: list[str]
) -> None:
    status = {"nodeUpgradeStatuses": {**entries, "node-9": {"state": ""}}, **more}
    old, new = begun(status), begun(status, "Drain", "Reboot")
    verdict = await admission.decide(request("UPDATE", new=new, old=old))
    assert (verdict.is_allowed, [*verdict.warnings]) == (True, late)
    assert await admission.decide(request("UPDATE", new=new, old=new)) == Verdict()


async def test_hold_of_an_only_node_that_comes_too_late(admission: Admission) -> None:
    status = {"nodeUpgradeStatuses": {"node-0": {"state": "SingleNodeUpgrading"}}}
    verdict = await admission.decide(request("UPDATE", new=begun(status, "Reboot"), old=begun(status)))
    assert [*verdict.warnings] == [f"Node node-0 {REBOOTS_LATE.format('SingleNodeUpgrading')}"]


@pytest.mark.rule("admission: an update is checked only for added pauses and a changed toolkit image")
@pytest.mark.parametrize(
    ("new", "old", "denied"),
    [
        pytest.param({IMAGE: "evil/toolkit"}, {}, True, id="set"),
        pytest.param({IMAGE: "evil/toolkit"}, {IMAGE: "rancher/harvester-upgrade-toolkit"}, True, id="changed"),
        pytest.param({KIND: "none"}, {}, True, id="kind"),
        pytest.param({IMAGE: "rancher/harvester-upgrade-toolkit"}, {}, False, id="permitted"),
        pytest.param({}, {IMAGE: "evil/toolkit"}, False, id="removed"),
        pytest.param({IMAGE: "evil/toolkit", "a": "b"}, {IMAGE: "evil/toolkit"}, False, id="unchanged"),
    ],
)
async def test_update_checks_a_changed_toolkit_image(
    admission: Admission, new: dict[str, str], old: dict[str, str], *, denied: bool
) -> None:
    plans = {"new": plan(annotations=new), "old": plan(annotations=old)}
    verdict = await admission.decide(request("UPDATE", **plans))
    assert [message.startswith("metadata.annotations") for message in messages(verdict)] == [True] * denied


LONG = plan(nodeUpgradeOption={"pauseNodes": [f"node-{index}" for index in range(MAX_NODES + 1)]})
DELETED = plan(nodeUpgradeOption={"pauseNodes": ["node-9"]})
DELETED["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"


@pytest.mark.rule("admission: an update is checked only for added pauses and a changed toolkit image")
@pytest.mark.parametrize(
    ("operation", "new", "old"),
    [
        pytest.param("UPDATE", {**LONG, "metadata": {"name": "demo", "finalizers": []}}, LONG, id="a list too long"),
        pytest.param("UPDATE", DELETED, plan(), id="a deleted plan"),
        pytest.param("CREATE", plan(version="v9", annotations={f"{PREFIX}/skip-webhook": "true"}), None, id="skipped"),
    ],
)
async def test_plan_is_accepted_without_a_check(
    admission: Admission, operation: str, new: Object, old: Object | None
) -> None:
    assert await admission.decide(request(operation, new=new, old=old)) == Verdict()


ALLOW_DELETION = (
    "UpgradePlan demo is in progress (phase ImagePreloading). To delete it, first run kubectl annotate --overwrite "
    f"upgradeplans.{PREFIX} demo {PREFIX}/allow-deletion=true"
)

UNDELETABLE = (
    "UpgradePlan demo cannot be deleted in phase {}. Wait until the phase has ended: "
    f"kubectl get upgradeplans.{PREFIX} demo --watch"
)


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(plan(), "", id="not started"),
        pytest.param(progressing("ImagePreloading", **{"allow-deletion": "true"}), "", id="allowed"),
        pytest.param(progressing("ImagePreloading"), ALLOW_DELETION, id="in progress"),
        pytest.param(progressing("ImagePreloading", **{"allow-deletion": "false"}), ALLOW_DELETION, id="not allowed"),
        *(
            pytest.param(progressing(phase, **{"allow-deletion": "true"}), UNDELETABLE.format(phase), id=phase)
            for phase in ("NodeUpgrading", "ClusterUpgrading")
        ),
    ],
)
async def test_deletion(admission: Admission, old: Object, expected: str) -> None:
    verdict = await admission.decide(request("DELETE", old=old))
    assert [finding.message for finding in verdict.findings] == ([expected] if expected else [])


class RecordingCaches:
    """Records when the caches are to be filled."""

    def __init__(self) -> None:
        self.starts = 0

    async def reader(self) -> None:
        pass

    def start(self) -> None:
        self.starts += 1


async def test_caches_are_filled_after_the_last_of_several_reviews() -> None:
    async def wait(subject: Subject) -> list[Finding]:
        await asyncio.sleep(int(subject.spec.version or 0))
        return []

    caches = RecordingCaches()
    check = Check(name="slow", field="spec", find=wait)
    admission = Admission(EmptyCluster(), caches=caches, toolkit=TOOLKIT, checks=[check])
    async with asyncio.TaskGroup() as group:
        reviews = [group.create_task(admission.decide(request("CREATE", new=plan(version=end)))) for end in "123"]
        await asyncio.sleep(2.5)
        assert ([review.done() for review in reviews], caches.starts) == ([True, True, False], 0)
    assert caches.starts == 1
