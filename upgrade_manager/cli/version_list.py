"""The output of `upgrade-manager preflight --versions`, as a table and as JSON; preflight.py prints it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from webhook.preflight.row import printable

if TYPE_CHECKING:
    from webhook.preflight.versions import Release, Releases

_HEADS = ("VERSION", "MINIMUM", "STEPS", "ISO")
_NEEDS = "NEEDS"
_REACHABLE = {True: "reachable", False: "missing", None: "not asked"}
_LIST = "No Version in harvester-system. Create one, or create a plan by spec.image."


def document(releases: Releases, *, context: str, server: str) -> str:
    """Return the facts as JSON."""
    head = {"context": context, "server": server, "runningVersion": releases.running}
    entries = [
        {
            "name": one.name,
            "minUpgradableVersion": one.minimum,
            "stepsKnown": one.is_known,
            "isoReachable": one.is_reachable,
            "needs": list(one.needs),
            "remarks": list(one.remarks),
        }
        for one in releases.releases
    ]
    return json.dumps({**head, "versions": entries}, indent=2) + "\n"


def table(releases: Releases, *, head: str) -> str:
    """Return the lines for a terminal."""
    rows = [_cells(one) for one in releases.releases]
    widths = [max(map(len, column)) + 2 for column in zip(_HEADS, *rows, strict=True)]
    lines = [head, "", _line(_HEADS, widths, _NEEDS)]
    for one, cells in zip(releases.releases, rows, strict=True):
        texts = [*one.needs, *one.remarks] or ["nothing"]
        lines += [_line(cells if index == 0 else ("",) * len(cells), widths, text) for index, text in enumerate(texts)]
    return "\n".join(lines if rows else [head, "", _LIST]) + "\n"


def _cells(release: Release) -> tuple[str, ...]:
    steps, iso = "known" if release.is_known else "unknown", _REACHABLE[release.is_reachable]
    return release.name, release.minimum or "any", steps, iso


def _line(cells: tuple[str, ...], widths: list[int], text: str) -> str:
    left = "".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
    return printable(f"{left}{text}".rstrip())
