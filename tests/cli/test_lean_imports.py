"""What `upgrade-manager run` loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from hack.cluster.certificates import Authority

#: Prints, at the exit of a manager that finds no cluster, what it has loaded.
SCRIPT = """
import atexit, json, os, ssl, sys
sys.argv = ["upgrade-manager", "run", "--kubeconfig=/missing"]

def report():
    from aiohttp import connector
    authorities = {name: os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
    context = connector._SSL_CONTEXT_VERIFIED
    trusted = context.cert_store_stats()["x509"]
    verifies = context.verify_mode is ssl.CERT_REQUIRED
    print(json.dumps([sorted(sys.modules), authorities, trusted, verifies]))

atexit.register(report)
from upgrade_manager.cli.main import main
main()
"""
#: What the manager does not use, or only in a child process, or only with a kubeconfig.
UNUSED = {
    "cffi",
    "cryptography",
    "importlib.metadata",
    "kubernetes_asyncio",
    "multiprocessing",
    "pdb",
    "pydantic.v1",
    "pydantic.networks",
    "setuptools",
    "sqlite3",
    "unittest",
    "urllib3",
    "uvloop",
    "xml",
}
UNUSED_OWN = {
    "upgrade_manager.cli.preflight",
    "upgrade_manager.api.crd",
    "webhook.certificates.issuer",
    "hack",
    "tests",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The state of the process at its exit."""

    modules: set[str]
    #: The environment variables that name the system's authorities.
    authorities: dict[str, str | None]
    #: The number of authorities that aiohttp's default context trusts.
    trusted: int
    verifies: bool


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("system") / "authorities.pem"
    path.write_bytes(Authority(now=datetime.now(UTC)).certificate)
    return str(path)


@pytest.fixture(scope="module")
def loaded(authorities: str) -> Loaded:
    environ = {name: value for name, value in os.environ.items() if name != "SSL_CERT_DIR"}
    done = subprocess.run(  # noqa: S603  # the command under test
        [sys.executable, "-c", SCRIPT],
        env={**environ, "SSL_CERT_FILE": authorities},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert "cannot start" in done.stderr
    modules, found, trusted, verifies = json.loads(done.stdout)
    return Loaded(modules=set(modules), authorities=found, trusted=trusted, verifies=verifies)


def test_unused_modules_are_not_loaded(loaded: Loaded) -> None:
    assert {"aiohttp", "pydantic", "upgrade_manager.pipeline.controller", "webhook.admission"} <= loaded.modules
    assert (UNUSED | UNUSED_OWN) & loaded.modules == set()


def test_default_tls_context_of_aiohttp_trusts_no_server(loaded: Loaded, authorities: str) -> None:
    assert (loaded.trusted, loaded.verifies) == (0, True)
    assert loaded.authorities == {"SSL_CERT_FILE": authorities, "SSL_CERT_DIR": None}
