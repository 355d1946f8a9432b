"""An environment block of GRUB: variables in a file of fixed size, which GRUB reads at boot.

os/kernel_arguments.py changes a variable of /oem/grubenv. The format is that of grub-editenv (GRUB 2.06,
grub-core/lib/envblk.c): a first line, a line for each variable with backslashes before backslashes and newlines, and
`#` up to the end.
"""

from __future__ import annotations

import re

#: Bytes of a block that grub-editenv creates.
SIZE = 1024
_FIRST = b"# GRUB Environment Block\n"
_FILL = b"#"
_LINE = re.compile(rb"(?:\\.|[^\\\n])*\n", re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_SPECIAL = re.compile(rb"[\\\n]")


class BadBlock(Exception):
    """The file is not an environment block."""


class BlockFull(Exception):
    """The variables do not fit into the block; the text has both numbers."""


def empty_block() -> bytes:
    """Return a block without variables."""
    return _FIRST.ljust(SIZE, _FILL)


def value_of(block: bytes, name: str) -> str | None:
    """Return a variable's value, None without the variable. Raises BadBlock."""
    start = _start(name)
    found = [line[len(start) : -1] for line in _lines(block) if line.startswith(start)]
    # GRUB sets the variables one after the other.
    return _ESCAPED.sub(rb"\1", found[-1]).decode("utf-8", "surrogateescape") if found else None


def with_value(block: bytes, name: str, value: str | None) -> bytes:
    """Return the block with another value of the variable, or without the variable. Raises BadBlock and BlockFull."""
    start, lines = _start(name), _lines(block)
    place = next((number for number, line in enumerate(lines) if line.startswith(start)), len(lines))
    lines = [line for line in lines if not line.startswith(start)]
    if value is not None:
        escaped = _SPECIAL.sub(lambda found: b"\\" + found[0], value.encode("utf-8", "surrogateescape"))
        lines.insert(place, start + escaped + b"\n")
    size, content = max(SIZE, len(block)), _FIRST + b"".join(lines)
    if len(content) > size:
        raise BlockFull(f"{len(content)} bytes are needed, and the block has {size}")
    return content.ljust(size, _FILL)


def _start(name: str) -> bytes:
    return name.encode() + b"="


def _lines(block: bytes) -> list[bytes]:
    """Return the lines behind the first one. Raises BadBlock."""
    content = block.rstrip(_FILL)
    if not content.startswith(_FIRST) or not content.endswith(b"\n"):
        raise BadBlock
    return _LINE.findall(content[len(_FIRST) :])
