"""Imports of libraries without the parts that the manager does not use: 5 MB and 60 ms.

main.py and user_commands.py call it before the first import of these libraries.
"""

from __future__ import annotations

import os
import sys

#: The file from which OpenSSL reads the system's authorities.
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def skip_optional_parts() -> None:
    """Import the libraries that are selective only at their import; call it before any other import of them."""
    # structlog uses rich for tracebacks if it is installed.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # documented: an import now fails
    # pydantic searches all installed distributions for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    # Its compiled list loads the C++ library: 1 MiB, for the few lists of callbacks of aiohttp's applications.
    os.environ.setdefault("FROZENLIST_NO_EXTENSIONS", "1")


def allow_rich() -> None:
    """Make rich importable again, for commands that print tables; structlog has been imported without it."""
    if sys.modules.get("rich") is None:
        sys.modules.pop("rich", None)


def import_aiohttp_without_authorities() -> None:
    """Import aiohttp with a default TLS context that trusts no server, for programs that pass their own contexts.

    aiohttp loads the system's authorities at its import.
    """
    original = {name: os.environ.get(name) for name in _AUTHORITIES}
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    try:
        import aiohttp  # noqa: F401, PLC0415  # with this environment
    finally:
        for name, value in original.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
