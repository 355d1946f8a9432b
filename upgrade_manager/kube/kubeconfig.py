"""Loads the client configuration: a kubeconfig, or a Pod's service account.

The command line loads it in cli/run.py, cli/session.py and cli/toolkit.py; config.py holds the result.

kubernetes_asyncio reads kubeconfigs: merging, contexts, client certificates, tokens and their files, exec plugins,
OIDC. It is imported without its generated API classes (docs/decisions/0001-own-kubernetes-client.md).
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
from urllib.parse import quote, urlsplit

from upgrade_manager.kube import objects
from upgrade_manager.kube.config import FILE_MAX_AGE, SERVICE_ACCOUNT, ClientConfig, ConfigError, InCluster, TlsConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

_PACKAGE = "kubernetes_asyncio"
#: Seconds for an exec plugin or an OIDC provider.
_LOGIN_TIMEOUT = 60.0
#: A plugin's token is renewed so many seconds before it expires.
_EXPIRY_MARGIN = 60.0
#: Exceptions of the loader for a missing field.
_INCOMPLETE = (TypeError, AssertionError, AttributeError, KeyError)
#: Allowed in the name of an HTTP header, besides letters and digits; all others, and %, are quoted.
_HEADER_CHARACTERS = "!#$&'*+-.^_`|~"
_import_lock = threading.Lock()


async def load_config(
    *,
    environ: Mapping[str, str],
    now: Callable[[], datetime],
    kubeconfig: str = "",
    context: str = "",
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Load the first of: the given kubeconfig, $KUBECONFIG, the Pod's service account, ~/.kube/config.

    This is controller-runtime's order. With a context the service account is skipped. Raises ConfigError.
    """
    paths = _given(environ, kubeconfig)
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not paths and not context and host and port:
        return await InCluster(host=host, port=port, folder=service_account).load()
    return await Kubeconfig(paths=paths or _default(environ), context=context, now=now).load()


def context_names(*, environ: Mapping[str, str], kubeconfig: str) -> list[str]:
    """Return the contexts of the kubeconfig, for completion; none of files that cannot be read."""
    return _context_names(_files(_given(environ, kubeconfig) or _default(environ)))


def _context_names(files: Iterable[Path]) -> list[str]:
    names = []
    for path in files:
        try:
            content = _parsed(path)
        except ConfigError:
            continue
        names += [objects.text(entry, "name") for entry in objects.items(content, "contexts")]
    return [name for name in names if name]


def _given(environ: Mapping[str, str], kubeconfig: str) -> str:
    return kubeconfig or environ.get("KUBECONFIG", "")


def _default(environ: Mapping[str, str]) -> str:
    return str(Path(environ.get("HOME", "/")) / ".kube" / "config")


def _files(paths: str) -> list[Path]:
    files = [Path(path).expanduser() for path in paths.split(":") if path]
    return [path for path in files if path.is_file()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """Kubeconfig files, joined by colons, and a context; "" means the current context."""

    paths: str
    context: str
    now: Callable[[], datetime]

    async def load(self) -> ClientConfig:
        """Read the files and run the exec plugin, if any, in a thread. Later loads keep the context."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> ClientConfig:
        files = _files(self.paths)
        if not files:
            raise ConfigError(f"kubeconfig {self.paths} not found. Set --kubeconfig or KUBECONFIG")
        context = _current_context(files)
        try:
            return asyncio.run(self._load(self.context or context))
        except ConfigError:
            raise
        except TimeoutError as error:
            raise self._error(f"cannot be loaded: login timed out after {_LOGIN_TIMEOUT:g} s") from error
        except _INCOMPLETE as error:
            raise self._error("is incomplete: its context needs a user, and a cluster with a server") from error
        except Exception as error:  # the loader documents no exceptions
            raise self._error(f"cannot be loaded: {_first_line(error)}") from error

    async def _load(self, context: str) -> ClientConfig:
        if not context:
            raise self._error("lacks a current context. Run kubectl config use-context CONTEXT")
        if self.context and self.context not in _context_names(_files(self.paths)):
            raise self._error(f"lacks the context {context}. Run kubectl config get-contexts")
        library = config_library()
        loaded = library.Configuration()
        async with asyncio.timeout(_LOGIN_TIMEOUT):
            loader = await library.load_kube_config(
                config_file=self.paths, context=context, client_configuration=loaded
            )
        if not _is_url(loaded.host):
            raise self._error(f"is invalid: its server must be an http:// or https:// URL, not {loaded.host!r}")
        return ClientConfig(
            server=loaded.host,
            tls=_tls(loaded),
            source=replace(self, context=loader.current_context["name"]),
            # The loader does not strip the content of token files.
            authorization=str(loaded.api_key.get("BearerToken", "")).strip(),
            impersonation=_impersonation(loader._user.value if loader._user else {}),  # noqa: SLF001  # the loader drops it
            proxy=loaded.proxy or "",
            max_age=self._max_age(loader),
        )

    def _max_age(self, loader: Any) -> float:
        """Return the lifetime of a plugin's token, or the interval at which files are read again."""
        if "exec" not in (loader._user or {}):  # noqa: SLF001  # as the loader's own refresh does
            return FILE_MAX_AGE
        expiry = getattr(loader, "exec_plugin_expiry", None)
        if expiry is None:
            return math.inf
        left: float = (expiry - self.now()).total_seconds()
        return max(left - _EXPIRY_MARGIN, 1.0)

    def _error(self, reason: str) -> ConfigError:
        return ConfigError(f"kubeconfig {self.paths} {reason}")


def _current_context(files: list[Path]) -> str:
    """Return the context of the first file that names one, as kubectl does; the loader would use the last."""
    context = ""
    for path in files:
        content = _parsed(path)
        if not isinstance(content, dict):
            raise ConfigError(f"kubeconfig {path} is empty or not a kubeconfig")
        context = context or str(content.get("current-context") or "")
    return context


def _parsed(path: Path) -> Any:
    """Parse a file. Raises ConfigError without the text around the problem, which may be secret."""
    import yaml  # noqa: PLC0415  # 1 MiB, and a Pod reads no kubeconfig

    try:
        return yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        problem = _first_line(error)
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
            problem = f"line {error.problem_mark.line + 1}: {error.problem}"
        raise ConfigError(f"kubeconfig {path} cannot be read: {problem}") from error


def config_library() -> Any:
    """Import kubernetes_asyncio's kubeconfig module without the models.

    Its parent packages import the whole library. During the import they are replaced by empty stubs with the same path;
    afterwards all are removed from sys.modules, so that an ordinary import gets the whole library. The module is
    cached, because it tracks the temporary files that it creates.
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
        raise ConfigError("Python package kubernetes_asyncio not found; a kubeconfig requires it")
    folder = Path(spec.submodule_search_locations[0])
    _stub(_PACKAGE, folder)
    client = _stub(f"{_PACKAGE}.client", folder / "client")
    # Used only by functions that are never called here.
    client.ApiClient = object  # type: ignore[attr-defined]
    client.Configuration = importlib.import_module(f"{_PACKAGE}.client.configuration").Configuration  # type: ignore[attr-defined]
    library = importlib.import_module(f"{_PACKAGE}.config.kube_config")
    # The loader also logs the errors that it raises.
    library.logger.setLevel(logging.CRITICAL)
    return library


def _stub(name: str, folder: Path) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module
    return module


def _is_url(server: str) -> bool:
    try:
        parts = urlsplit(server)
        # Raises ValueError for a port that is impossible.
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _tls(loaded: Any) -> TlsConfig:
    cert, key = loaded.cert_file or "", loaded.key_file or ""
    if bool(cert) != bool(key):
        raise ConfigError("the kubeconfig's user is incomplete: it needs both client-certificate and client-key")
    digest = hashlib.sha256(Path(cert).read_bytes() + Path(key).read_bytes()).hexdigest() if cert else ""
    return TlsConfig(
        ca_data=Path(loaded.ssl_ca_cert).read_text() if loaded.ssl_ca_cert else "",
        cert_file=cert,
        key_file=key,
        cert_digest=digest,
        server_name=loaded.tls_server_name or "",
        insecure=not loaded.verify_ssl,
    )


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the headers for `as` and its companions (client-go's impersonatingRoundTripper)."""
    headers = [("impersonate-user", user.get("as")), ("impersonate-uid", user.get("as-uid"))]
    headers += [("impersonate-group", group) for group in user.get("as-groups") or ()]
    for name, values in (user.get("as-user-extra") or {}).items():
        header = f"impersonate-extra-{quote(name.lower(), safe=_HEADER_CHARACTERS)}"
        headers += [(header, value) for value in values or ()]
    given = tuple((name, str(value)) for name, value in headers if value)
    if given and not user.get("as"):
        raise ConfigError("the kubeconfig's user is incomplete: as-uid, as-groups and as-user-extra need as")
    return given


def _first_line(error: Exception) -> str:
    """Return the first line only: later lines of YAML errors quote the file, and with it secrets."""
    return (str(error).splitlines() or [type(error).__name__])[0]
