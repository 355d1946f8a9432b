from __future__ import annotations

import asyncio
import base64
import json
import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from hack.control_plane.certificates import Authority
from upgrade_manager.kube.config import ClientConfig, ConfigError
from upgrade_manager.kube.kubeconfig import Kubeconfig, _imported, config_library, context_names

TOKEN = {"token": "t"}
NOW = datetime(2025, 11, 21, 9, tzinfo=UTC)
AUTHORITY = Authority(now=NOW)


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> str:
    path = folder / "config"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "k", "user": "u"}},
            {"name": "two", "context": {"cluster": "l", "user": "u"}},
        ],
        "clusters": [
            {"name": "k", "cluster": {"server": "https://k.example.org:6443/", **cluster}},
            {"name": "l", "cluster": {"server": "http://l.example.org"}},
        ],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def loaded(paths: str, context: str = "") -> ClientConfig:
    return await Kubeconfig(paths=paths, context=context, now=lambda: NOW).load()


async def test_user_and_cluster_settings_are_loaded(tmp_path: Path) -> None:
    config = await loaded(kubeconfig(tmp_path, TOKEN, **{"certificate-authority-data": encoded(b"PEM")}))
    assert (config.server, config.authorization, config.max_age) == ("https://k.example.org:6443", "Bearer t", 60)
    assert (config.tls.ca_data, config.tls.insecure, config.tls.cert_file) == ("PEM", False, "")
    settings = {"insecure-skip-tls-verify": True, "tls-server-name": "kube", "proxy-url": "http://proxy:3128"}
    config = await loaded(kubeconfig(tmp_path, {"username": "a", "password": "b"}, **settings))
    assert (config.tls.insecure, config.tls.server_name, config.proxy) == (True, "kube", "http://proxy:3128")
    assert config.authorization == "Basic " + encoded(b"a:b")


async def test_token_file_is_read_at_every_load(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    config = await loaded(kubeconfig(tmp_path, {"tokenFile": "token"}))
    assert config.authorization == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert (await config.source.load()).authorization == "Bearer two"


async def test_impersonated_user_is_loaded(tmp_path: Path) -> None:
    extra = {"Scopes": ["view", "dev"], "acme.com/team 1%": ["a"], "none": []}
    user = {"as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": extra}
    config = await loaded(kubeconfig(tmp_path, TOKEN | user))
    assert config.authorization == "Bearer t"
    assert config.impersonation == (
        ("impersonate-user", "jane"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-scopes", "view"),
        ("impersonate-extra-scopes", "dev"),
        ("impersonate-extra-acme.com%2Fteam%201%25", "a"),
    )
    assert (await loaded(kubeconfig(tmp_path, TOKEN))).impersonation == ()


@pytest.mark.parametrize("field", [{"as-uid": "7"}, {"as-groups": ["dev"]}, {"as-user-extra": {"a": ["b"]}}])
async def test_impersonation_without_a_user_is_a_config_error(tmp_path: Path, field: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is incomplete: as-uid, as-groups and as-user-extra need as"):
        await loaded(kubeconfig(tmp_path, TOKEN | field))


@pytest.mark.parametrize("is_data", [True, False], ids=["as data", "as files"])
async def test_client_certificate_is_loaded(tmp_path: Path, *, is_data: bool) -> None:
    pair = AUTHORITY.server()
    _, key_file = pair.write(tmp_path, "client")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    if is_data:
        user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    else:
        user = {"client-certificate": "client.crt", "client-key": "client.key"}
    config = await loaded(kubeconfig(tmp_path, user, **{"certificate-authority": "ca.crt"}))
    assert read(config.tls.cert_file) == pair.certificate
    assert read(config.tls.key_file) == pair.key
    assert config.tls.ca_data.startswith("-----BEGIN")
    assert config.authorization == ""
    key_file.write_bytes(pair.key + b"\n")
    assert ((await config.source.load()).tls == config.tls) == is_data


async def test_loaded_context_is_kept(tmp_path: Path) -> None:
    paths = kubeconfig(tmp_path, TOKEN)
    config = await loaded(paths, "two")
    assert config.server == "http://l.example.org"
    config = await loaded(paths)
    (tmp_path / "config").write_bytes(read(paths).replace(b"current-context: one", b"current-context: two"))
    assert (await config.source.load()).server == "https://k.example.org:6443"


async def test_several_files_are_merged(tmp_path: Path) -> None:
    paths = kubeconfig(tmp_path, TOKEN)
    first = tmp_path / "first"
    first.write_text("current-context: two\n")
    assert (await loaded(f"{first}:{tmp_path / 'absent'}:{paths}")).server == "http://l.example.org"


def plugin(folder: Path, **status: Any) -> dict[str, Any]:
    """Write an exec plugin that returns that status and counts its runs."""
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    script = f"echo -n x >>{folder}/runs; printf %s '{json.dumps(credential)}'"
    return {"exec": {"apiVersion": version, "command": "sh", "args": ["-c", script]}}


async def test_plugin_runs_again_before_its_token_expires(tmp_path: Path) -> None:
    ends = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = await loaded(kubeconfig(tmp_path, plugin(tmp_path, **TOKEN, expirationTimestamp=ends)))
    assert config.authorization == "Bearer t"
    assert config.max_age == 3600 - 60
    await config.source.load()
    assert (tmp_path / "runs").read_text() == "xx"


async def test_plugin_may_return_a_certificate_without_expiry(tmp_path: Path) -> None:
    pair = AUTHORITY.server()
    data = {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()}
    config = await loaded(kubeconfig(tmp_path, plugin(tmp_path, **data)))
    assert read(config.tls.cert_file) == pair.certificate
    assert config.max_age == math.inf


async def test_failing_plugin_is_a_config_error(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}}
    with pytest.raises(ConfigError, match="cannot be loaded: exec: process returned 1"):
        await loaded(kubeconfig(tmp_path, user))


async def test_hanging_plugin_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("upgrade_manager.kube.kubeconfig._LOGIN_TIMEOUT", 0.2)

    async def hang(**_: Any) -> None:
        await asyncio.sleep(30)

    library = config_library()
    monkeypatch.setattr(library, "load_kube_config", hang)
    monkeypatch.setattr("upgrade_manager.kube.kubeconfig.config_library", lambda: library)
    with pytest.raises(ConfigError, match=r"login timed out after 0\.2 s"):
        await loaded(kubeconfig(tmp_path, TOKEN))


CONTEXT = "current-context: x\ncontexts: [{name: x, context: {cluster: k, user: u}}]\n"
CLUSTER = "clusters: [{name: k, cluster: {server: 'https://x'}}]\n"
USER = "users: [{name: u, user: {token: t}}]\n"
BROKEN = {
    "not YAML": ("a: hunter2\nusers: [", "cannot be read: line 2: "),
    "binary": ("\0", "cannot be read: unacceptable character"),
    "not a kubeconfig": ("just text", "is empty or not a kubeconfig"),
    "empty": ("", "is empty"),
    "no current context": ("contexts: []\n" + CLUSTER + USER, "lacks a current context. Run kubectl config"),
    "no contexts": ("current-context: x", "name x"),
    "no cluster": (CONTEXT + "clusters: []\n" + USER, "name k"),
    "no user": (CONTEXT + CLUSTER + "users: []", "is incomplete"),
    "no server": (CONTEXT + "clusters: [{name: k, cluster: {}}]\n" + USER, "is incomplete"),
    "another scheme": (
        CONTEXT + "clusters: [{name: k, cluster: {server: 'ftp://x'}}]\n" + USER,
        "server must be an http",
    ),
    "no host": (
        CONTEXT + "clusters: [{name: k, cluster: {server: 'https://'}}]\n" + USER,
        "must be an http.*'https:'",
    ),
    "an impossible port": (
        CONTEXT + "clusters: [{name: k, cluster: {server: 'https://x:99999'}}]\n" + USER,
        "server must be an http.*'https://x:99999'",
    ),
}


@pytest.mark.parametrize(("content", "words"), BROKEN.values(), ids=BROKEN.keys())
async def test_broken_file_is_a_config_error_of_one_line(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "config").write_text(content)
    with pytest.raises(ConfigError, match=rf"^kubeconfig .*config .*{words}") as caught:
        await loaded(str(tmp_path / "config"))
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_unknown_context_is_a_config_error_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(CONTEXT + CLUSTER + USER)
    with pytest.raises(ConfigError, match=r"lacks the context nope\. Run kubectl config get-contexts"):
        await loaded(str(tmp_path / "config"), context="nope")
    assert (await loaded(str(tmp_path / "config"), context="x")).server == "https://x"


def test_contexts_of_all_readable_files_are_named(tmp_path: Path) -> None:
    contents = (CONTEXT, "contexts: [{name: y}, {name: 7}, null]", "{", "- a", "")
    for index, content in enumerate(contents):
        (tmp_path / str(index)).write_text(content)
    paths = ":".join(str(tmp_path / str(index)) for index in range(len(contents) + 1))
    assert context_names(environ={}, kubeconfig=paths) == ["x", "y"]
    assert context_names(environ={"KUBECONFIG": paths}, kubeconfig="") == ["x", "y"]
    assert context_names(environ={"HOME": str(tmp_path)}, kubeconfig="") == []


async def test_missing_files_are_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("x")
    with pytest.raises(ConfigError, match="needs both client-certificate and client-key"):
        await loaded(kubeconfig(tmp_path, {"client-certificate": "c"}))
    with pytest.raises(ConfigError, match="nowhere"):
        await loaded(kubeconfig(tmp_path, {"client-certificate": "nowhere"}))
    with pytest.raises(ConfigError, match=r"not found\. Set --kubeconfig"):
        await loaded(f":{tmp_path / 'absent'}")


LEAN = """
import resource, sys
import aiohttp, structlog, yaml
import upgrade_manager.kube.http_transport, upgrade_manager.kube.informer, upgrade_manager.kube.kubeconfig
assert not [name for name in sys.modules if "kubernetes" in name]
imported = []
sys.addaudithook(lambda event, details: imported.append(details[0]) if event == "import" else None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from upgrade_manager.kube.kubeconfig import config_library
library = config_library()
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
names = [name for name in sys.modules if "kubernetes" in name]
assert names == [], names
assert library.KubeConfigLoader
loaded = [name for name in imported if name.startswith("kubernetes_asyncio")]
assert "kubernetes_asyncio.config.kube_config" in loaded
assert not [name for name in loaded if ".models" in name or ".api" in name or ".rest" in name], loaded
print((after - before) // 1024)
import kubernetes_asyncio
assert kubernetes_asyncio.client.CoreV1Api
assert config_library() is library
"""


@pytest.mark.full
def test_library_is_imported_late_and_without_its_models() -> None:
    run = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, text=True, check=False)  # noqa: S603  # our own
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 15
    assert version("kubernetes_asyncio").startswith("36.1.")


def test_missing_library_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "kubernetes_asyncio", raising=False)
    _imported.cache_clear()
    with pytest.raises(ConfigError, match="not found; a kubeconfig requires it"):
        config_library()


def test_library_that_is_already_imported_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ModuleType("kubernetes_asyncio.config.kube_config")
    for name in ("kubernetes_asyncio", "kubernetes_asyncio.config", "kubernetes_asyncio.config.kube_config"):
        monkeypatch.setitem(sys.modules, name, whole)
    _imported.cache_clear()
    assert config_library() is whole
    _imported.cache_clear()
