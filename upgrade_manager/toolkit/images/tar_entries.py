"""Checks the entries of a tar stream on its way to a program of the host, which reads the stream as root.

An archive of images has plain files, directories, and links between them: `docker save` writes a layer that two images
share once, and a relative symbolic link for the second image. All other entries are refused, so that the other
program's parser never interprets them.
"""

from __future__ import annotations

import posixpath
import tarfile
from dataclasses import dataclass

from upgrade_manager.toolkit.run.errors import BadArchive

_BLOCK = tarfile.BLOCKSIZE
_FILES = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE})
_LINKS = frozenset({tarfile.SYMTYPE, tarfile.LNKTYPE})
_EXTENSIONS = frozenset({tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE})
#: Bytes of a long name or of PAX records, as in Go's archive/tar.
_MAX_EXTENSION = 1024 * 1024
_MAX_LINKS = 100_000
_SPARSE = "GNU.sparse."
_OVERRIDES = frozenset({"path", "linkpath", "size"})


@dataclass(slots=True)
class _Overrides:
    """Fields of the next entry from the extension headers before it."""

    path: str | None = None
    link: str | None = None
    size: int | None = None


class EntryChecker:
    """Reads the headers of one archive."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._block = bytearray()
        #: Bytes of the entry's content that have not passed yet, padding included.
        self._content = 0
        #: The extension header whose content is collected.
        self._extension: tarfile.TarInfo | None = None
        self._collected = bytearray()
        self._next = _Overrides()
        #: Normalised names of the symbolic links.
        self._symlinks: set[str] = set()
        self._ended = False

    def feed(self, piece: bytes) -> None:
        """Check the headers in the next bytes. Raises BadArchive."""
        view = memoryview(piece)
        while view:
            if self._content:
                view = view[self._pass(view) :]
                continue
            taken = view[: _BLOCK - len(self._block)]
            self._block += taken
            view = view[len(taken) :]
            if len(self._block) == _BLOCK:
                block = bytes(self._block)
                self._block.clear()
                self._header(block)

    def finish(self) -> None:
        """Raise BadArchive for a stream that ends before the archive does."""
        if self._content or any(self._block) or not self._ended:
            raise BadArchive(f"{self._name} ends in the middle of the archive")

    def _pass(self, view: memoryview) -> int:
        """Skip content, or collect the content of an extension header; return the number of bytes."""
        passed = min(self._content, len(view))
        self._content -= passed
        if self._extension is not None:
            self._collected += view[:passed]
            if not self._content:
                extension, self._extension = self._extension, None
                self._extend(extension, bytes(self._collected[: extension.size]))
                self._collected.clear()
        return passed

    def _header(self, block: bytes) -> None:
        if not any(block):
            self._ended = True
            return
        if self._ended:
            raise BadArchive(f"{self._name} has data after its end")
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise BadArchive(f"{self._name} is not a tar archive: {error}") from error
        if entry.type in _EXTENSIONS:
            self._begin_extension(entry)
        else:
            self._check(entry)

    def _begin_extension(self, entry: tarfile.TarInfo) -> None:
        if not 0 < entry.size <= _MAX_EXTENSION:
            raise BadArchive(f"{self._name}: an extension header has {entry.size} bytes")
        self._extension = entry
        self._content = _padded(entry.size)

    def _extend(self, extension: tarfile.TarInfo, content: bytes) -> None:
        if extension.type in {tarfile.XHDTYPE, tarfile.XGLTYPE}:
            self._pax(extension, content)
            return
        text = content.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        if extension.type == tarfile.GNUTYPE_LONGNAME:
            self._override(path=text)
        else:
            self._override(link=text)

    def _pax(self, extension: tarfile.TarInfo, content: bytes) -> None:
        records = self._pax_records(content)
        if any(key.startswith(_SPARSE) for key in records):
            raise BadArchive(f"{self._name} has a sparse file")
        if extension.type == tarfile.XGLTYPE and not _OVERRIDES.isdisjoint(records):
            raise BadArchive(f"{self._name} has a global header for {', '.join(sorted(_OVERRIDES & records.keys()))}")
        size = records.get("size")
        if size is not None and not (size.isascii() and size.isdigit()):
            raise BadArchive(f"{self._name} has a header with the size {size!r}")
        self._override(path=records.get("path"), link=records.get("linkpath"), size=None if size is None else int(size))

    def _pax_records(self, content: bytes) -> dict[str, str]:
        """Parse `LENGTH KEY=VALUE` lines, whose length counts all of the line."""
        records = {}
        while content:
            digits = content.partition(b" ")[0]
            length = int(digits) if digits.isdigit() and len(digits) < _BLOCK else 0
            key, separator, value = content[len(digits) + 1 : length - 1].partition(b"=")
            if not separator or length > len(content) or content[length - 1 : length] != b"\n":
                raise BadArchive(f"{self._name} has an invalid extension header")
            records[key.decode(errors="replace")] = value.decode("utf-8", "surrogateescape")
            content = content[length:]
        return records

    def _override(self, *, path: str | None = None, link: str | None = None, size: int | None = None) -> None:
        """Record fields of the next entry; refuse two headers for one field, which programs may read differently."""
        known = self._next
        if (path is not None and known.path is not None) or (link is not None and known.link is not None):
            raise BadArchive(f"{self._name} has an entry with two names")
        if path is not None:
            known.path = path
        if link is not None:
            known.link = link
        if size is not None:
            known.size = size

    def _check(self, entry: tarfile.TarInfo) -> None:
        fields, self._next = self._next, _Overrides()
        path = entry.name if fields.path is None else fields.path
        link = entry.linkname if fields.link is None else fields.link
        size = entry.size if fields.size is None else fields.size
        if not _inside(path) or not _inside(entry.name):
            raise self._refused(path, "has a path outside the archive")
        if entry.type in _FILES:
            if size < 0:
                raise self._refused(path, "has a negative size")
        elif size:
            raise self._refused(path, f"has {size} bytes but is not a file")
        elif entry.type in _LINKS:
            self._check_link(entry, path, link)
        elif entry.type != tarfile.DIRTYPE:
            raise self._refused(path, "is neither a file, a directory nor a link")
        self._check_parents(path)
        self._content = _padded(size)

    def _check_link(self, entry: tarfile.TarInfo, path: str, link: str) -> None:
        symbolic = entry.type == tarfile.SYMTYPE
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if symbolic else link
        if not link or "\0" in link or link.startswith("/") or not _inside(target):
            raise self._refused(path, f"links to {link!r}, outside the archive")
        if symbolic:
            self._symlinks.add(posixpath.normpath(path))
        if len(self._symlinks) > _MAX_LINKS:
            raise BadArchive(f"{self._name} has more than {_MAX_LINKS} links")

    def _check_parents(self, path: str) -> None:
        """Refuse an entry below a link, because its place depends on the program that follows the link."""
        parent = posixpath.dirname(posixpath.normpath(path))
        while self._symlinks and parent:
            if parent in self._symlinks:
                raise self._refused(path, "lies below a link")
            parent = posixpath.dirname(parent)

    def _refused(self, path: str, reason: str) -> BadArchive:
        return BadArchive(f"{self._name}: entry {path[:200]!r} {reason}")


def _inside(path: str) -> bool:
    return bool(path) and not path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
