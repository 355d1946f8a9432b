"""Which API server to talk to and how to prove who we are, from a Pod's files or a kubeconfig.

A `Connection` is a snapshot. Credentials age, so it comes with its source, which can take a newer one.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

#: Seconds after which files that someone else rotates are read again.
FILE_AGE = 60.0
#: Where a Pod finds its credentials.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(Exception):
    """No usable configuration; `str()` is one sentence for whoever starts the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How to trust the server and, with a certificate, who we are. Equal when a new TLS context would be too."""

    #: PEM text of the authorities to trust; empty means the system's.
    authorities: str = ""
    #: Paths, because OpenSSL loads keys from files only.
    cert_file: str = ""
    key_file: str = ""
    #: SHA-256 over both files, so that rotation shows.
    cert_digest: str = ""
    #: The name to expect in the server's certificate where it is not the host's.
    server_name: str = ""
    verify: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What a transport needs to know."""

    #: `https://host:port`, perhaps with a path in front of all API paths; no slash at the end.
    server: str
    tls: Tls
    source: Source
    #: The Authorization header's value; empty with a client certificate or none.
    authorization: str = ""
    proxy: str = ""
    #: Seconds for which it holds; after that `source` is asked again.
    max_age: float = math.inf

    def __repr__(self) -> str:
        """Without credentials, so that no log or traceback shows them."""
        return f"Connection({self.server})"


class Source(Protocol):
    """Where connections come from."""

    async def connect(self) -> Connection:
        """Take a snapshot now. Raises ConfigError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster:
    """A Pod's service account: host and port from the environment, token and authority from files."""

    host: str
    port: str
    folder: Path

    async def connect(self) -> Connection:
        """Read the files, which the kubelet rotates."""
        token, authorities = await asyncio.to_thread(self._read)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return Connection(
            server=f"https://{host}:{self.port}",
            tls=Tls(authorities=authorities),
            source=self,
            authorization=f"Bearer {token}",
            max_age=FILE_AGE,
        )

    def _read(self) -> tuple[str, str]:
        try:
            token = (self.folder / "token").read_text().strip()
            authorities = (self.folder / "ca.crt").read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the service account in {self.folder} cannot be read: {error}; is automountServiceAccountToken off?"
            ) from error
        if not token:
            raise ConfigError(f"the token in {self.folder} is empty: the kubelet has not written it yet")
        return token, authorities
