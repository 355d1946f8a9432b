"""Installation on the real API server, where the namespace enforces the Pod Security level restricted."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random

import pytest

from hack.control_plane.backend import direct, inventory
from hack.control_plane.certificates import Authority
from hack.control_plane.control_plane import ADMIN, ControlPlane
from tests.support.cluster.kubectl import Cluster
from tests.support.programs.helm import CHART, NAMESPACE, Helm
from tests.support.programs.kustomize import DEFAULT, DEPLOY
from tests.support.programs.polling import eventually
from tests.support.webhook.admission_policies import remove
from upgrade_manager.kube.client import Client
from webhook.certificates.rotation import CONFIGURATION, SECRET

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

CRD = "crd/upgradeplans.management.harvesterhci.io"
DEPLOYMENT = "deployment/harvester-upgrade-manager"
NAMESPACES = ("cattle-system", "fleet-local", "harvester-system", "longhorn-system")
MODES = ("enforce", "warn", "audit")
#: Objects that the API server and its controllers write by themselves.
TRANSIENT = {"Event", "EndpointSlice", "Endpoints", "Lease", "Pod", "ReplicaSet", "ControllerRevision"}
#: A CA that the API server accepts.
WRITTEN = base64.b64encode(Authority(now=datetime.now(UTC)).certificate).decode()
#: On UpgradePlans.
VERBS = ["get", "list", "watch", "create", "patch", "delete", "deletecollection", "waive", "set-toolkit-image"]
ROLES = {"view": VERBS[:3], "edit": VERBS[:3], "admin": VERBS[:3]}
#: Seconds for the real controllers.
SECONDS = 60.0


@pytest.fixture
async def restricted(cluster: Cluster) -> AsyncIterator[Cluster]:
    """Provide a cluster without the CRD, whose namespace enforces the level, and leave it as other tests expect it."""
    for name in NAMESPACES:
        await cluster.wire.post("/api/v1/namespaces", {"metadata": {"name": name}})
    await cluster.succeed("delete", CRD)
    # Those of an earlier test are kept (tests/support/server/cluster_reset.py).
    await cluster.succeed("delete", "--ignore-not-found", "-k", str(DEPLOY / "admission-policies"))
    labels = [f"pod-security.kubernetes.io/{mode}" for mode in MODES]
    await cluster.succeed("label", "namespace", NAMESPACE, *(f"{label}=restricted" for label in labels))
    yield cluster
    await cluster.succeed("label", "namespace", NAMESPACE, *(f"{label}-" for label in labels))
    await cluster.succeed("delete", "-k", str(DEFAULT), "--ignore-not-found")
    await cluster.succeed("apply", "-k", str(DEPLOY / "crds"))
    await remove(cluster)


async def has_two_pods(cluster: Cluster) -> bool:
    selector = "app.kubernetes.io/name=harvester-upgrade-manager"
    outcome = await cluster.succeed("-n", NAMESPACE, "get", "pods", "-l", selector, "-o", "name")
    return len(outcome.lines) == 2


async def test_default_is_applied_without_a_warning(restricted: Cluster) -> None:
    outcome = await restricted.succeed("apply", "-k", str(DEFAULT))
    assert {line.rpartition(" ")[2] for line in outcome.lines} == {"created"}
    assert outcome.err == ""
    # The level refuses Pods, not their Deployment.
    await eventually(partial(has_two_pods, restricted), seconds=SECONDS)
    await restricted.succeed("delete", "-k", str(DEFAULT), "-l", "app.kubernetes.io/name")
    assert (await restricted.succeed("get", CRD, "-o", "name")).lines == [
        f"customresourcedefinition.apiextensions.k8s.io/{CRD[4:]}"
    ]
    assert (await restricted.succeed("-n", NAMESPACE, "get", "deployments", "-o", "name")).lines == []


async def verbs(cluster: Cluster, *flags: str) -> list[str]:
    """Return what a user may do with UpgradePlans."""
    reviews = [await cluster.kubectl("auth", "can-i", verb, "up", *flags) for verb in VERBS]
    return [verb for verb, review in zip(VERBS, reviews, strict=True) if review.out == "yes\n"]


async def test_roles_of_kubernetes_include_plans(restricted: Cluster) -> None:
    for role in ROLES:
        await restricted.succeed("create", "clusterrolebinding", role, f"--clusterrole={role}", f"--user={role}")
        assert await verbs(restricted, f"--as={role}") == []
    await restricted.succeed("apply", "-k", str(DEFAULT))

    async def are_granted() -> bool:
        return {role: await verbs(restricted, f"--as={role}") for role in ROLES} == ROLES

    # By a controller.
    await eventually(are_granted, seconds=SECONDS)
    assert await verbs(restricted, "--as=admin", "--subresource=status") == ["get"]


async def installed_objects(plane: ControlPlane) -> set[tuple[str, str, str]]:
    async with direct(plane, token=ADMIN.token) as transport:
        found = await inventory(Client(transport, user_agent="install-tests", random=Random(1)))
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])
        for one in found
        if one["kind"] not in TRANSIENT
    }


async def write_certificate(cluster: Cluster) -> None:
    """Write what the manager writes: the Secret's content, and the CA."""
    data = json.dumps({"data": {"ca.crt": WRITTEN}})
    ca = json.dumps([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": WRITTEN}])
    await cluster.succeed("-n", NAMESPACE, "patch", "secret", SECRET, "--type=merge", "-p", data)
    await cluster.succeed("patch", "validatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p", ca)


async def written_certificate(cluster: Cluster) -> list[str]:
    secret = await cluster.succeed("-n", NAMESPACE, "get", "secret", SECRET, "-o", "json")
    configuration = await cluster.succeed("get", "validatingwebhookconfiguration", CONFIGURATION, "-o", "json")
    return [secret.json["data"]["ca.crt"], configuration.json["webhooks"][0]["clientConfig"]["caBundle"]]


async def test_release_is_installed_upgraded_and_uninstalled(
    restricted: Cluster, controlled_plane: ControlPlane, tmp_path: Path
) -> None:
    helm, release = Helm(tmp_path), ("manager", str(CHART))
    before = await installed_objects(controlled_plane)
    assert "STATUS: deployed" in await helm.succeed("install", *release)
    await eventually(partial(has_two_pods, restricted), seconds=SECONDS)
    await helm.succeed("uninstall", "manager")
    # Plans outlive the release by default.
    assert (await restricted.succeed("get", CRD, "-o", "name")).lines == [
        "customresourcedefinition.apiextensions.k8s.io/upgradeplans.management.harvesterhci.io"
    ]
    await helm.succeed("install", *release)
    await write_certificate(restricted)
    alone = "crds.keep=false,replicas=1,leaderElection.enabled=false"
    assert "REVISION: 2" in await helm.succeed("upgrade", *release, "--set", alone)
    strategy = await restricted.succeed("-n", NAMESPACE, "get", DEPLOYMENT, "-o", "jsonpath={.spec.strategy}")
    assert strategy.json == {"type": "Recreate"}
    assert await written_certificate(restricted) == [WRITTEN, WRITTEN]
    await helm.succeed("uninstall", "manager")

    async def nothing_is_left() -> bool:
        return await installed_objects(controlled_plane) == before

    await eventually(nothing_is_left, seconds=SECONDS)
