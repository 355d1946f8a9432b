"""The report of an upgrade, as data for the page: a pure function of the plan, its events, the nodes and the time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.attempts import seconds_of_work
from upgrade_manager.api.ledger import recorded_entries
from upgrade_manager.api.node_states import state_of
from upgrade_manager.api.text import one_line
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.display.expectation import UNKNOWN_PACE, Pace
from upgrade_manager.display.history import NO_HISTORY, remember
from upgrade_manager.display.holdups import held_seconds, holdups
from upgrade_manager.display.leader import NOT_READ
from upgrade_manager.display.milestones import milestones_by_attempt
from upgrade_manager.display.timeline import timeline
from upgrade_manager.display.view import printable, view_of
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from upgrade_manager.display.holdups import HoldUp
    from upgrade_manager.display.leader import LeaseReading
    from upgrade_manager.display.model import EventRow, NodeRow, View
    from upgrade_manager.display.timeline import Bars, Timeline
    from upgrade_manager.kube.objects import Object

#: The reasons of events about settings that the upgrade changes and gives back.
SETTING_EVENTS = frozenset({"SettingChanged", "SettingRestored", "SettingNotRestored", "DrainHooksAdded"})
#: As in api.past_blockers, which imports pydantic.
MAX_PAST = 30
#: kubectl's copy of the manifest.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
#: Components of a release, and their fields in releaseMetadata.
_COMPONENTS = {
    "Operating system": "os",
    "Kubernetes": "kubernetes",
    "Rancher": "rancher",
    "Harvester chart": "harvesterChart",
    "Monitoring chart": "monitoringChart",
    "Minimum version before": "minUpgradableVersion",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNode:
    """A node, its upgrade and what it runs."""

    row: NodeRow
    bars: Bars | None
    #: The seconds from its first to its last known step, without the time between attempts; None without one.
    took: float | None
    #: As the Node reports them; empty if the Node cannot be read.
    os: str
    kubernetes: str

    @property
    def is_upgraded(self) -> bool:
        """True if it runs the new release."""
        state = state_of(self.row.state)
        return state is not None and state.upgraded


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSetting:
    """A setting that is changed now and will be given back."""

    object: str
    field: str
    original: str
    applied: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that the page shows."""

    view: View
    #: All of the cause or error where the view has only its begin; empty otherwise.
    whole_cause: str
    #: Fields of the spec and annotations, with their values.
    spec: tuple[tuple[str, str], ...]
    annotations: tuple[tuple[str, str], ...]
    #: The blockers with begin and end, and the seconds in which at least one was there.
    holdups: tuple[HoldUp, ...]
    held_seconds: float
    #: None before the start.
    timeline: Timeline | None
    #: Components and their versions in the release.
    versions: tuple[tuple[str, str], ...]
    nodes: tuple[ReportNode, ...]
    held_settings: tuple[HeldSetting, ...]
    setting_events: tuple[EventRow, ...]
    #: The objects that could not be read, and the reasons.
    gaps: tuple[str, ...]
    #: True if all of it stays as it is: the plan has ended, and its history is complete.
    is_lasting: bool


def report(
    plan: Object,
    events: Sequence[Object],
    nodes: Sequence[Object],
    gaps: Sequence[str],
    *,
    now: datetime,
    pace: Pace = UNKNOWN_PACE,
    lease: LeaseReading = NOT_READ,
    history: Mapping[str, object] = NO_HISTORY,
) -> Report:
    """Return the report of a plan."""
    kept = remember(plan, history, events, nodes)
    plan, events, nodes = kept.plan, kept.events, kept.nodes
    by_attempt = milestones_by_attempt(plan, events)
    view = view_of(plan, events, by_attempt, now=now, pace=pace, lease=lease)
    returned = {printable(objects.name(node)): time for node in nodes if (time := _ready_since(node))}
    recorded = {
        number: {printable(name): times for name, times in found.items()} for number, found in by_attempt.items()
    }
    bars = timeline(view, recorded, returned)
    held = holdups(plan, view)
    return Report(
        view=view,
        whole_cause=_whole_cause(plan, view),
        spec=tuple(_fields(objects.mapping(plan, "spec"))),
        annotations=tuple(_annotations(plan)),
        holdups=held,
        held_seconds=held_seconds(held),
        timeline=bars,
        versions=tuple(_versions(plan)),
        nodes=tuple(_nodes(plan, view, bars, nodes)),
        held_settings=tuple(_held_settings(plan)),
        setting_events=tuple(event for event in view.events if event.reason in SETTING_EVENTS),
        gaps=(*map(printable, gaps), *_left_out(plan)),
        is_lasting=kept.is_complete,
    )


def _whole_cause(plan: Object, view: View) -> str:
    """Return the message of the condition whose begin the view shows."""
    shown = view.cause or view.last_error
    if not shown.endswith("…"):
        return ""
    messages = (one_line(objects.text(objects.condition(plan, one), "message")) for one in ("Progressing", "Degraded"))
    return next((text for text in messages if text.startswith(shown[:-1])), "")


def _fields(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths of all fields, and their values."""
    for key, one in value.items():
        path = f"{prefix}{key}"
        if isinstance(one, dict) and one:
            yield from _fields(one, f"{path}.")
        else:
            yield one_line(path), _value(one)


def _annotations(plan: Object) -> Iterator[tuple[str, str]]:
    for key, value in objects.mapping(plan, "metadata", "annotations").items():
        if key != _LAST_APPLIED:
            yield one_line(key), _value(value)


def _left_out(plan: Object) -> Iterator[str]:
    # The history has added others.
    if len(objects.items(plan, "status", "pastBlockers")) == MAX_PAST:
        yield f"The plan keeps {MAX_PAST} of what held it up and is over: shorter ones may be missing"


def _ready_since(node: Object) -> datetime | None:
    ready = objects.condition(node, "Ready")
    return parse_time(objects.value(ready, "lastTransitionTime")) if objects.text(ready, "status") == "True" else None


def _versions(plan: Object) -> Iterator[tuple[str, str]]:
    for component, field in _COMPONENTS.items():
        if version := printable(objects.text(plan, "status", "releaseMetadata", field)):
            yield component, version


def _nodes(plan: Object, view: View, bars: Timeline | None, nodes: Sequence[Object]) -> Iterator[ReportNode]:
    found = {printable(objects.name(node)): objects.mapping(node, "status", "nodeInfo") for node in nodes}
    rows = {one.name: one for one in bars.nodes} if bars is not None else {}
    for row in view.nodes:
        info = found.get(row.name, {})
        yield ReportNode(
            row=row,
            bars=rows.get(row.name),
            took=_took(plan, rows.get(row.name)),
            os=printable(objects.text(info, "osImage")),
            kubernetes=printable(objects.text(info, "kubeletVersion")),
        )


def _took(plan: Object, bars: Bars | None) -> float | None:
    spans = bars.spans if bars is not None else ()
    status = objects.mapping(plan, "status")
    return seconds_of_work(status, spans[0].begun, spans[-1].ended) if spans else None


def _held_settings(plan: Object) -> Iterator[HeldSetting]:
    for entry in recorded_entries(objects.status(plan)):
        if "field" in entry:
            yield HeldSetting(
                object=printable(entry["object"]),
                field=printable(objects.text(entry, "field")),
                original=_value(entry.get("original")),
                applied=_value(entry.get("applied")),
            )


def _value(value: object) -> str:
    if value is None:
        return "not set"
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
