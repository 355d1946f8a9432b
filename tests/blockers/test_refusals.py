"""Writes that a webhook refuses: named after half a minute to the second, until they succeed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from hack import virtual_time
from hack.apiserver.status import StatusError
from hack.faults.forwarding import Forwarding
from hack.faults.rules import LoseRequest, Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.managers.upgrade import Ledger, UpgradeRun, condition, started
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.refusals import OVERDUE, Refusals
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError, WrittenObject

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request, Response, Transport

pytestmark = pytest.mark.sampled

#: Seconds after a deadline until its blocker is seen: its time is in whole seconds, and the plan is polled.
LATE = 1.5
NOW = datetime(2026, 1, 1, tzinfo=UTC)
REFUSAL = Refuse(status=403, reason="Forbidden", message="a webhook refuses the write")


def reasons(plan: Object) -> list[str]:
    return [blocker["reason"] for blocker in objects.status(plan).get("blockers") or []]


def seconds_late(blocker: Object) -> float:
    """Return the seconds since its deadline; `since` is in whole seconds."""
    since = parse_time(blocker["since"])
    assert since is not None
    return (virtual_time.virtual_now() - since - OVERDUE).total_seconds()


async def event_reasons(stage: UpgradeRun) -> list[str]:
    return [event["reason"] for event in await stage.events()]


@pytest.mark.rule("blockers: a refused write is named until it succeeds")
async def test_refused_write_is_named_until_it_succeeds() -> None:
    async with Simulation() as simulation, started(simulation) as stage:
        rule = Rule(match=Match(verbs=("create",), resource="plans.upgrade.cattle.io"), action=REFUSAL)
        simulation.middleware.add(rule)
        await stage.until("ImagePreloading")
        plan = await stage.until_plan(lambda plan: reasons(plan) == ["WriteRefused"])
        (blocker,) = objects.status(plan)["blockers"]
        assert 0 <= seconds_late(blocker) <= LATE
        assert (blocker["kind"], blocker["namespace"]) == ("Plan", "cattle-system")
        assert blocker["name"].startswith("upgrade-")
        assert "a webhook refuses the write" in blocker["message"]
        assert blocker["remedy"].startswith("(1) Check the manager's permissions (deploy/rbac): kubectl auth ")
        assert condition(plan, "Stalled")[:2] == ("True", "WriteRefused")
        simulation.middleware.remove(rule)
        plan = await stage.until_plan(lambda plan: not reasons(plan), seconds=30)
        assert not objects.condition(plan, "Stalled")
        await stage.succeed()
        assert [reason for reason in await event_reasons(stage) if "Refused" in reason or "Cleared" in reason] == [
            "WriteRefused",
            "BlockerCleared",
        ]


@pytest.mark.rule("blockers: a refused write is named until it succeeds")
async def test_refusal_that_passes_is_not_named() -> None:
    async with Simulation() as simulation, started(simulation) as stage:
        rule = Rule(match=Match(verbs=("create",), resource="plans.upgrade.cattle.io"), action=REFUSAL)
        simulation.middleware.add(rule)
        await stage.until_plan(lambda plan: condition(plan, "Degraded")[0] == "True")
        simulation.middleware.remove(rule)
        await stage.succeed()
        assert "WriteRefused" not in await event_reasons(stage)


@pytest.mark.rule("blockers: a webhook's configuration is saved before it is deleted")
async def test_webhook_that_refuses_is_named() -> None:
    refusal = Refuse(status=500, reason="InternalError", message='failed calling webhook "deny.example.com": refused')
    async with Simulation() as simulation, started(simulation) as stage:
        rule = Rule(match=Match(verbs=("create",), resource="plans.upgrade.cattle.io"), action=refusal)
        simulation.middleware.add(rule)
        plan = await stage.until_plan(lambda plan: reasons(plan) == ["WriteRefused"])
        (blocker,) = objects.status(plan)["blockers"]
        assert (
            blocker["message"]
            == "Webhook deny.example.com (refused) blocks creating Plan cattle-system/upgrade-image-preload"
        )
        start, save, delete = blocker["remedies"]
        assert start == {"text": 'Start the service of webhook "deny.example.com", or let it allow the write'}
        listing = (
            "kubectl get $(kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o go-template="
        )
        file = "webhook-deny.example.com.yaml"
        assert listing in save["command"]
        assert save["command"].startswith(f"(F={file}; ")
        assert save["command"].endswith(") -o yaml > $F)")
        assert (delete["command"], delete["undo"]) == (
            f"kubectl delete -f {file}",
            f"kubectl create -f {file}",
        )
        simulation.middleware.remove(rule)
        done = await stage.succeed()
        # As after the deletion: no configuration lists a webhook of this name.
        named = "Webhook deny.example.com: no configuration lists it. A remedy advised to change it: if you changed it"
        text = f"{named} for the upgrade, give it back"
        assert objects.status(done)["nextSteps"] == [{"text": text, "command": delete["undo"]}]
        summary = "1 change that a remedy advised was not given back at the end; see nextSteps"
        assert condition(done, "Progressing")[2].endswith(summary)


POLICIES = [
    pytest.param("harvester-upgrade-manager-pods", "toolkit.imagePrefixes of the chart", id="own"),
    pytest.param(
        "signed-images", "let its binding leave out the user system:serviceaccount:harvester-system:", id="other"
    ),
]


@pytest.mark.rule("permissions: a policy that refuses a write is named with the object and what to do")
@pytest.mark.parametrize(("policy", "remedy"), POLICIES)
async def test_policy_that_refuses_is_named(policy: str, remedy: str) -> None:
    message = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: image x is in none"
    refusal = Refuse(status=403, reason="Forbidden", message=message, details={"causes": [{"message": message}]})
    async with Simulation() as simulation, started(simulation) as stage:
        rule = Rule(match=Match(verbs=("create",), resource="plans.upgrade.cattle.io"), action=refusal)
        simulation.middleware.add(rule)
        plan = await stage.until_plan(lambda plan: reasons(plan) == ["WriteRefused"])
        (blocker,) = objects.status(plan)["blockers"]
        assert (blocker["kind"], blocker["namespace"]) == ("Plan", "cattle-system")
        assert message in condition(plan, "Degraded")[2]
        assert f"kubectl get validatingadmissionpolicies {policy} -o yaml" in blocker["remedy"]
        assert remedy in blocker["remedy"]


class OtherPrefix(Forwarding):
    """A transport whose API server has a policy that refuses the toolkit image of the status, until it is corrected."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.is_wrong = True

    async def send(self, request: Request) -> Response:
        """Refuse or forward it."""
        if self.is_wrong and request.path.endswith("/status") and b'"toolkitImage"' in request.body:
            message = "ValidatingAdmissionPolicy 'harvester-upgrade-manager-plan-status' denied request: wrong prefix"
            details = {"causes": [{"message": message}]}
            return StatusError(code=403, reason="Forbidden", message=message, details=details).response()
        return await self._inner.send(request)


@pytest.mark.rule("permissions: a policy that refuses a write is named with the object and what to do")
async def test_refused_status_is_reported_in_the_status() -> None:
    async with Simulation() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        policy = OtherPrefix(stage.ledger)
        stage.ledger = Ledger(policy)
        async with stage.life():
            await stage.create_plan()
            plan = await stage.until_plan(lambda plan: condition(plan, "Degraded")[0] == "True")
            assert "wrong prefix" in condition(plan, "Degraded")[2]
            plan = await stage.until_plan(lambda plan: reasons(plan) == ["WriteRefused"])
            (blocker,) = objects.status(plan)["blockers"]
            assert (blocker["kind"], blocker["name"]) == ("UpgradePlan", "upgrade")
            policy.is_wrong = False
            await stage.succeed()


async def test_lost_connection_is_not_a_refusal() -> None:
    async with Simulation() as simulation, started(simulation) as stage:
        rule = Rule(match=Match(verbs=("create",), resource="plans.upgrade.cattle.io"), action=LoseRequest())
        simulation.middleware.add(rule)
        await stage.until("ImagePreloading")
        await asyncio.sleep(600)
        assert await stage.phase() == "ImagePreloading"
        simulation.middleware.remove(rule)
        await stage.succeed()
        assert "WriteRefused" not in await event_reasons(stage)


@pytest.mark.rule("blockers: a refused removal at the end is named until it succeeds")
async def test_refused_removal_is_named_until_it_succeeds() -> None:
    async with Simulation() as simulation, started(simulation) as stage:
        rule = Rule(match=Match(verbs=("deletecollection",), resource="services"), action=REFUSAL)
        simulation.middleware.add(rule)
        assert await stage.until_ended() == "Succeeded"
        plan = await stage.until_plan(lambda plan: reasons(plan) == ["CleanupRefused"])
        (blocker,) = objects.status(plan)["blockers"]
        assert 0 <= seconds_late(blocker) <= LATE
        assert (blocker["kind"], blocker["namespace"]) == ("Service", "harvester-system")
        simulation.middleware.remove(rule)
        plan = await stage.until_plan(lambda plan: not reasons(plan), seconds=60)
        assert not objects.condition(plan, "Stalled")
        assert "cleanupPending" not in objects.status(plan)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        pytest.param(
            'failed calling webhook "p.example.com": failed to call webhook: Post "https://p.a.svc:443/x?timeout=10s": '
            "dial tcp 10.0.0.1:443: connect: connection refused",
            "connection refused",
            id="not reached",
        ),
        pytest.param(
            'admission webhook "p.example.com" denied the request: no privileged Pods',
            "no privileged Pods",
            id="denied",
        ),
        pytest.param(
            'admission webhook "p.example.com" denied the request', "no cause is reported", id="without a cause"
        ),
    ],
)
def test_webhook_that_refuses_is_named_with_object_and_cause(words: str, cause: str) -> None:
    refusals = Refusals()
    error = KubeError(f"create jobs.batch a/b: 500 InternalError: {words}", status=500)
    error.written = WrittenObject(kind="Job", namespace="a", name="b", verb="patch")
    refusals.record("u", error, known_since=lambda _kind, _name: None, now=NOW - OVERDUE)
    [found] = refusals.blockers("u", is_over=False, now=NOW)
    assert found.message == f"Webhook p.example.com ({cause}) blocks changing Job a/b"


JOB = {"management.harvesterhci.io/job-type": "pre-drain", "management.harvesterhci.io/node": "node-0"}


@pytest.mark.parametrize(
    ("verb", "name", "labels", "write"),
    [
        pytest.param("create", "b", JOB, "creating the pre-drain Job of node-0", id="Job of a node"),
        pytest.param("create", "b", {}, "creating Job a/b", id="another Job"),
        pytest.param("update", "b", {}, "changing Job a/b", id="update"),
        pytest.param("delete", "b", {}, "removing Job a/b", id="removal"),
        pytest.param("delete", "", {}, "removing Jobs in a", id="removal of all"),
    ],
)
def test_refused_write_names_what_is_done_to_what(verb: str, name: str, labels: dict[str, str], write: str) -> None:
    refusals = Refusals()
    error = KubeError('webhook "p.example.com": refused', status=500)
    error.written = WrittenObject(kind="Job", namespace="a", name=name, verb=verb, labels=labels)
    refusals.record("u", error, known_since=lambda _kind, _name: None, now=NOW - OVERDUE)
    [found] = refusals.blockers("u", is_over=False, now=NOW)
    assert found.message.endswith(f" blocks {write}")


@pytest.mark.rule("blockers: a webhook's configuration is saved before it is deleted")
def test_long_name_of_a_webhook_keeps_all_remedies() -> None:
    """Rancher's webhooks have names of 67 characters."""
    refusals, name = Refusals(), "rancher.cattle.io.projectroletemplatebindings.management.cattle.io"
    error = KubeError(f'create jobs.batch a/b: 500 InternalError: failed calling webhook "{name}": x', status=500)
    error.written = WrittenObject(kind="Job", namespace="a", name="b")
    refusals.record("u", error, known_since=lambda _kind, _name: None, now=NOW - OVERDUE)
    [found] = refusals.blockers("u", is_over=False, now=NOW)
    assert [one["text"] for one in found.entry()["remedies"]] == [one.text for one in found.remedies]
    assert found.entry()["remedies"][-1]["undo"] == f"kubectl create -f webhook-{name}.yaml"
