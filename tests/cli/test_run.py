"""The connections and files of `upgrade-manager run` outside of its process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from upgrade_manager.cli.options import KubeletAccess, RunOptions
from upgrade_manager.cli.run import is_beside, kubelet_access
from upgrade_manager.kube.config import ClientConfig, ConfigSource, InCluster, TlsConfig

POD = InCluster(host="h", port="1", folder=Path("x"))


@dataclass(frozen=True)
class Kubeconfig:
    """A source that is not a Pod's service account."""

    async def load(self) -> ClientConfig:
        return config(self)


@pytest.mark.rule("pipeline: a manager on a user's machine is refused beside a leader")
@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        pytest.param(Kubeconfig(), RunOptions(), True, id="make run"),
        pytest.param(Kubeconfig(), RunOptions(leader_elect=True), False, id="a candidate"),
        pytest.param(Kubeconfig(), RunOptions(webhook_only=True), False, id="the webhook"),
        pytest.param(POD, RunOptions(), False, id="in the cluster"),
        pytest.param(POD, RunOptions(leader_elect=True), False, id="a replica"),
    ],
)
def test_manager_works_beside_a_leader_by_place_and_flag(
    source: ConfigSource, options: RunOptions, *, expected: bool
) -> None:
    assert is_beside(options, config(source)) is expected


def config(source: ConfigSource) -> ClientConfig:
    return ClientConfig(server="https://192.0.2.1:6443", tls=TlsConfig(), source=source)


@pytest.mark.rule("pipeline: kubelets are read directly in the cluster, and with the user's rights elsewhere")
@pytest.mark.parametrize(
    ("source", "flag", "access"),
    [
        pytest.param(POD, None, KubeletAccess.DIRECT, id="in the cluster"),
        pytest.param(Kubeconfig(), None, KubeletAccess.PROXY, id="with a kubeconfig"),
        pytest.param(POD, KubeletAccess.PROXY, KubeletAccess.PROXY, id="older kubelets"),
        pytest.param(Kubeconfig(), KubeletAccess.DIRECT, KubeletAccess.DIRECT, id="a kubeconfig and the flag"),
    ],
)
def test_kubelets_are_read_by_flag_and_place(
    source: ConfigSource, flag: KubeletAccess | None, access: KubeletAccess
) -> None:
    assert kubelet_access(RunOptions(kubelet_access=flag), config(source)) is access
