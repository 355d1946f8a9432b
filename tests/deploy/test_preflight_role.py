"""The ClusterRole of `upgrade-manager preflight` against all requests of the command."""

from __future__ import annotations

import shlex
from random import Random
from typing import Any

import pytest

from hack.bench.recorder import Recorder
from hack.cluster.impersonation import ActingAs
from hack.simulation import Simulation
from tests.support.managers.upgrade import _rbac_kind, rights
from tests.support.webhook.permissions import authorized, granted
from tests.support.webhook.surroundings import failures, gate, plan_of, reason
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, UPGRADE_PLANS
from upgrade_manager.preflight.kubelets import ProxiedKubelets

ROLE = "harvester-upgrade-manager-preflight"
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
        *_, name, role, user = shlex.split(before.bind.replace("USER", "alice"))
        for resource, manifest in rights():
            if manifest["metadata"]["name"] == ROLE:
                await simulation.client().create(resource, manifest)
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role.removeprefix("--clusterrole="),
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.removeprefix("--user=")}
            ],
        }
        await simulation.client().create(_rbac_kind("ClusterRoleBinding"), binding)
        after = await gate(simulation, plan_of(PLANS[0]), client=alice, kubelets=ProxiedKubelets(alice))
    assert (failures(after), after.bind) == ({}, "")
    assert after.unknown == ["creation", "disk space"]
    assert reason(after, "disk space")[1].startswith("You need get on nodes/proxy")
