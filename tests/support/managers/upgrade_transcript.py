"""Transcripts of whole upgrades as users see them, stored in tests/golden.

`python -m tests.support.managers.upgrade_transcript` writes the files; review the difference.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from hack import virtual_time
from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun
from upgrade_manager.api.conditions import AVAILABLE, DEGRADED, PROGRESSING
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.transport import Response

GOLDEN = Path(__file__).parents[2] / "golden"
#: Of a manager whose version is not that of the next release.
OPTIONS = RunOptions(toolkit=TOOLKIT)
SPECS: dict[str, dict[str, Any]] = {"by-version": BY_VERSION, "by-image": BY_IMAGE}
#: Beginnings of the objects that a message names.
NAMED = (
    "ManagedChart ",
    "Version ",
    "Setting ",
    "UpgradePlan ",
    "VirtualMachineImage ",
    "Deployment ",
    "Plan ",
    "Job ",
    "Secret ",
    "node-",
    " of 3 nodes",
    "waiting for Rancher",
)
_WRITTEN = (200, 201)
_HEADER = """\
# A healthy upgrade of three nodes ({entry}) as a user sees it.
# Written by `python -m tests.support.managers.upgrade_transcript`.
#
# Seconds after the plan was created, then what happened:
#   phase      a phase value was reached and recorded; several at once where there was nothing to wait for
#   node       a node's state in status.nodeUpgradeStatuses
#   condition  type=status (reason) message, whenever one of them changes
#   event      type, reason and message of an Event
"""


class TranscriptHook(NoHook):
    """A hook of the middleware that records the visible changes of the manager's writes."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._began = now()
        #: The number of phase values so far.
        self._phases = 0
        self._seen: dict[str, str] = {}
        self.lines: list[str] = []

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number
        if response.status not in _WRITTEN:
            return
        written = json.loads(response.body)
        if call.resource == "events":
            self._add("event", f"{written['type']} {written['reason']}: {written['message']}")
        elif call.resource.startswith("upgradeplans"):
            self._plan(written)

    def _plan(self, plan: Object) -> None:
        status = objects.status(plan)
        recorded = [entry["phase"] for entry in status.get("phaseTransitionTimestamps") or []]
        for phase in recorded[self._phases :]:
            self._add("phase", phase)
        self._phases = len(recorded)
        for node, entry in sorted((status.get("nodeUpgradeStatuses") or {}).items()):
            self._changed(f"node {node}", _node(entry))
        for type_ in (AVAILABLE, PROGRESSING, DEGRADED):
            found = objects.condition(plan, type_)
            if found:
                self._changed(f"condition {type_}", _condition(found))

    def _changed(self, what: str, value: str) -> None:
        if value and self._seen.get(what) != value:
            self._seen[what] = value
            kind, _, about = what.partition(" ")
            separator = "=" if kind == "condition" else ": "
            self._add(kind, f"{about}{separator}{value}" if about else value)

    def _add(self, kind: str, text: str) -> None:
        seconds = round((self._now() - self._began).total_seconds())
        self.lines.append(f"{seconds:>3} s  {kind:<9}  {text}".rstrip())


def _node(entry: Object) -> str:
    reason = ": ".join(part for part in (entry.get("reason"), entry.get("message")) if part)
    return f"{entry['state']} ({reason})" if reason else str(entry["state"])


def _condition(found: Object) -> str:
    return f"{found['status']} ({found['reason']}) {found.get('message') or ''}".rstrip()


async def record(spec: dict[str, Any]) -> list[str]:
    """Return the transcript of a three-node upgrade."""
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OPTIONS
        async with stage.life():
            transcript = simulation.middleware.hook = TranscriptHook(simulation.now)
            await stage.create_plan(spec)
            await stage.until_ended()
            await stage.settle()
    return transcript.lines


def text(entry: str) -> str:
    """Run an upgrade in a new loop and return the content of the entry's file."""
    lines = virtual_time.run(record(SPECS[entry]))
    return _HEADER.format(entry=entry.replace("-", " ")) + "\n" + "\n".join(lines) + "\n"


def path(entry: str) -> Path:
    """Return the entry's file."""
    return GOLDEN / f"three-nodes-{entry}.txt"


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    for _entry in SPECS:
        path(_entry).write_text(text(_entry))
