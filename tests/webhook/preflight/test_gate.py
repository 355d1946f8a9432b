"""The checks of `upgrade-manager preflight`, on a simulated cluster."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.apiserver.crds import CRDS
from hack.faults.rules import Match, Refuse, Rule
from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support import tiers
from tests.support.cluster.simulate import Simulate, embedded, simulate_on
from tests.support.webhook.surroundings import IsoServers, as_user, failures, gate, plan_of, reason
from upgrade_manager.api import keys
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, SETTINGS, UPGRADE_PLANS, VERSIONS
from upgrade_manager.preflight.poller import ProbeError
from webhook.check import Finding
from webhook.preflight import gate as module
from webhook.preflight.iso_server import IsoResponse
from webhook.preflight.row import Row

BY_VERSION = {"version": "v1.8.0"}
BY_IMAGE = {"image": "harvester-v1.8.0"}
ISO = "http://releases.simulator.internal"
SKIP_DISKS = {keys.ANNOTATION_SKIP_DISK_CHECK: "true"}
#: No check of disks and certificates, for which the real API server has no nodes to ask; the second value is invalid.
NO_NODES = {**SKIP_DISKS, keys.ANNOTATION_MIN_CERTS_DAYS: "0"}
SILENT = {"answers": False}


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """Return the factory of simulated clusters on the test's API server."""
    if tiers.server_of(request.node) == tiers.REAL:
        return simulate_on(request.getfixturevalue("control_plane"))
    return embedded


def scenario(**changes: Any) -> Scenario:
    return scenarios.load("three-nodes").changed(**changes)


@pytest.mark.rule("admission: preflight passes a plan that the API server, the webhook and Initialize accept")
@pytest.mark.parametrize("name", ["one-node", "three-nodes", "witness"])
async def test_healthy_cluster_passes(name: str) -> None:
    async with Simulation(name) as simulation:
        report = await gate(simulation, plan_of(BY_VERSION))
        assert (failures(report), report.running, report.bind) == ({}, "v1.7.1", ())
        assert report.passed
        assert {row.outcome for row in report.rows} == {"passed"}
        assert await simulation.client().find(UPGRADE_PLANS, "demo") is None


@pytest.mark.rule("admission: preflight shows the API server's refusal of a dry-run in its words")
@pytest.mark.servers
@pytest.mark.parametrize(
    ("spec", "metadata", "message"),
    [
        pytest.param({"versoin": "v1.8.0", **BY_VERSION}, {}, 'unknown field "spec.versoin"', id="unknown field"),
        pytest.param({}, {}, "Required value: set spec.version", id="rule"),
        pytest.param({"version": "V1 8"}, {}, "should match", id="pattern"),
        pytest.param({**BY_VERSION, "force": "yes"}, {}, "must be of type boolean", id="type"),
        pytest.param(BY_VERSION, {"name": "De mo"}, "lowercase RFC 1123 subdomain", id="name"),
    ],
)
async def test_refused_creation_fails(
    simulate: Simulate, spec: dict[str, Any], metadata: dict[str, Any], message: str
) -> None:
    async with simulate(actors=False) as simulation:
        found = failures(await gate(simulation, plan_of(spec, **metadata, annotations=NO_NODES)))
    assert [message in one for one in found["creation"]] == [True]


@pytest.mark.rule("admission: preflight fails for a name that is taken")
@pytest.mark.servers
async def test_taken_name_fails(simulate: Simulate) -> None:
    async with simulate(actors=False) as simulation:
        await simulation.apply(plan_of(BY_VERSION))
        found = failures(await gate(simulation, plan_of(BY_VERSION, annotations=NO_NODES)))
    [message] = found["creation"]
    assert message.startswith("UpgradePlan demo exists already. Use another name")


async def change_running(simulation: Simulation, version: str) -> None:
    await simulation.client().patch(SETTINGS, keys.SETTING_SERVER_VERSION, MergePatch({"value": version}))


async def upgrade_nodes(simulation: Simulation, version: str) -> None:
    await change_running(simulation, version)
    for node in (await simulation.client().list(NODES)).items:
        patch = MergePatch({"status": {"nodeInfo": {"osImage": f"Harvester {version}"}}})
        await simulation.client().patch(NODES, node["metadata"]["name"], patch, subresource="status")


async def change_version(simulation: Simulation, **spec: Any) -> None:
    client = simulation.client()
    await client.patch(VERSIONS, "v1.8.0", MergePatch({"spec": spec}), namespace=keys.HARVESTER_SYSTEM)


@pytest.mark.rule(
    "admission: preflight applies the rules of Initialize about releases",
    "admission: preflight fails for a plan that would do nothing, and says so",
)
@pytest.mark.parametrize(
    ("change", "spec", "message"),
    [
        pytest.param(
            lambda one: upgrade_nodes(one, "v1.8.0"),
            BY_VERSION,
            "Nothing to do: all 3 nodes run v1.8.0. Create a plan for another release; spec.force: true skips",
            id="nothing to do",
        ),
        pytest.param(lambda one: change_running(one, "v1.8.1"), BY_VERSION, "downgrades are not supported", id="older"),
        pytest.param(
            lambda one: change_version(one, minUpgradableVersion="v1.7.2"),
            BY_VERSION,
            "upgrade to v1.7.2 or later first",
            id="minimum version",
        ),
        pytest.param(lambda one: change_running(one, ""), BY_IMAGE, "server-version lacks a value", id="no version"),
    ],
)
async def test_release_that_initialize_refuses_fails(change: Any, spec: dict[str, Any], message: str) -> None:
    async with Simulation() as simulation:
        await change(simulation)
        found = failures(await gate(simulation, plan_of(spec)))
        forced = failures(await gate(simulation, plan_of({**spec, "force": True})))
    assert [message in one for one in found["release"]] == [True]
    assert ("release" in forced) == (spec is BY_IMAGE)


@pytest.mark.rule("admission: preflight checks disks and certificates as Initialize does")
@pytest.mark.parametrize(
    ("changed", "check", "message"),
    [
        pytest.param(
            scenario(nodes={"disks": {"node-1": {"used_gib": 250}}}),
            "disk space",
            "node node-1 (87.7 % > 85 %)",
            id="disk",
        ),
        pytest.param(
            scenario(nodes={"disks": {"node-1": SILENT}}),
            "disk space",
            "Kubelet did not respond for 1 min",
            id="silent",
        ),
        pytest.param(scenario(api_servers={"10.53.0.2": {"days": 3}}), "certificates", "expire too soon", id="expiry"),
        pytest.param(
            scenario(api_servers={"10.53.0.2": SILENT}), "certificates", "could not be read for 1 min", id="one silent"
        ),
    ],
)
async def test_node_that_initialize_refuses_fails(changed: Scenario, check: str, message: str) -> None:
    async with Simulation(changed) as simulation:
        found = failures(await gate(simulation, plan_of(BY_VERSION)))
    assert list(found) == [check]
    assert [message in one for one in found[check]] == [True]


async def test_wait_for_a_kubelet_is_shown() -> None:
    waits: list[str] = []
    async with Simulation(scenario(nodes={"disks": {"node-1": SILENT}})) as simulation:
        await gate(simulation, plan_of(BY_VERSION), waits=waits)
    assert waits == ["waiting a minute for the kubelet of node node-1, as the upgrade would"]


@pytest.mark.rule("admission: preflight names what it cannot check, with the reason, and does not pass such a plan")
async def test_unreachable_api_servers_are_skipped() -> None:
    async with Simulation(scenario(api_servers={"10.53.0.1": SILENT})) as simulation:
        report = await gate(simulation, plan_of(BY_VERSION))
    outcome, why = reason(report, "certificates")
    assert (outcome, report.passed, report.unknown) == ("unknown", False, ["certificates"])
    assert why.startswith("10.53.0.1:443 cannot be reached from this machine: the manager checks")


class RefusedKubelets:
    """Kubelets behind an API server that does not permit nodes/proxy."""

    async def read(self, node: Object, path: str) -> bytes:  # noqa: ARG002  # the protocol's signature
        raise ProbeError("403", remedy="grant") from Forbidden("403")


@pytest.mark.rule("admission: preflight names what it cannot check, with the reason, and does not pass such a plan")
async def test_disks_without_nodes_proxy_are_skipped() -> None:
    async with Simulation() as simulation:
        report = await gate(simulation, plan_of(BY_VERSION), kubelets=RefusedKubelets())
        skipped = await gate(simulation, plan_of(BY_VERSION, annotations=SKIP_DISKS), kubelets=RefusedKubelets())
    outcome, why = reason(report, "disk space")
    assert (outcome, report.passed, report.failed, report.unknown) == ("unknown", False, 0, ["disk space"])
    assert why.startswith("You need get on nodes/proxy, which also permits to run commands in every Pod")
    assert skipped.passed
    assert reason(skipped, "disk space")[1] == f"The plan has the annotation {keys.ANNOTATION_SKIP_DISK_CHECK}"


async def test_plans_that_cannot_be_listed_are_not_taken_for_the_proxy() -> None:
    """A full disk is compared with the images that an earlier plan has preloaded."""
    async with Simulation(scenario(nodes={"disks": {"node-1": {"used_gib": 250}}})) as simulation:
        simulation.middleware.add(
            Rule(
                match=Match(verbs=("list",), resource=UPGRADE_PLANS.name),
                action=Refuse(status=403, reason="Forbidden", message="no"),
            )
        )
        client = Client(simulation.transport(), user_agent="preflight", random=Random(1))
        found = failures(await gate(simulation, plan_of(BY_VERSION), client=client))
    assert [message.partition(":")[0] for message in found["disk space"]] == ["check 'disk space' cannot be made"]


@pytest.mark.rule("admission: preflight fails for an ISO that cannot be downloaded, with status or error")
@pytest.mark.parametrize(
    ("response", "outcome", "message"),
    [
        pytest.param(IsoResponse(status=200, size=7 << 30), "passed", "", id="reachable"),
        pytest.param(IsoResponse(status=200, size=None), "passed", "", id="no size"),
        pytest.param(IsoResponse(status=404, size=9), "failed", "HTTP 404 Not Found. Correct spec.isoURL", id="404"),
        pytest.param(IsoResponse(status=599, size=9), "failed", "HTTP 599. Correct spec.isoURL", id="no phrase"),
        pytest.param(IsoResponse(status=200, size=900), "warning", "the file has 1 KiB, and ISOs", id="a page"),
        pytest.param("no response within 15 s", "failed", "within 15 s. If the cluster reaches", id="silent"),
    ],
)
async def test_iso_is_asked_for(response: IsoResponse | str, outcome: str, message: str) -> None:
    async with Simulation() as simulation:
        iso = IsoServers({simulation.iso_url: response})
        report = await gate(simulation, plan_of(BY_VERSION), iso=iso)
        assert iso.asked == [simulation.iso_url]
    [row] = [row for row in report.rows if row.check == "ISO"]
    text = " ".join([row.reason, *(one.message for one in row.findings)])
    assert (row.outcome, message in text) == (outcome, True)


@pytest.mark.parametrize(
    ("spec", "skip", "why"),
    [
        pytest.param(BY_IMAGE, False, "spec.image names an ISO that is imported already", id="image"),
        pytest.param(BY_VERSION, True, "--skip-iso is set", id="flag"),
    ],
)
async def test_iso_is_not_asked_for(spec: dict[str, Any], why: str, *, skip: bool) -> None:
    async with Simulation() as simulation:
        iso = IsoServers()
        report = await gate(simulation, plan_of(spec), iso=iso, skip_iso=skip)
    assert (reason(report, "ISO"), iso.asked) == (("skipped", why), [])


async def test_version_without_url_fails() -> None:
    async with Simulation() as simulation:
        await change_version(simulation, isoURL="")
        found = failures(await gate(simulation, plan_of(BY_VERSION)))
    assert found["ISO"] == ["Version harvester-system/v1.8.0 lacks spec.isoURL. Set it to the URL of the ISO"]


@pytest.mark.rule("admission: preflight fails in one sentence for a cluster without Harvester's APIs")
async def test_other_cluster_fails_in_one_sentence() -> None:
    async with Simulation() as simulation:
        for name in ("settings.harvesterhci.io", "machines.cluster.x-k8s.io"):
            await simulation.client().delete(CRDS, name)
        report = await gate(simulation, plan_of(BY_VERSION))
    [message] = failures(report)["Harvester"]
    assert message == (
        "This is not a Harvester cluster, because it does not serve settings.harvesterhci.io, "
        "machines.cluster.x-k8s.io: select another by --context"
    )
    assert len(report.rows) == 1


async def test_cluster_without_the_manager_fails() -> None:
    async with Simulation() as simulation:
        await simulation.client().delete(CRDS, UPGRADE_PLANS.name)
        found = failures(await gate(simulation, plan_of(BY_VERSION)))
    assert found == {
        "creation": [f"The cluster does not serve {UPGRADE_PLANS.name}. Install the upgrade manager first"]
    }


@pytest.mark.rule("admission: preflight names a missing permission, its ClusterRole and the command")
@pytest.mark.servers
async def test_missing_permissions_are_named(simulate: Simulate) -> None:
    async with simulate(actors=False) as simulation:
        plan = plan_of(BY_VERSION, annotations=NO_NODES)
        report = await gate(simulation, plan, client=as_user(simulation, "alice"))
    found = failures(report)
    role = "bind ClusterRole harvester-upgrade-manager-preflight to yourself"
    assert found["nodes"] == [f"You need list on nodes: {role}"]
    assert found["version"] == [f"You need list on versions.harvesterhci.io: {role}"]
    editor = "bind ClusterRole harvester-upgrade-manager-editor to yourself"
    assert reason(report, "creation") == ("unknown", f"You need create on {UPGRADE_PLANS.name}: {editor}")
    # The embedded API server does not say who the user is, as Kubernetes before 1.28.
    (user,) = {one.partition(" --user=")[2] for one in report.bind} & {"USER", "alice"}
    roles = [f"harvester-upgrade-manager-{name}" for name in ("preflight", "editor")]
    assert list(report.bind) == [
        f"kubectl create clusterrolebinding {name}:{user} --clusterrole={name} --user={user}" for name in roles
    ]


def row(check: str, *messages: str) -> Row:
    return Row(check=check, outcome="failed", findings=[Finding(problem=one) for one in messages])


@pytest.mark.parametrize(
    ("own", "left"),
    [
        pytest.param(["a"], ["The installed webhook denies the plan for the reasons below"], id="the same"),
        pytest.param(["a", "b"], ["b"], id="one more"),
        pytest.param(["b"], ["b"], id="another"),
    ],
)
def test_findings_of_the_webhook_are_not_repeated(own: list[str], left: list[str]) -> None:
    first, second = module._without_repeats([row("creation", *own), row("nodes", "a")])
    assert [one.message for one in first.findings] == left
    assert [one.message for one in second.findings] == ["a"]


async def test_every_node_has_its_own_detail() -> None:
    async with Simulation() as simulation:
        for name in ("node-0", "node-1"):
            await simulation.client().patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))
        report = await gate(simulation, {})
    assert failures(report)["nodes"] == [
        "Node node-0 is cordoned. Uncordon it: kubectl uncordon node-0",
        "Node node-1 is cordoned. Uncordon it: kubectl uncordon node-1",
    ]
