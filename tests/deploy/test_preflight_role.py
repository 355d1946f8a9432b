"""The ClusterRole of `upgrade-manager preflight` against all requests of the command."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hack.bench.recorder import Recorder
from hack.cluster.impersonation import ActingAs
from hack.simulation import Simulation
from tests.support import tiers
from tests.support.cluster.simulate import Simulate, embedded, simulate_on
from tests.support.managers.upgrade import _rbac_kind, rights
from tests.support.webhook.permissions import authorized, granted
from tests.support.webhook.surroundings import as_user, failures, gate, plan_of, reason
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, UPGRADE_PLANS, Resource
from upgrade_manager.preflight.kubelets import ProxiedKubelets
from webhook.preflight.gate import Report

ROLE = "harvester-upgrade-manager-preflight"
SHIPPED = {ROLE, "harvester-upgrade-manager-editor"}
KINDS = {
    "clusterrole": "ClusterRole",
    "clusterrolebinding": "ClusterRoleBinding",
    "role": "Role",
    "rolebinding": "RoleBinding",
}
PLANS: list[dict[str, Any]] = [{"version": "v1.8.0"}, {"image": "harvester-v1.8.0"}]
#: Requests of the command that the role does not permit.
LEFT_OUT = {
    (UPGRADE_PLANS.name, "create"),
    ("nodes", "get"),
    ("secrets", "list"),
    # Permitted to every user.
    ("selfsubjectreviews.authentication.k8s.io", "create"),
}


@pytest.mark.rule("admission: the ClusterRole of preflight has exactly the permissions with which it reads")
async def test_role_has_exactly_the_permissions_that_are_used() -> None:
    async with Simulation() as simulation:
        recorder = Recorder(simulation.transport())
        client = Client(recorder, user_agent="preflight", random=Random(1))
        for spec in PLANS:
            await gate(simulation, plan_of(spec), client=client, kubelets=ProxiedKubelets(client))
        # Only of cordoned nodes the checks read the machine-plan Secrets.
        await simulation.client().patch(NODES, "node-0", MergePatch({"spec": {"unschedulable": True}}))
        await gate(simulation, plan_of(PLANS[0]), client=client, kubelets=ProxiedKubelets(client))
    permissions = list(granted(ROLE))
    calls = [call for one in recorder.exchanges if (call := authorized(one.request)).resource]
    refused = [call for call in calls if not any(one.permits(call) for one in permissions)]
    assert {(call.resource, call.verb) for call in refused} <= LEFT_OUT
    assert [one for one in permissions if not any(one.permits(call) for call in calls)] == []


def test_role_grants_no_secrets_and_no_writes() -> None:
    permissions = list(granted(ROLE))
    assert {one.verb for one in permissions} == {"list"}
    assert {"secrets", "nodes/proxy"}.isdisjoint(one.resource for one in permissions)


@pytest.mark.rule("admission: preflight names a missing permission, its ClusterRole and the command")
async def test_printed_command_gives_what_is_missing() -> None:
    async with Simulation() as simulation:
        alice = Client(ActingAs(simulation.transport(), user="alice"), user_agent="preflight", random=Random(1))
        before = await gate(simulation, plan_of(PLANS[0]), client=alice, kubelets=ProxiedKubelets(alice))
        assert "nodes" in failures(before)
        # Kubernetes before 1.28, and the embedded API server, do not say who the user is.
        lines = [one.replace("USER", "alice") for one in before.bind]
        await grant(simulation, [line for line in lines if f"={ROLE} " in line])
        after = await gate(simulation, plan_of(PLANS[0]), client=alice, kubelets=ProxiedKubelets(alice))
    assert (failures(after), list(after.bind)) == ({}, list(before.bind[1:]))
    assert after.unknown == ["creation", "disk space"]
    assert reason(after, "disk space")[1].startswith("You need get on nodes/proxy")


def written(lines: list[str]) -> list[tuple[Resource, Object]]:
    """Return what `kubectl create` makes of the lines."""
    found = []
    for line in lines:
        words = shlex.split(line.removeprefix("kubectl "))
        options = dict(one.removeprefix("--").split("=", 1) for one in words if one.startswith("--"))
        namespace = words[1] if words[0] == "-n" else ""
        verb, kind, name = [one for one in words[2 * bool(namespace) :] if not one.startswith("--")]
        assert verb == "create"
        resource = _rbac_kind(KINDS[kind])
        manifest: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        if namespace:
            manifest["metadata"]["namespace"] = namespace
        if "verb" in options:
            rule = {"apiGroups": [""], "resources": [options["resource"]], "verbs": [options["verb"]]}
            manifest["rules"] = [rule]
        else:
            role = next(key for key in ("clusterrole", "role") if key in options)
            group = "rbac.authorization.k8s.io"
            manifest["roleRef"] = {"apiGroup": group, "kind": KINDS[role], "name": options[role]}
            manifest["subjects"] = [{"apiGroup": group, "kind": "User", "name": options["user"]}]
        found.append((resource, manifest))
    return found


async def grant(simulation: Simulation, lines: list[str]) -> None:
    """Install the roles of users, and run the commands of an administrator."""
    shipped = [(kind, one) for kind, one in rights() if one["metadata"]["name"] in SHIPPED]
    for resource, manifest in [*shipped, *written(lines)]:
        await simulation.client().create(resource, manifest)


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """Return the factory of simulated clusters on the test's API server."""
    if tiers.server_of(request.node) == tiers.REAL:
        return simulate_on(request.getfixturevalue("control_plane"))
    return embedded


@pytest.mark.rule("admission: with the documented commands a user makes every check of preflight")
@pytest.mark.servers
async def test_documented_commands_permit_every_check(simulate: Simulate) -> None:
    """On the real API server there are no kubelets: a check that needs them is made, and fails."""
    page = (Path(__file__).parents[2] / "docs/cli.md").read_text()
    lines = re.findall(
        r"^kubectl .*create .*alice.*|^kubectl .*create (?:cluster)?role preflight-.*", page, re.MULTILINE
    )
    async with simulate(actors=False) as simulation:
        alice = as_user(simulation, "alice")
        await grant(simulation, lines)
        # Only of cordoned nodes the checks read the machine-plan Secrets.
        await simulation.client().patch(NODES, "node-0", MergePatch({"spec": {"unschedulable": True}}))
        report = await eventually_permitted(simulation, alice)
    assert len(lines) == 6
    assert (report.unknown, list(report.bind)) == ([], [])
    assert not [one for found in failures(report).values() for one in found if "You need" in one]


async def eventually_permitted(simulation: Simulation, client: Client) -> Report:
    """Return the report; the real authorizer learns new roles by a watch."""
    for _ in range(50):
        report = await gate(simulation, plan_of(PLANS[0]), client=client, kubelets=ProxiedKubelets(client))
        texts = [one for found in failures(report).values() for one in found]
        if not report.bind and not any("You need" in one for one in texts):
            break
        await asyncio.sleep(0.2)
    return report
