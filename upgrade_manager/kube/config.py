"""The server and the credentials of a client (client-go's rest.Config), and those of a Pod's service account.

A `ClientConfig` is a snapshot. Credentials expire, so it names the source that loads a newer one.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

#: Seconds after which files that may be rotated are read again.
FILE_MAX_AGE = 60.0
#: The folder in which the kubelet mounts the token and the CA of a Pod.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(Exception):
    """No usable configuration; `str()` is one sentence for the user who starts the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """The verification of the server, and the client certificate. Equal values give equal TLS contexts."""

    #: PEM text; "" for the system's authorities.
    ca_data: str = ""
    #: Paths, because OpenSSL loads keys only from files.
    cert_file: str = ""
    key_file: str = ""
    #: SHA-256 of both files, so that a rotated certificate gives an unequal value.
    cert_digest: str = ""
    #: The name in the server's certificate, if it is not the host's.
    server_name: str = ""
    insecure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The address and credentials of an API server, for a transport."""

    #: `https://host:port`, perhaps with a path prefix; no slash at the end.
    server: str
    tls: TlsConfig
    source: ConfigSource
    #: The Authorization header; "" with a client certificate or without credentials.
    authorization: str = ""
    #: Headers that name the user whom all requests impersonate; a name may be repeated.
    impersonation: tuple[tuple[str, str], ...] = ()
    proxy: str = ""
    #: Seconds after which the source is loaded again.
    max_age: float = math.inf

    def __repr__(self) -> str:
        """Omit the credentials, so that logs and tracebacks show none."""
        return f"ClientConfig({self.server})"


class ConfigSource(Protocol):
    """Loads configurations."""

    async def load(self) -> ClientConfig:
        """Return the current configuration. Raises ConfigError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster:
    """A Pod's service account: host and port from the environment, token and CA from files."""

    host: str
    port: str
    folder: Path

    async def load(self) -> ClientConfig:
        """Read the files, which the kubelet rotates."""
        token, ca_data = await asyncio.to_thread(self._read)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return ClientConfig(
            server=f"https://{host}:{self.port}",
            tls=TlsConfig(ca_data=ca_data),
            source=self,
            authorization=f"Bearer {token}",
            max_age=FILE_MAX_AGE,
        )

    def _read(self) -> tuple[str, str]:
        try:
            token = (self.folder / "token").read_text().strip()
            ca_data = (self.folder / "ca.crt").read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the service account in {self.folder} cannot be read: {error}. Check automountServiceAccountToken"
            ) from error
        if not token:
            raise ConfigError(f"the token in {self.folder} is empty. Check the Pod's service account and its kubelet")
        return token, ca_data
