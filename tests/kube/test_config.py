from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from upgrade_manager.kube.config import ClientConfig, ConfigError, InCluster, TlsConfig
from upgrade_manager.kube.kubeconfig import load_config

POD = {"KUBERNETES_SERVICE_HOST": "10.53.0.1", "KUBERNETES_SERVICE_PORT": "443"}
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://SERVER"}}]
users: [{name: u, user: {token: t}}]
"""


def now() -> datetime:
    return datetime(2025, 11, 21, 9, tzinfo=UTC)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("one\n")
    (folder / "ca.crt").write_text("PEM")
    return folder


def kubeconfig(path: Path, server: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(KUBECONFIG.replace("SERVER", server))
    return str(path)


@pytest.mark.parametrize(("host", "shown"), [("10.53.0.1", "10.53.0.1"), ("fd00::1", "[fd00::1]")])
async def test_pod_loads_its_service_account(account: Path, host: str, shown: str) -> None:
    found = await load_config(environ=POD | {"KUBERNETES_SERVICE_HOST": host}, now=now, service_account=account)
    assert (found.server, found.authorization, found.max_age) == (f"https://{shown}:443", "Bearer one", 60)
    assert found.tls == TlsConfig(ca_data="PEM")
    (account / "token").write_text("two")
    assert (await found.source.load()).authorization == "Bearer two"


@pytest.mark.parametrize("name", ["token", "ca.crt"])
async def test_missing_service_account_is_a_config_error(account: Path, name: str) -> None:
    (account / name).unlink()
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        await load_config(environ=POD, now=now, service_account=account)


async def test_empty_token_is_a_config_error(account: Path) -> None:
    (account / "token").write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        await load_config(environ=POD, now=now, service_account=account)


async def test_sources_are_tried_in_the_order_of_controller_runtime(account: Path, tmp_path: Path) -> None:
    given = kubeconfig(tmp_path / "given", "given")
    environ = {**POD, "KUBECONFIG": kubeconfig(tmp_path / "env", "env"), "HOME": str(tmp_path)}
    kubeconfig(tmp_path / ".kube" / "config", "home")

    async def server(environ: dict[str, str], path: str = "", context: str = "") -> str:
        found = await load_config(environ=environ, now=now, kubeconfig=path, context=context, service_account=account)
        return found.server

    assert await server(environ, given) == "https://given"
    assert await server(environ) == "https://env"
    del environ["KUBECONFIG"]
    assert await server(environ) == "https://10.53.0.1:443"
    assert await server(environ, context="c") == "https://home"
    del environ["KUBERNETES_SERVICE_PORT"]
    assert await server(environ) == "https://home"


async def test_no_configuration_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kubeconfig .* not found\. Set --kubeconfig or KUBECONFIG"):
        await load_config(environ={"HOME": str(tmp_path)}, now=now)


def test_repr_shows_no_credentials(account: Path) -> None:
    source = InCluster(host="h", port="1", folder=account)
    found = ClientConfig(server="https://h", tls=TlsConfig(), source=source, authorization="Bearer hunter2")
    assert repr(found) == "ClientConfig(https://h)"
    assert found.max_age == math.inf
