"""The milestones of nodes, settings and the toolkit image among the events of a plan, each of which happens once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from upgrade_manager.kube.objects import Object
from upgrade_manager.nodes.milestones import MilestoneReason
from upgrade_manager.pipeline.events import (
    SETTING_CHANGED,
    SETTING_RESTORED,
    TOOLKIT_IMAGE_CHOSEN,
    TOOLKIT_TAG_GUESSED,
)

REASONS = frozenset({*MilestoneReason, SETTING_CHANGED, SETTING_RESTORED, TOOLKIT_IMAGE_CHOSEN, TOOLKIT_TAG_GUESSED})
_SINGLE = (MilestoneReason.NODE_UPGRADING, MilestoneReason.NODE_REBOOTING, MilestoneReason.NODE_UPGRADED)
_DURATION = re.compile(r" (?:in|after) (?:\d+ h \d+ min|\d+ min \d+ s|\d+ s)\b")
#: A cluster without durations reboots its nodes faster than their conditions change.
_UNOBSERVED = re.compile(r"; its reboot took .*")


def without_milestones(events: Iterable[Object]) -> list[Object]:
    """Return the other events, in order."""
    return [event for event in events if event["reason"] not in REASONS]


def steps(events: Iterable[Object]) -> Counter[str]:
    """Count the events as they are in every run with the same steps: without durations and fast reboots."""
    counts: Counter[str] = Counter()
    for event in events:
        if event["reason"] != MilestoneReason.NODE_REBOOTING:
            message = _DURATION.sub("", _UNOBSERVED.sub("", event["message"]))
            counts[f"{event['reason']} {message} x{event['count']}"] += 1
    return counts


def milestones(events: Iterable[Object]) -> Counter[str]:
    """Count reason and object of each milestone."""
    counts: Counter[str] = Counter()
    for event in events:
        if event["reason"] in REASONS:
            counts[f"{event['reason']} {event['message'].partition(':')[0]}"] += event["count"]
    return counts


def milestone_errors(
    events: Iterable[Object], nodes: Iterable[str], *, single: bool, reboots: bool = True
) -> list[str]:
    """Check that nodes, settings and the toolkit image have their milestones once; those of pauses may be missing."""
    found = milestones(events)
    absent = set[MilestoneReason]() if reboots else {MilestoneReason.NODE_REBOOTING}
    needed = {*_SINGLE} - absent if single else {MilestoneReason.NODE_DRAINING, *_SINGLE} - absent
    missing = [one for node in nodes for reason in needed if (one := f"{reason} Node {node}") not in found]
    missing += [] if any(one.startswith(TOOLKIT_IMAGE_CHOSEN) for one in found) else [TOOLKIT_IMAGE_CHOSEN]
    changed, restored = (
        {about for reason, _, about in (one.partition(" ") for one in found) if reason == setting}
        for setting in (SETTING_CHANGED, SETTING_RESTORED)
    )
    return [
        *(f"{one} is missing" for one in missing),
        *(f"{one} happened {count} times" for one, count in found.items() if count > 1),
        *(f"{one} was not both changed and restored" for one in changed ^ restored),
    ]
