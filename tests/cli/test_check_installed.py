"""The command `upgrade-manager check` on a cluster with the manager's own manifests, and a manager that runs.

Pods of the simulated cluster run no process: the manager runs beside it, where the webhook's Service leads to.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cluster.kubectl import installed
from tests.support.cluster.served import manager, result, served
from tests.support.programs.kustomize import DEPLOY
from tests.support.programs.polling import eventually
from tests.support.server.apiserver import definition
from tests.support.webhook.webhook_certificates import THE_SERVICE
from upgrade_manager import __version__
from upgrade_manager.cli.installation.catalogue import CHECKS
from webhook.certificates import issuer

pytestmark = [pytest.mark.real_loop, pytest.mark.timeout(200)]

NAMED = "harvester-upgrade-manager"
IMAGE = f"registry.example/{NAMED}:v{__version__}"
CRD = "crd/upgradeplans.management.harvesterhci.io"
SYSTEM = "-n harvester-system"
SET_IMAGE = f"{SYSTEM} set image deployment/{NAMED} manager="
MONITORS = " ".join(f"-f {DEPLOY}/prometheus/{name}.yaml" for name in ("service-monitor", "prometheus-rule"))
WEBHOOK = f"harvester-system/{NAMED}-webhook"
OLD_CRD = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/force"
#: A registry that does not respond.
FREEZE = "-n kube-system create configmap registry --from-literal=frozen=Registry"


def monitoring_crd(kind: str) -> dict[str, Any]:
    """Return a CRD of the Prometheus operator, with any content."""
    return definition(f"{kind.lower()}s", kind, group="monitoring.coreos.com")


@dataclass(frozen=True)
class Installation:
    """A cluster, and commands of a user."""

    folder: Path
    kubeconfig: Path
    #: Where the webhook's Service leads to.
    address: str

    async def kubectl(self, line: str) -> None:
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig)}
        command = [str(installed()), *line.split(" ")]
        process = await asyncio.create_subprocess_exec(
            *command, env=variables, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, f"{line}\n{output.decode()}"

    async def install(self) -> None:
        definitions = self.folder / "monitoring.yaml"
        definitions.write_text(yaml.safe_dump_all(map(monitoring_crd, ("ServiceMonitor", "PrometheusRule"))))
        for line in (f"apply -f {definitions}", f"apply -k {DEPLOY}", f"apply {MONITORS}", SET_IMAGE + IMAGE):
            await self.kubectl(line)

    async def check(self, *flags: str) -> tuple[int, dict[str, tuple[str, str]]]:
        """Return the exit status of `upgrade-manager check`, and outcome and reason by check."""
        process = await manager("check", "-ojson", f"--kubeconfig={self.kubeconfig}", *flags, home=self.folder)
        found = await result(process)
        rows = json.loads(found.out)["checks"]
        return found.code, {one["name"]: (one["outcome"], one["reason"]) for one in rows}

    async def fails(self, name: str, reason: str) -> bool:
        """Return True if that check fails for that reason."""
        outcome, why = (await self.check())[1][name]
        return outcome == "failed" and reason in why

    @asynccontextmanager
    async def running(self, *arguments: str) -> AsyncIterator[None]:
        """Run a manager that serves the webhook."""
        flags = (f"--kubeconfig={self.kubeconfig}", f"--webhook-bind-address={self.address}")
        ports = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
        process = await manager(*arguments, *flags, *ports, home=self.folder)
        # Its log must not fill the pipes.
        drained = asyncio.create_task(process.communicate())
        try:
            yield
        finally:
            process.terminate()
            await drained


#: The breaks while a manager runs, each with the check that names it and a part of the reason.
WITH_A_MANAGER = [
    (f"delete clusterrolebinding {NAMED}", "manager's rights", "are missing: "),
    (f"{SYSTEM} delete service {NAMED}-webhook", "webhook Service", f"Service {WEBHOOK} has no endpoint that is ready"),
]
#: The same of the CRD, without a manager.
WITHOUT_A_MANAGER = [
    (f'patch {CRD} --type=json -p=[{{"op":"remove","path":"{OLD_CRD}"}}]', "it lacks spec.force."),
    (f"delete {CRD}", "upgradeplans.management.harvesterhci.io does not exist."),
]


@asynccontextmanager
async def installation(folder: Path) -> AsyncIterator[Installation]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    async with served(folder, scale=0.01, services={WEBHOOK: f"https://{address}"}) as cluster:
        found = Installation(folder=folder, kubeconfig=cluster.kubeconfig, address=address)
        await found.install()
        yield found


@pytest.mark.full
@pytest.mark.rule("status: check passes as a whole where the manifests are installed and a manager leads")
async def test_installation_passes_as_a_whole(tmp_path: Path) -> None:
    async with installation(tmp_path) as installed_, installed_.running("run", "--leader-elect"):
        code, rows = await installed_.check("--wait=20s")
        assert {name: row for name, row in rows.items() if row[0] != "passed"} == {}
        assert [*rows] == [*CHECKS]
        assert code == 0
        for line, name, reason in WITH_A_MANAGER:
            await installed_.kubectl(line)
            code, rows = await installed_.check()
            assert (code, rows[name][0], reason in rows[name][1]) == (1, "failed", True), rows[name]
            await installed_.install()
        await installed_.kubectl(FREEZE)
        await installed_.kubectl(f"{SET_IMAGE}registry.example/missing:v{__version__}")
        await eventually(partial(installed_.fails, "manager", "registry.example/missing"))


@pytest.mark.full
@pytest.mark.rule("status: check names what an installation lacks, with a command, and exits with status 1")
async def test_installation_without_a_manager_fails(tmp_path: Path) -> None:
    async with installation(tmp_path) as installed_:
        async with installed_.running("run", "--leader-elect"):
            assert (await installed_.check("--wait=20s"))[0] == 0
        _, rows = await installed_.check()
        assert rows["leader"] == ("failed", rows["leader"][1])
        assert rows["leader"][1].startswith("No replica leads: the last leader released its lease")
        assert rows["webhook response"][0] == "failed"
        assert "failed calling webhook" in rows["webhook response"][1]

        other = issuer.make(THE_SERVICE, now=datetime.now(UTC))
        for name, text in (("tls.crt", other["certificate"]), ("tls.key", other["key"])):
            (tmp_path / name).write_text(text)
        async with installed_.running("webhook", f"--webhook-cert-path={tmp_path}"):
            await eventually(partial(installed_.fails, "webhook response", "certificate"))

        for line, reason in WITHOUT_A_MANAGER:
            await installed_.kubectl(line)
            code, rows = await installed_.check()
            outcome, why = rows["CustomResourceDefinition"]
            assert (code, outcome, reason in why) == (1, "failed", True), why
