"""The modules that `upgrade-manager run` and the commands of the Jobs load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from hack.bench.imports import IDLE, MANAGER, WEBHOOK
from hack.bench.imports import loaded as loaded_by
from hack.control_plane.certificates import Authority
from upgrade_manager.toolkit.run.catalogue import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterable

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
# As build_manager does, where they run.
import upgrade_manager.cli.leader, webhook.wiring
"""
#: Prints what a command of a Job has loaded before its first step.
COMMAND_SCRIPT = """
import json, sys
from upgrade_manager.cli.lean_imports import skip_optional_parts
skip_optional_parts()
import upgrade_manager.cli.options, upgrade_manager.cli.toolkit
from upgrade_manager.toolkit.run.catalogue import steps_of
steps_of(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""
#: Prints what a command for users has loaded that finds no cluster.
USER_SCRIPT = """
import json, sys
sys.argv = ["upgrade-manager", *sys.argv[1:], "--kubeconfig=/missing"]
from upgrade_manager.cli.main import main
main()
print(json.dumps(sorted(sys.modules)))
"""
#: Modules that the manager does not use, or only in a child process, or only with a kubeconfig.
UNUSED = {
    *("argcomplete", "cffi", "cryptography", "importlib.metadata", "jinja2", "kubernetes_asyncio", "multiprocessing"),
    *("frozenlist._frozenlist", "pdb", "pydantic.v1", "pydantic.networks", "rich.console", "setuptools", "sqlite3"),
    *("unittest", "urllib3"),
    *("uvloop", "xml"),
}
UNUSED_OWN = {
    *("upgrade_manager.cli.preflight", "upgrade_manager.cli.report", "upgrade_manager.cli.status"),
    *("upgrade_manager.display", "upgrade_manager.api.crd", "webhook.certificates.issuer", "hack", "tests"),
}
#: All packages of others which the manager and the webhook load: each costs memory and time of a start.
LIBRARIES = {
    *("aiohappyeyeballs", "aiohttp", "aiosignal", "annotated_types", "attr", "frozenlist", "idna", "multidict"),
    *("prometheus_client", "propcache", "pydantic", "pydantic_core", "structlog", "typing_extensions"),
    *("typing_inspection", "yarl"),
}
#: Those of them that a manager without a plan does not load.
OF_A_PLAN = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
#: Large packages of the standard library that these libraries load.
LARGE = {
    *("argparse", "asyncio", "decimal", "email", "html", "http", "inspect", "ipaddress", "json", "logging", "pickle"),
    *("ssl", "subprocess", "tempfile", "urllib", "wsgiref", "zoneinfo"),
}
#: Large packages of it that nothing loads, but for ctypes, which the webhook returns memory with.
LARGE_UNUSED = {
    *(
        "cgi",
        "configparser",
        "csv",
        "ctypes",
        "curses",
        "dbm",
        "distutils",
        "doctest",
        "ensurepip",
        "ftplib",
        "imaplib",
    ),
    *("mailbox", "multiprocessing", "optparse", "pdb", "pickletools", "profile", "pydoc", "smtplib", "sqlite3"),
    *("tarfile", "tkinter", "tomllib", "turtle", "unittest", "venv", "xml", "xmlrpc", "zipapp", "zipfile"),
}
#: Modules of the manager and of its libraries, by the command, with room for one in thirty more.
MODULES = {IDLE: 310, MANAGER: 540, WEBHOOK: 400}
#: Modules that no command of a Job uses: aiohttp's server, the controller, and the metrics.
UNUSED_BY_COMMANDS = UNUSED | {
    *("aiohttp.web", "prometheus_client", "pydantic", "upgrade_manager.runtime.http_server", "webhook"),
    *("upgrade_manager.runtime.leader_election", "upgrade_manager.runtime.manager"),
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


@cache
def wired(*arguments: str) -> dict[str, Any]:
    """Return what a manager or webhook has loaded when it is wired."""
    return loaded_by(*arguments)


def packages_of(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def is_of_a_library(module: str) -> bool:
    """Return True for modules of this and other distributions, apart from tools of packaging, systems and compilers."""
    package = module.partition(".")[0]
    others = {*sys.stdlib_module_names, "cython_runtime", "sitecustomize"}
    return package not in others and not package.startswith("_")


def output_of(script: str, *arguments: str, environ: dict[str, str] | None = None) -> Any:
    """Return what a script prints as JSON."""
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=40, check=False)  # noqa: S603  # the command under test
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def loaded(authorities: str) -> Loaded:
    environ = {name: value for name, value in os.environ.items() if name != "SSL_CERT_DIR"}
    modules, found, trusted, verifies = output_of(SCRIPT, environ=environ | {"SSL_CERT_FILE": authorities})
    return Loaded(modules=set(modules), authorities=found, trusted=trusted, verifies=verifies)


@pytest.mark.full
def test_unused_modules_are_not_loaded(loaded: Loaded) -> None:
    assert {"aiohttp", "pydantic", "upgrade_manager.pipeline.controller", "webhook.admission"} <= loaded.modules
    assert (UNUSED | UNUSED_OWN) & loaded.modules == set()


@pytest.mark.parametrize("arguments", MODULES, ids=" ".join)
@pytest.mark.full
def test_libraries_and_number_of_modules_are_pinned(arguments: tuple[str, ...]) -> None:
    modules = wired(*arguments)["modules"]
    unused = LARGE_UNUSED - ({"ctypes"} if arguments == WEBHOOK else set())
    not_idle = OF_A_PLAN | {"zoneinfo"} if arguments == IDLE else set()
    assert packages_of(modules) & (LARGE | unused) == LARGE - not_idle
    counted = [name for name in modules if is_of_a_library(name)]
    assert packages_of(counted) == LIBRARIES - not_idle | {"upgrade_manager", "webhook"}
    assert MODULES[arguments] * 0.9 < len(counted) <= MODULES[arguments], "change the number, or load less"


@pytest.mark.parametrize(
    ("arguments", "loaded", "unused"),
    [
        pytest.param(MANAGER, "upgrade_manager.pipeline.reconciler", "webhook.wiring", id="without webhook"),
        pytest.param(IDLE, "upgrade_manager.pipeline.controller", "upgrade_manager.pipeline.phases", id="without plan"),
        pytest.param(WEBHOOK, "webhook.admission", "upgrade_manager.pipeline", id="webhook alone"),
    ],
)
def test_process_loads_what_it_serves_only(arguments: tuple[str, ...], loaded: str, unused: str) -> None:
    modules = set(wired(*arguments)["modules"])
    assert loaded in modules
    assert unused not in modules


def test_default_tls_context_of_aiohttp_trusts_no_server(loaded: Loaded, authorities: str) -> None:
    assert (loaded.trusted, loaded.verifies) == (0, True)
    assert loaded.authorities == {"SSL_CERT_FILE": authorities, "SSL_CERT_DIR": None}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.thin
def test_command_of_a_job_loads_no_server_and_no_controller(command: str) -> None:
    modules = {*output_of(COMMAND_SCRIPT, command)}
    assert "upgrade_manager.toolkit.run.steps" in modules
    assert UNUSED_BY_COMMANDS & modules == set()


@pytest.mark.parametrize(("line", "library"), [("status", "rich.console"), ("report -o -", "jinja2")])
@pytest.mark.full
def test_command_for_users_loads_its_library_only(line: str, library: str) -> None:
    modules = {*output_of(USER_SCRIPT, *line.split())}
    assert library in modules
    assert (UNUSED_BY_COMMANDS - {library}) & modules == set()
    assert "upgrade_manager.pipeline" not in modules
