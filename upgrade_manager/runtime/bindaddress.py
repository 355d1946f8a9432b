"""Where a server listens, as flags say it."""

from __future__ import annotations

from dataclasses import dataclass

#: What a flag says to have no such server.
OFF = "0"
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class BindAddress:
    """A host, empty for all of this machine's, and a port, 0 for any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> BindAddress | None:
        """From `:8443`, `127.0.0.1:8443`, `[::1]:8443`; None for `0`, which is off. Raises ValueError."""
        if text == OFF:
            return None
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > _MAX_PORT:
            raise ValueError(f"bind address {text!r} is not of the form [HOST]:PORT, or {OFF} for none")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))
