"""Requests whose small body unpacks to a large one."""

from __future__ import annotations

import zlib
from functools import cache

#: Bytes of the body, and those that it unpacks to.
SIZE, UNPACKED = 1 << 20, 1000 << 20
_BLOCK = 1 << 20
_GZIP_HEADER, _RAW_DEFLATE, _LAST_BLOCK = b"\x1f\x8b\x08" + bytes(6) + b"\xff", -15, b"\x03\x00"


@cache
def gzip_bomb() -> bytes:
    """Return a gzip body of SIZE bytes that unpacks to UNPACKED bytes of zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW_DEFLATE)
    # A block of deflate that depends on no other may be repeated.
    block = packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = _GZIP_HEADER + block * (UNPACKED // _BLOCK) + _LAST_BLOCK
    return packed + bytes(SIZE - len(packed))


def bomb_request(method: str, path: str, *, encoding: str = "gzip", extra: str = "") -> bytes:
    """Return a whole request with the bomb; `extra` are more lines of its head."""
    body = gzip_bomb()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: {encoding}\r\n"
    if "Transfer-Encoding" in extra:
        return f"{head}{extra}\r\n".encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return f"{head}{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body
