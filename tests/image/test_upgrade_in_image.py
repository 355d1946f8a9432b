"""The manager as users run it, through an upgrade: its chart on the real API server, its Pods in the built image."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.support.cluster.kubectl import PLANS, manifest
from tests.support.programs.helm import CHART, NAMESPACE
from tests.support.programs.image_cluster import ImageCluster, image_cluster
from tests.support.programs.polling import eventually
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

pytestmark = [pytest.mark.image, pytest.mark.real_loop, pytest.mark.timeout(900)]

DEPLOYMENT, WEBHOOK = "deployment/harvester-upgrade-manager", "deployment/harvester-upgrade-manager-webhook"
SELECTOR = "app.kubernetes.io/name=harvester-upgrade-manager"
BOTH = "app.kubernetes.io/name in (harvester-upgrade-manager, harvester-upgrade-manager-webhook)"
#: Seconds for each part; a lease expires after 15.
SECONDS = 180.0
PAUSED = {"pauseNodes": ["node-0", "node-1", "node-2"]}
LESS_PAUSED = '{"spec": {"nodeUpgradeOption": {"pauseNodes": ["node-0", "node-1"]}}}'
RESUMED = '{"spec": {"nodeUpgradeOption": null}}'
RESTRICTED = {"Uid": "65532", "Gid": "65532", "CapEff": "0" * 16, "NoNewPrivs": "1"}
#: Bytes of an idle replica.
MEMORY = 80_000_000
#: Imports every module.
EVERY_MODULE = """
import importlib, pkgutil, upgrade_manager, webhook
for package in (upgrade_manager, webhook):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print("every module")
"""
#: Command lines, and a part of their output.
COMMANDS = {
    ("upgrade-manager", "status", "demo", "-o", "json"): '"plan": "demo"',
    ("kubectl-upgradeplan", "status", "demo"): "ImageCleanup",
    ("upgrade-manager", "report", "demo", "--output=-"): "</html>",
    ("upgrade-manager", "completion", "bash"): "complete ",
    ("upgrade-manager", "preflight"): "managed charts",
    ("upgrade_node.sh", "prepare"): "HARVESTER_UPGRADEPLAN_NAME is not set",
    ("upgrade_manifests.sh",): "HARVESTER_UPGRADEPLAN_NAME is not set",
    ("python", "-c", EVERY_MODULE): "every module",
}


async def pods(cluster: ImageCluster, selector: str = SELECTOR) -> list[Object]:
    found = await cluster.kubectl.succeed("-n", NAMESPACE, "get", "pods", "-l", selector, "-o", "json")
    items: list[Object] = found.json["items"]
    return [pod for pod in items if not objects.is_deleting(pod)]


async def leader(cluster: ImageCluster) -> Object:
    async def leading() -> list[Object]:
        return [pod for pod in await pods(cluster) if objects.name(pod) == cluster.ledger.leader]

    (found,) = await eventually(leading, seconds=SECONDS)
    return dict(found)


async def has_successor(cluster: ImageCluster, identity: str) -> bool:
    """Return True if another process leads: the other replica's, or the next one of the same Pod."""
    return cluster.ledger.identity not in {"", identity}


async def is_available(cluster: ImageCluster, *deployments: str) -> None:
    for name in deployments or (DEPLOYMENT, WEBHOOK):
        await cluster.kubectl.succeed("-n", NAMESPACE, "rollout", "status", name, f"--timeout={SECONDS:.0f}s")


async def has_succeeded(cluster: ImageCluster) -> bool:
    plan = (await cluster.kubectl.wire.get(f"{PLANS}/demo")).body
    return bool(plan.get("status", {}).get("currentPhase") == SUCCEEDED)


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: value.split()[0] for name, value in fields.items() if value.strip()}


async def check_processes(cluster: ImageCluster) -> None:
    for pod in await pods(cluster, BOTH):
        found = status_of(cluster.processes.pid(pod))
        assert {name: found[name] for name in RESTRICTED} == RESTRICTED
        assert int(found["VmRSS"]) * 1024 <= MEMORY


async def check_commands(cluster: ImageCluster) -> None:
    """Check that every command starts: what an image lacks shows only then."""
    for argv, expected in COMMANDS.items():
        found = await cluster.run(*argv)
        assert expected in found.out + found.err, found


async def check_accounts(cluster: ImageCluster) -> None:
    """Check that the manager's Pods cannot change admission, and that the webhook's can upgrade nothing."""
    for verb, what, allowed in (
        ("update", "secrets/harvester-upgrade-manager-webhook-certs", WEBHOOK),
        ("patch", "validatingwebhookconfigurations.admissionregistration.k8s.io/harvester-upgrade-manager", WEBHOOK),
        ("create", "jobs.batch", DEPLOYMENT),
        ("get", "nodes/proxy", ""),
        ("get", "nodes/stats", DEPLOYMENT),
    ):
        subresource = [f"--subresource={what.split('/')[1]}"] if what.startswith("nodes/") else []
        resource = what.split("/")[0] if subresource else what
        for name in (DEPLOYMENT, WEBHOOK):
            account = f"system:serviceaccount:{NAMESPACE}:{name.removeprefix('deployment/')}"
            found = await cluster.kubectl.kubectl(
                *("-n", NAMESPACE, "auth", "can-i", verb, resource, *subresource, f"--as={account}")
            )
            assert found.out.strip() == ("yes" if name == allowed else "no"), (verb, what, name)


async def webhook_moves(cluster: ImageCluster) -> None:
    """Let the manager's Pods serve the webhook, and back; a Pod that ends has lost its rights, and refuses."""
    for separate, deployments in (("false", (DEPLOYMENT,)), ("true", (DEPLOYMENT, WEBHOOK))):
        await cluster.helm.succeed("upgrade", "manager", str(CHART), "--set", f"webhook.separate={separate}")
        await is_available(cluster, *deployments)
        await eventually(lambda: is_reviewed(cluster), seconds=SECONDS)
    found = await cluster.kubectl.succeed("-n", NAMESPACE, "get", "deployments", "-o", "name", "-l", SELECTOR)
    assert [name.replace(".apps", "") for name in found.out.split()] == [DEPLOYMENT, WEBHOOK]


async def is_reviewed(cluster: ImageCluster) -> bool:
    refused = await cluster.kubectl.kubectl("create", "-f", "-", stdin=manifest(version="v0.0.0"))
    assert refused.code == 1
    return "Version harvester-system/v0.0.0 does not exist" in refused.err


async def check_webhook_down(cluster: ImageCluster) -> None:
    """Scale the webhook down and up while an upgrade is paused: the upgrade and its resumption go on."""
    await cluster.kubectl.succeed("-n", NAMESPACE, "scale", WEBHOOK, "--replicas=0")

    async def is_down() -> bool:
        return not await is_reviewed(cluster)

    await eventually(is_down, seconds=SECONDS)
    await cluster.kubectl.succeed("patch", "up", "demo", "--type=merge", "-p", LESS_PAUSED)
    await cluster.kubectl.succeed("-n", NAMESPACE, "scale", WEBHOOK, "--replicas=2")
    await is_available(cluster)


async def check_webhook_command(cluster: ImageCluster) -> None:
    off = ("--metrics-bind-address=0", "--health-probe-bind-address=0", "--webhook-bind-address=127.0.0.1:0")
    process = await cluster.start("upgrade-manager", "webhook", *off)
    assert process.stderr is not None
    async with asyncio.timeout(SECONDS):
        while b"manager started" not in await process.stderr.readline():
            assert not process.stderr.at_eof()
    process.terminate()
    await process.communicate()
    assert process.returncode == 0


def check_secrets(cluster: ImageCluster) -> None:
    """Check that no log has the token of a Pod."""
    tokens = {path.read_text() for path in cluster.volumes.rglob("token")}
    texts = [path.read_text() for path in cluster.logs.iterdir()]
    assert tokens
    assert not [token for token in tokens if any(token in text for text in texts)]


async def test_upgrade_survives_the_ends_of_its_leaders(tmp_path: Path) -> None:
    async with image_cluster(tmp_path, scenario="three-nodes") as cluster:
        await cluster.helm.succeed("install", "manager", str(CHART))
        await is_available(cluster)
        await check_accounts(cluster)
        await webhook_moves(cluster)
        refused = await cluster.kubectl.kubectl("create", "-f", "-", stdin=manifest(version="v0.0.0"))
        assert "Version harvester-system/v0.0.0 does not exist" in refused.err
        plan = manifest(version="v1.8.0", nodeUpgradeOption=PAUSED)
        await cluster.kubectl.succeed("create", "-f", "-", stdin=plan)

        identity, killed = cluster.ledger.identity, await leader(cluster)
        os.kill(cluster.processes.pid(killed), signal.SIGKILL)
        # Meanwhile the lease expires.
        assert "Phase:          Succeeded" in await cluster.helm.succeed("test", "manager")
        await check_commands(cluster)
        await check_webhook_command(cluster)
        await check_webhook_down(cluster)
        await eventually(lambda: has_successor(cluster, identity), seconds=SECONDS)
        await cluster.kubectl.succeed("-n", NAMESPACE, "rollout", "restart", DEPLOYMENT)
        await is_available(cluster)
        await check_processes(cluster)

        drained = await leader(cluster)
        await cluster.kubectl.succeed("patch", "up", "demo", "--type=merge", "-p", RESUMED)
        await eventually(lambda: has_succeeded(cluster), seconds=SECONDS)
        assert objects.name(drained) not in {objects.name(pod) for pod in await pods(cluster)}
        assert cluster.ledger.violations == []
        check_secrets(cluster)
