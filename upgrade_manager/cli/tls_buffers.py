"""The size of TLS buffers, for a process with many connections that are idle most of the time.

run.py sets it before the first connection.

asyncio allocates a read buffer of 256 KiB for each TLS connection, without an option. The watches and requests of an
upgrade would take 4 MB with it.
"""

from __future__ import annotations

from asyncio import sslproto

#: Bytes; four TLS records of the largest size.
_SIZE = 1 << 16


def use_small_buffers() -> None:
    """Reduce the buffers of later connections; call it when the process starts."""
    sslproto.SSLProtocol.max_size = _SIZE
