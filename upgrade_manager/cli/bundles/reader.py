"""Reads a bundle, which may come from anywhere: nothing is unpacked to the disk, and no size in it is trusted.

status.py and report.py read it with `--from`, in place of the cluster.
"""

from __future__ import annotations

import gzip
import json
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.cli.bundles import contents
from upgrade_manager.cli.bundles.archive import FORMAT, HISTORY, LEASE, MANIFEST
from upgrade_manager.cli.plans import pace_for
from upgrade_manager.cli.session import CommandError
from upgrade_manager.display.leader import LeaseReading
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from upgrade_manager.display.expectation import Pace
    from upgrade_manager.kube.objects import Object

#: Bytes of a bundle once it is unpacked, of one of its files, and their number: more is not a bundle.
_MAX_UNPACKED, _MAX_FILE, _MAX_FILES = 400_000_000, 16_000_000, 10_000
_READ = frozenset({MANIFEST, contents.PLANS, contents.EVENTS, contents.NODES, HISTORY, LEASE})
#: The errors of gzip and tar for a file that is none, or that ends early.
_UNREADABLE = (EOFError, OSError, tarfile.TarError, zlib.error, ValueError)


class _Foreign(Exception):  # its text says what is wrong with the file
    """The file is not a bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An upgrade as a bundle has it."""

    plan: Object
    events: list[Object]
    nodes: Sequence[Object]
    history: Mapping[str, object]
    pace: Pace
    lease: LeaseReading
    #: The time at which it was written, by the API server's clock.
    now: datetime
    #: By path, what could not be read then, with the reason.
    unread: Mapping[str, str]

    def refusal(self, path: str) -> str:
        """Return why a file could not be read; empty if it could."""
        return str(self.unread.get(path) or "")


def read_bundle(file: str, *, plan: str) -> Bundle:
    """Return the bundle in a file, about that plan or any. Raises CommandError."""
    try:
        with gzip.open(file) as packed:
            return _bundle(_files(packed), plan)
    except _Foreign as error:
        raise CommandError(f"{file}: {error}") from error
    except OSError as error:
        if error.strerror:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from error
        text = f"{file} is not a bundle: it is not compressed. Write one with upgrade-manager bundle"
        raise CommandError(text) from error
    except EOFError as error:
        raise CommandError(f"{file} is cut: it ends before its end. Copy it again") from error
    except _UNREADABLE as error:
        raise CommandError(f"{file} is not a bundle, or damaged: {error}") from error


class _Limited:
    """A stream that refuses to become larger than any bundle."""

    def __init__(self, packed: gzip.GzipFile) -> None:
        self._packed = packed
        self._left = _MAX_UNPACKED

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises _Foreign."""
        if not 0 <= size <= self._left:
            raise _Foreign(f"it unpacks to more than {_MAX_UNPACKED // 1_000_000} MB, so it is not a bundle")
        found = self._packed.read(size)
        self._left -= len(found)
        return found


def _files(packed: gzip.GzipFile) -> dict[str, bytes]:
    """Return the files that are shown, by their paths in the folder. Raises _Foreign."""
    found: dict[str, bytes] = {}
    limited = cast("BinaryIO", _Limited(packed))
    with tarfile.open(fileobj=limited, mode="r|") as tar:
        for number, entry in enumerate(tar, start=1):
            path = PurePosixPath(entry.name)
            if number > _MAX_FILES:
                raise _Foreign(f"it has more than {_MAX_FILES} files, so it is not a bundle")
            if path.is_absolute() or ".." in path.parts or not entry.isreg() or len(path.parts) < 2:  # noqa: PLR2004
                raise _Foreign(f"it has {entry.name[:100]!r}, which is not a file of a bundle")
            inner = str(PurePosixPath(*path.parts[1:]))
            if inner in _READ:
                if entry.size > _MAX_FILE:
                    raise _Foreign(f"its {inner} is larger than that of any bundle")
                content = tar.extractfile(entry)
                found[inner] = content.read() if content is not None else b""
    return found


def _bundle(files: Mapping[str, bytes], wanted: str) -> Bundle:
    about = _parsed(files, MANIFEST)
    if not isinstance(about, dict) or "format" not in about:
        raise _Foreign(f"it has no {MANIFEST}, so it is not a bundle, or it is cut")
    if about["format"] != FORMAT:
        raise _Foreign(f"a manager of another version has written it ({objects.text(about, 'version')})")
    name, now = objects.text(about, "plan"), parse_time(about.get("time"))
    if wanted and wanted != name:
        raise _Foreign(f"it is about UpgradePlan {name}, not {wanted}")
    plans = _list(files, contents.PLANS)
    plan = next((one for one in plans if objects.text(one, "metadata", "name") == name), None)
    if plan is None or now is None:
        raise _Foreign(f"its UpgradePlan {name} is missing: the file is damaged")
    lease = _parsed(files, LEASE)
    return Bundle(
        plan=plan,
        events=_list(files, contents.EVENTS),
        nodes=_list(files, contents.NODES),
        history=objects.mapping(_parsed(files, HISTORY)),
        pace=pace_for(plan, plans),
        lease=LeaseReading(lease=dict(objects.mapping(lease, "lease")), error=objects.text(lease, "error"), at=now),
        now=now,
        unread=objects.strings(about, "unread"),
    )


def _list(files: Mapping[str, bytes], path: str) -> list[Object]:
    found = _parsed(files, path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _parsed(files: Mapping[str, bytes], path: str) -> Any:
    try:
        return json.loads(files.get(path, b"null"))
    except (ValueError, RecursionError) as error:
        raise _Foreign(f"its {path} is damaged") from error
