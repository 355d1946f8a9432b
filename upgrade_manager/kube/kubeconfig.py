"""A kubeconfig as a source of connections, read by kubernetes_asyncio's loader.

The loader knows merging, contexts, client certificates, tokens and their files, exec plugins and OIDC. It is imported
without the generated API classes that come with it (docs/decisions/0001-lean-kubernetes-client.md).
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import logging
import math
import sys
import threading
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import yaml

from upgrade_manager.kube.config import FILE_AGE, SERVICE_ACCOUNT, ConfigError, Connection, InCluster, Tls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

_PACKAGE = "kubernetes_asyncio"
#: Seconds granted to an exec plugin or an OIDC provider.
_LOAD_TIMEOUT = 60.0
#: Seconds before the end of a plugin's token at which a new one is asked for.
_EXPIRY_MARGIN = 60.0
#: What the loader raises where something is missing from a file.
_INCOMPLETE = (TypeError, AssertionError, AttributeError, KeyError)
_import_lock = threading.Lock()


async def load_config(
    *,
    environ: Mapping[str, str],
    now: Callable[[], datetime],
    kubeconfig: str = "",
    context: str = "",
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The first that is there: the kubeconfig given, $KUBECONFIG, the Pod's service account, ~/.kube/config.

    This is controller-runtime's order. A context given rules the service account out. Raises ConfigError.
    """
    paths = kubeconfig or environ.get("KUBECONFIG", "")
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not paths and not context and host and port:
        return await InCluster(host=host, port=port, folder=service_account).connect()
    paths = paths or str(Path(environ.get("HOME", "/")) / ".kube" / "config")
    return await Kubeconfig(paths=paths, context=context, now=now).connect()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """One or more kubeconfig files, joined by colons, and a context in them; empty means the current one."""

    paths: str
    context: str
    now: Callable[[], datetime]

    async def connect(self) -> Connection:
        """Read the files, and run the exec plugin if there is one, in a thread. Later reads keep the context."""
        return await asyncio.to_thread(self._load)

    def _load(self) -> Connection:
        files = [Path(path).expanduser() for path in self.paths.split(":") if path]
        files = [path for path in files if path.is_file()]
        if not files:
            raise ConfigError(f"there is no kubeconfig at {self.paths}: set --kubeconfig or KUBECONFIG")
        context = _current_context(files)
        try:
            return asyncio.run(self._loaded(self.context or context))
        except ConfigError:
            raise
        except TimeoutError as error:
            raise ConfigError(
                f"the kubeconfig {self.paths} cannot be used: its login took over {_LOAD_TIMEOUT:g} s"
            ) from error
        except _INCOMPLETE as error:
            raise ConfigError(
                f"the kubeconfig {self.paths} is incomplete: its context must name a cluster with a server, and a user"
            ) from error
        except Exception as error:  # whatever else the loader stumbles over
            raise ConfigError(f"the kubeconfig {self.paths} cannot be used: {_first_line(error)}") from error

    async def _loaded(self, context: str) -> Connection:
        if not context:
            raise ConfigError(
                f"the kubeconfig {self.paths} names no current context: set it with kubectl config use-context"
            )
        library = config_library()
        found = library.Configuration()
        async with asyncio.timeout(_LOAD_TIMEOUT):
            loader = await library.load_kube_config(config_file=self.paths, context=context, client_configuration=found)
        if not found.host.startswith(("https://", "http://")):
            raise ConfigError(f"the kubeconfig {self.paths} names no server that is an http or https address")
        return Connection(
            server=found.host,
            tls=_tls(found),
            source=replace(self, context=loader.current_context["name"]),
            authorization=_authorization(found),
            proxy=found.proxy or "",
            max_age=self._max_age(loader),
        )

    def _max_age(self, loader: Any) -> float:
        """A plugin says how long its answer holds; files are read again now and then."""
        if "exec" not in (loader._user or {}):  # noqa: SLF001  # the loader's own refresh does the same
            return FILE_AGE
        expiry = getattr(loader, "exec_plugin_expiry", None)
        if expiry is None:
            return math.inf
        left: float = (expiry - self.now()).total_seconds()
        return max(left - _EXPIRY_MARGIN, 1.0)


def _current_context(files: list[Path]) -> str:
    """The first file that names one counts, as for kubectl; for the loader it would be the last."""
    named = ""
    for path in files:
        try:
            content = yaml.safe_load(path.read_text())
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise ConfigError(f"the kubeconfig {path} cannot be read as YAML: {_problem(error)}") from error
        if not isinstance(content, dict):
            raise ConfigError(f"the kubeconfig {path} is empty or holds something else than a kubeconfig")
        named = named or str(content.get("current-context") or "")
    return named


def _problem(error: Exception) -> str:
    """Where it is and what it is, without the text around it, which may be secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return _first_line(error)


def config_library() -> Any:
    """kubernetes_asyncio's module that reads kubeconfigs, imported without the models.

    Its parent packages import everything there is. For the time of the import they are replaced by empty ones that
    find the same files; afterwards all of it is taken out of sys.modules again, so that whoever imports the library in
    the ordinary way gets it whole. The module is kept, because it remembers the temporary files that it made.
    """
    with _import_lock:
        return _imported()


@cache
def _imported() -> Any:
    if _PACKAGE in sys.modules:
        return importlib.import_module(f"{_PACKAGE}.config.kube_config")
    try:
        return _import_lean()
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == _PACKAGE]:
            del sys.modules[name]


def _import_lean() -> Any:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("reading a kubeconfig needs the Python package kubernetes_asyncio, which is not installed")
    folder = Path(spec.submodule_search_locations[0])
    _stub(_PACKAGE, folder)
    client = _stub(f"{_PACKAGE}.client", folder / "client")
    # The loader names it in functions that are never called here.
    client.ApiClient = object  # type: ignore[attr-defined]
    client.Configuration = importlib.import_module(f"{_PACKAGE}.client.configuration").Configuration  # type: ignore[attr-defined]
    library = importlib.import_module(f"{_PACKAGE}.config.kube_config")
    # It logs what it raises, which we tell.
    library.logger.setLevel(logging.CRITICAL)
    return library


def _stub(name: str, folder: Path) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module
    return module


def _tls(found: Any) -> Tls:
    cert, key = found.cert_file or "", found.key_file or ""
    if bool(cert) != bool(key):
        raise ConfigError(
            "the kubeconfig's user has a client certificate without a key, or a key without a certificate"
        )
    digest = hashlib.sha256(Path(cert).read_bytes() + Path(key).read_bytes()).hexdigest() if cert else ""
    return Tls(
        authorities=Path(found.ssl_ca_cert).read_text() if found.ssl_ca_cert else "",
        cert_file=cert,
        key_file=key,
        cert_digest=digest,
        server_name=found.tls_server_name or "",
        verify=found.verify_ssl,
    )


def _authorization(found: Any) -> str:
    """The loader does not strip what it reads from token files."""
    return str(found.api_key.get("BearerToken", "")).strip()


def _first_line(error: Exception) -> str:
    """Later lines of YAML errors quote the file, and with it secrets."""
    return (str(error).splitlines() or [type(error).__name__])[0]
