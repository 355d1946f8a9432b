"""The command `upgrade-manager check`: each check in an installation that lacks one thing."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hack import rights as written
from tests.support.cluster.served import manager, result, served
from tests.support.programs.kustomize import DEFAULT, objects
from tests.support.server.kube_server import Reply, ScriptedTransport, failure, listing, success
from upgrade_manager.api.crd import crd_manifest
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE, MANAGER
from upgrade_manager.cli import check as command
from upgrade_manager.cli.installation.catalogue import CHECKS, TIMEOUT, check_all
from upgrade_manager.cli.installation.cluster import WEBHOOK, Cluster
from upgrade_manager.cli.installation.definition import NAME
from upgrade_manager.cli.installation.monitoring import SERVICE_MONITORS
from upgrade_manager.cli.installation.rights import OWN_ACCESS_REVIEWS, manager_rights
from upgrade_manager.cli.installation.row import Row
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    LEASES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    PODS,
    SUBJECT_ACCESS_REVIEWS,
    UPGRADE_PLANS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from upgrade_manager.kube.transport import Request
from upgrade_manager.runtime.lease import new_lease, released_lease

INSTALLED = objects(DEFAULT)
DEFINITION = crd_manifest()
NOW = datetime(2030, 1, 1, tzinfo=UTC)
VERSION = "0.1.0"
MONITORING = "/apis/monitoring.coreos.com/v1"
CRD_PATH = CUSTOM_RESOURCE_DEFINITIONS.path(NAME)
MANAGER_PATH = DEPLOYMENTS.path(MANAGER, namespace=HARVESTER_SYSTEM)
WEBHOOK_PATH = DEPLOYMENTS.path(WEBHOOK, namespace=HARVESTER_SYSTEM)
LEASE_PATH = LEASES.path(LEASE, namespace=HARVESTER_SYSTEM)
VALIDATING = VALIDATING_WEBHOOK_CONFIGURATIONS.path(MANAGER)
MUTATING = MUTATING_WEBHOOK_CONFIGURATIONS.path(MANAGER)
OF_UPGRADES = VALIDATING_WEBHOOK_CONFIGURATIONS.path(f"{MANAGER}-upgrades")
SLICES = ENDPOINT_SLICES.path(namespace=HARVESTER_SYSTEM)
PODS_PATH = PODS.path(namespace=HARVESTER_SYSTEM)
MONITOR = SERVICE_MONITORS.path(MANAGER, namespace=HARVESTER_SYSTEM)
APPLY = ("kubectl apply -k deploy",)
DESCRIBE = f"kubectl -n harvester-system describe deployment {MANAGER}"
LEADER_LOGS = (f"kubectl -n harvester-system logs -l app.kubernetes.io/name={MANAGER} --prefix",)
WEBHOOK_LOGS = ("kubectl -n harvester-system logs -l management.harvesterhci.io/serves=webhook",)
SLICE_COMMAND = (f"kubectl -n harvester-system get endpointslices -l kubernetes.io/service-name={WEBHOOK}",)
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
OFF = "The webhook is turned off."


def lease(seconds: float) -> dict[str, Any]:
    renewed = NOW - timedelta(seconds=seconds)
    return new_lease(LEASE, namespace=HARVESTER_SYSTEM, identity="pod-a_1", now=renewed)


class World:
    """The responses of a cluster: what deploy installs, and what works."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {
            f"{resource.path(one['metadata']['name'], namespace=one['metadata'].get('namespace', ''))}": one
            for resource in (DEPLOYMENTS, VALIDATING_WEBHOOK_CONFIGURATIONS, MUTATING_WEBHOOK_CONFIGURATIONS)
            for one in deepcopy(INSTALLED)
            if one["kind"] == resource.kind
        }
        for path in (MANAGER_PATH, WEBHOOK_PATH):
            self.objects[path]["status"] = {"availableReplicas": 2, "readyReplicas": 2}
            self.container(path)["image"] = f"registry:5000/{MANAGER}:v{VERSION}"
        for path in (VALIDATING, MUTATING, OF_UPGRADES):
            self.objects[path]["webhooks"][0]["clientConfig"]["caBundle"] = "Q0E="
        established = {"conditions": [{"type": "Established", "status": "True"}]}
        self.objects[CRD_PATH] = {**deepcopy(DEFINITION), "status": established}
        self.objects[LEASE_PATH] = lease(2)
        self.objects[MONITORING] = {"resources": [{"name": "servicemonitors"}]}
        self.objects[MONITOR] = {"metadata": {"name": MANAGER}}
        self.lists: dict[str, list[dict[str, Any]]] = {SLICES: [{"endpoints": [{}, {}]}], PODS_PATH: []}
        self.replies: dict[str, Reply] = {UPGRADE_PLANS.path(): failure(422, "Invalid")}
        #: Verb and resource of the rights that are missing.
        self.denied: set[tuple[str, str]] = set()

    def container(self, path: str) -> dict[str, Any]:
        [found] = self.objects[path]["spec"]["template"]["spec"]["containers"]
        assert isinstance(found, dict)
        return found

    def respond(self, request: Request) -> Reply:
        if request.path in self.replies:
            return self.replies[request.path]
        if request.path in {SUBJECT_ACCESS_REVIEWS.path(), OWN_ACCESS_REVIEWS.path()}:
            spec = json.loads(request.body)["spec"]
            assert ("user" in spec) is (request.path == SUBJECT_ACCESS_REVIEWS.path())
            attributes = spec["resourceAttributes"]
            allowed = (attributes["verb"], attributes["resource"]) not in self.denied
            return success({"status": {"allowed": allowed}}, status=201)
        if request.path in self.lists:
            return listing(*self.lists[request.path])
        found = self.objects.get(request.path)
        return failure(404, "NotFound") if found is None else success(found)

    async def rows(self) -> dict[str, Row]:
        client = Client(ScriptedTransport(self.respond), user_agent="test", random=Random(0))
        return {row.name: row for row in await check_all(Cluster(client=client, now=lambda: NOW, version=VERSION))}


def remove(path: str) -> Callable[[World], object]:
    return lambda world: world.objects.pop(path)


def put(path: str, value: dict[str, Any]) -> Callable[[World], object]:
    return lambda world: world.objects.update({path: value})


def reply(path: str, response: Reply) -> Callable[[World], object]:
    return lambda world: world.replies.update({path: response})


def deny(verb: str, resource: str) -> Callable[[World], object]:
    return lambda world: world.denied.add((verb, resource))


def scale(number: int) -> Callable[[World], object]:
    return lambda world: world.objects[MANAGER_PATH].update(spec={"replicas": number}, status={})


def argument(old: str, *new: str) -> Callable[[World], object]:
    def change(world: World) -> None:
        args = world.container(MANAGER_PATH)["args"]
        args[:] = [*(one for one in args if one != old), *new]

    return change


def image(name: str) -> Callable[[World], object]:
    return lambda world: world.container(MANAGER_PATH).update(image=name)


def turn_off(world: World) -> None:
    for path in (WEBHOOK_PATH, VALIDATING, MUTATING, OF_UPGRADES):
        world.objects.pop(path)
    world.lists[SLICES] = []


def serve_in_manager(world: World) -> None:
    world.objects.pop(WEBHOOK_PATH)
    world.container(MANAGER_PATH)["env"] = []


def unschedulable(world: World) -> None:
    world.objects[MANAGER_PATH]["status"] = {}
    world.lists[PODS_PATH] = [{"metadata": {"name": "pod-a"}, "status": {"conditions": [UNSCHEDULABLE]}}]


def schema(change: Callable[[dict[str, Any]], object]) -> Callable[[World], object]:
    return lambda world: change(world.objects[CRD_PATH]["spec"]["versions"][0])


def spec_of(version: dict[str, Any]) -> dict[str, Any]:
    found = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert isinstance(found, dict)
    return found


_LACKED = ", ".join(
    f"spec.nodeUpgradeOption{one}" for one in ("", ".onMigrationFailure", ".pauseAfter", ".pauseBefore", ".pauseNodes")
)
NO_OLD = f"It is older than this program 0.1.0: it lacks {_LACKED}."
CALL = "Internal error occurred: failed calling webhook"
UNREAD = "An administrator grants it to you as NAME:"
BROKEN: list[Any] = [
    ("CustomResourceDefinition", remove(CRD_PATH), f"{NAME} does not exist.", ("kubectl apply -k deploy/crds",)),
    ("CustomResourceDefinition", schema(lambda one: one.update(served=False)), f"{NAME} does not serve v1beta1.", None),
    ("CustomResourceDefinition", schema(lambda one: spec_of(one).pop("nodeUpgradeOption")), NO_OLD, None),
    ("CustomResourceDefinition", put(CRD_PATH, DEFINITION), f"{NAME} is not established.", None),
    ("manager", remove(MANAGER_PATH), f"Deployment harvester-system/{MANAGER} does not exist.", APPLY),
    ("manager", scale(0), f"Deployment harvester-system/{MANAGER} is scaled to 0 replicas.", None),
    ("manager", scale(2), f"Deployment harvester-system/{MANAGER} is not available.", (DESCRIBE,)),
    ("manager", unschedulable, f"{MANAGER} is not available: Pod pod-a: it cannot be scheduled", (DESCRIBE,)),
    ("version", image("x/y:v0.2.0"), "The manager is 0.2.0, this program 0.1.0: use the program of", ()),
    ("leader", remove(LEASE_PATH), f"Lease harvester-system/{LEASE} does not exist: no replica has led.", LEADER_LOGS),
    ("leader", put(LEASE_PATH, lease(552)), "No replica leads: pod-a last renewed its lease 9 min 12 s ago.", None),
    ("leader", put(LEASE_PATH, released_lease({}, now=NOW)), "No replica leads: the last leader released", None),
    ("toolkit image", argument("", "--toolkit-kind=own"), "The manager's flags are refused: --toolkit-kind own", ()),
    ("webhook", put(WEBHOOK_PATH, {"spec": {"replicas": 2}}), f"Deployment harvester-system/{WEBHOOK} is not", None),
    ("webhook configurations", remove(MUTATING), f"MutatingWebhookConfiguration {MANAGER} does not exist", APPLY),
    ("webhook configurations", remove(OF_UPGRADES), f"{MANAGER}-upgrades does not exist: Harvester's own", APPLY),
    ("webhook configurations", put(VALIDATING, {"webhooks": [{}]}), "has no caBundle", WEBHOOK_LOGS),
    ("webhook Service", lambda world: world.lists.update({SLICES: []}), "has no endpoint that is ready", SLICE_COMMAND),
    ("webhook response", reply(UPGRADE_PLANS.path(), success({}, status=201)), "does not call the webhook", APPLY),
    ("webhook response", reply(UPGRADE_PLANS.path(), failure(500, "InternalError")), "500 InternalError", WEBHOOK_LOGS),
    ("your rights", deny("get", "leases"), UNREAD, None),
    ("manager's rights", deny("patch", "nodes"), f"1 of {len(manager_rights())} are missing: patch nodes.", APPLY),
    ("manager's rights", reply(SUBJECT_ACCESS_REVIEWS.path(), failure(500, "InternalError")), "500 InternalError", ()),
    ("leader", reply(LEASE_PATH, TIMEOUT + 1), f"The API server did not respond within {TIMEOUT:.0f} s.", ()),
]


@pytest.mark.rule("status: check names what an installation lacks, with a command, and exits with status 1")
@pytest.mark.parametrize(("name", "break_it", "reason", "commands"), BROKEN)
async def test_broken_part_is_named(
    name: str, break_it: Callable[[World], object], reason: str, commands: tuple[str, ...] | None
) -> None:
    world = World()
    break_it(world)
    rows = await world.rows()
    row = rows[name]
    assert (row.outcome, reason in row.reason) == ("failed", True), row
    assert row.commands == commands if commands is not None else row.commands
    assert not command.has_passed([*rows.values()])


@pytest.mark.parametrize(
    ("name", "change", "outcome", "reason"),
    [
        ("CustomResourceDefinition", schema(lambda one: spec_of(one).update(x={})), "passed", "does not know spec.x."),
        ("version", image("x:5000/y@sha256:0"), "skipped", "has no tag that shows the manager's version."),
        ("leader", argument("--leader-elect"), "skipped", "The manager runs without leader election."),
        ("leader", reply(LEASE_PATH, failure(403, "Forbidden")), "skipped", "You may not read what it needs: get "),
        ("toolkit image", argument("", "--toolkit-image=a/b", "--toolkit-tag=v2"), "passed", "a/b:v2, unless a plan"),
        ("webhook", serve_in_manager, "skipped", "The manager's Pods serve it."),
        ("webhook", turn_off, "skipped", "It is turned off."),
        ("webhook configurations", turn_off, "skipped", OFF),
        ("webhook Service", turn_off, "skipped", OFF),
        ("webhook response", turn_off, "skipped", OFF),
        ("webhook response", reply(UPGRADE_PLANS.path(), failure(403, "Forbidden")), "skipped", "You may not create"),
        ("your rights", deny("create", "upgradeplans"), "passed", "you may not create them."),
        ("ServiceMonitor", remove(MONITOR), "skipped", "does not exist: Prometheus does not scrape the manager."),
        ("ServiceMonitor", remove(MONITORING), "skipped", "does not serve servicemonitors.monitoring.coreos.com."),
    ],
)
async def test_other_installations_pass(
    name: str, change: Callable[[World], object], outcome: str, reason: str
) -> None:
    world = World()
    change(world)
    rows = await world.rows()
    assert (rows[name].outcome, reason in rows[name].reason) == (outcome, True), rows[name]
    assert command.has_passed([*rows.values()])


@pytest.mark.rule("status: check names what an installation lacks, with a command, and exits with status 1")
async def test_installation_that_works_passes() -> None:
    rows = await World().rows()
    assert [*rows] == [*CHECKS]
    assert {name for name, row in rows.items() if row.outcome != "passed"} == {"PrometheusRule"}
    guess = "rancher/harvester-upgrade-toolkit:0.1.0 for plans of an image without spec.upgrade, which is a guess."
    assert rows["toolkit image"].reason.endswith(guess)
    assert rows["leader"].reason == "pod-a has renewed its lease 2 s ago."


async def test_each_deployment_is_read_once_in_a_run() -> None:
    world, paths = World(), []

    def respond(request: Request) -> Reply:
        paths.append(request.path)
        return world.respond(request)

    client = Client(ScriptedTransport(respond), user_agent="test", random=Random(0))
    cluster = Cluster(client=client, now=lambda: NOW, version=VERSION)
    for run in (1, 2):
        await check_all(cluster)
        assert (paths.count(MANAGER_PATH), paths.count(WEBHOOK_PATH)) == (run, run)


async def test_failed_checks_are_repeated_for_the_time_given() -> None:
    world, runs = World(), 0
    world.denied.add(("patch", "nodes"))

    def respond(request: Request) -> Reply:
        nonlocal runs
        runs += request.path == CRD_PATH
        if runs == 3:
            world.denied.clear()
        return world.respond(request)

    client = Client(ScriptedTransport(respond), user_agent="test", random=Random(0))
    cluster = Cluster(client=client, now=lambda: NOW, version=VERSION)
    assert not command.has_passed(await command.check_until(cluster, 0))
    assert command.has_passed(await command.check_until(cluster, 10 * command.INTERVAL))
    assert runs == 3


def test_rights_are_those_of_deploy() -> None:
    assert written.TARGET.read_text() == written.text()


@pytest.mark.rule("status: a missing plan or missing access is one line, with exit status 1")
@pytest.mark.real_loop
@pytest.mark.full
async def test_cluster_without_a_manager_is_reported_in_each_format(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:

        async def run(*arguments: str) -> tuple[int, str]:
            process = await manager("check", f"--kubeconfig={cluster.kubeconfig}", *arguments, home=tmp_path)
            found = await result(process)
            assert found.err == ""
            return found.code, found.out

        code, table = await run()
        lines = table.splitlines()
        assert code == 1
        assert lines[0].startswith("API server https://127.0.0.1:")
        assert lines[2].split() == ["CHECK", "RESULT", "DETAILS"]
        assert "CustomResourceDefinition  passed   It has all fields of version 0.1.0." in lines
        assert "kubectl apply -k deploy" in lines[lines.index("REMEDIES") :]
        code, text = await run("-o", "json", "--wait=0s")
        document = json.loads(text)
    assert (code, document["passed"], document["version"]) == (1, False, "0.1.0")
    [missing] = [one for one in document["checks"] if one["name"] == "manager"]
    assert (missing["outcome"], missing["commands"]) == ("failed", list(APPLY))
