"""The simulated kubelets over TLS: who is authorized, and what their Nodes name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from hack.actors.kubelet_access import KubeletServers
from hack.apiserver.identity import User
from hack.control_plane.certificates import Authority, server_context
from hack.simulation import Simulation
from tests.support.managers.upgrade import ACCOUNT, UpgradeRun
from upgrade_manager.kube.config import ClientConfig, TlsConfig
from upgrade_manager.kube.resources import NODES
from upgrade_manager.preflight.disk import read_disk
from upgrade_manager.preflight.kubelet_transport import HttpKubeletTransport
from upgrade_manager.preflight.kubelets import DirectKubelets
from upgrade_manager.preflight.poller import ProbeError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real_loop

AUTHORITY = Authority(now=datetime.now(UTC))


@dataclass(frozen=True)
class Source:
    token: str

    async def load(self) -> ClientConfig:
        return self.config()

    def config(self) -> ClientConfig:
        return ClientConfig(
            server="https://api.invalid",
            tls=TlsConfig(ca_data=AUTHORITY.certificate.decode()),
            source=self,
            authorization=f"Bearer {self.token}",
        )


def kubelets(token: str) -> HttpKubeletTransport:
    return HttpKubeletTransport(Source(token).config(), user_agent="test")


@pytest.mark.rule("pipeline: the manager's account needs nodes/stats and nodes/configz for the disk space check")
async def test_kubelets_authorize_the_managers_account(tmp_path: Path) -> None:
    async with Simulation() as simulation:
        await UpgradeRun.set_up(simulation)
        for token, name in (("manager", ACCOUNT), ("webhook", f"{ACCOUNT}-webhook")):
            simulation.server.authenticator.register(token, User(name=name, groups=("system:authenticated",)))
        client = simulation.client()
        tls = server_context(AUTHORITY.server(), tmp_path)
        async with KubeletServers(client, simulation.registry.stats, tls=tls).running(simulation.scenario.nodes.names):
            nodes = (await client.list(NODES)).items
            async with kubelets("manager") as transport:
                disks = [await read_disk(DirectKubelets(transport), node) for node in nodes]
                with pytest.raises(ProbeError, match=r"403 .*subresource\(s\)=\[proxy\]"):
                    await DirectKubelets(transport).read(nodes[0], "/exec/default/pod/container")
            for token, refusal in (("webhook", "403 "), ("stranger", "401 ")):
                async with kubelets(token) as transport:
                    with pytest.raises(ProbeError, match=refusal):
                        await read_disk(DirectKubelets(transport), nodes[0])
    assert len(disks) == 3
    assert {disk.threshold for disk in disks} == {85}
