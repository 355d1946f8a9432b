"""`upgrade-manager webhook` as a process beside an API server."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import socket
import ssl
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.support.cluster.kubectl import embedded_cluster, manifest
from tests.support.programs.polling import eventually
from tests.support.webhook.webhook_certificates import NAMESPACE, THE_SERVICE, secret
from upgrade_manager.kube.resources import SECRETS
from webhook.certificates.rotation import SECRET
from webhook.server import PATH

pytestmark = [pytest.mark.real_loop, pytest.mark.full]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def test_webhook_alone_reviews_and_stops(tmp_path: Path) -> None:
    probes, webhook = free_port(), free_port()
    command = [sys.executable, "-m", "upgrade_manager", "webhook", f"--kubeconfig={tmp_path / 'kubeconfig'}"]
    command += [f"--health-probe-bind-address=127.0.0.1:{probes}", f"--webhook-bind-address=127.0.0.1:{webhook}"]
    async with embedded_cluster(tmp_path) as cluster, aiohttp.ClientSession() as session:
        await cluster.wire.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await cluster.wire.post(SECRETS.path(namespace=NAMESPACE), secret())
        process = await asyncio.create_subprocess_exec(*command, "--metrics-bind-address=0")

        async def is_ready() -> bool:
            try:
                return (await session.get(f"http://127.0.0.1:{probes}/readyz")).status == 200
            except aiohttp.ClientError:
                return False

        try:
            await eventually(is_ready, seconds=60)
            stored = await cluster.wire.get(SECRETS.path(SECRET, namespace=NAMESPACE))
            plan = manifest(nodeUpgradeOption={"pauseNodes": ["node-9"]}, version="v1")
            request = {"uid": "1", "operation": "CREATE", "object": plan}
            request["kind"] = {"group": "management.harvesterhci.io", "version": "v1beta1", "kind": "UpgradePlan"}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
            response = await session.post(
                f"https://127.0.0.1:{webhook}{PATH}",
                data=json.dumps(review),
                headers={"content-type": "application/json"},
                ssl=ssl.create_default_context(cadata=base64.b64decode(stored.body["data"]["ca.crt"]).decode()),
                server_hostname=THE_SERVICE.host,
            )
            answer = (await response.json())["response"]
            assert (answer["uid"], answer["allowed"]) == ("1", False)
            assert "Node node-9 does not exist" in answer["status"]["message"]
            assert (await cluster.wire.get("/apis/coordination.k8s.io/v1/leases")).names == []
        finally:
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0


async def test_missing_certificate_files_end_the_start(tmp_path: Path) -> None:
    async with embedded_cluster(tmp_path):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "upgrade_manager", "webhook", f"--kubeconfig={tmp_path / 'kubeconfig'}"),
            *(f"--{name}-bind-address=0" for name in ("metrics", "health-probe")),
            *("--webhook-bind-address=127.0.0.1:0", f"--webhook-cert-path={tmp_path / 'missing'}"),
            stderr=asyncio.subprocess.PIPE,
        )
        _, err = await process.communicate()
    assert process.returncode == 1
    assert f"upgrade-manager: cannot start: {tmp_path / 'missing'}: " in err.decode()
