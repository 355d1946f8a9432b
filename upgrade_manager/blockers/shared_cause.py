"""Blockers with one cause as one blocker: an operator ends the cause once, however many Pods it holds up.

pipeline/blocker_report.py calls it; pods.py and pipeline/phases/survey_images.py name the causes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import MAX_OTHERS, continues
from upgrade_manager.api.text import name_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.api.remedy import Remedy


def combine(found: Iterable[Blocker], known: Sequence[Blocker]) -> list[Blocker]:
    """Return the blockers, those of one cause as one; one that continues a known blocker keeps its name and time.

    After a restart a known blocker stands for all of its objects until they are listed.
    """
    groups: defaultdict[tuple[str, ...], dict[tuple[str, ...], Blocker]] = defaultdict(dict)
    for one in found:
        key = (one.reason, one.kind, one.namespace, one.cause) if one.cause else one.identity
        groups[key][one.identity] = one
    whole = [one for group in groups.values() for one in group.values() if one.others]
    return [
        blocker
        for group in groups.values()
        if not all(any(continues(old, one) and old is not one for old in whole) for one in group.values())
        for blocker in [_combined([*group.values()], known)]
    ]


def _combined(group: list[Blocker], known: Sequence[Blocker]) -> Blocker:
    names = {one.name for one in known}
    # A name that is known stays, else the one that has waited for the longest time.
    first, *others = sorted(group, key=lambda one: (one.name not in names, one.since, one.identity))
    blocker = first
    if others:
        nodes = sorted({one.node for one in group if one.node})
        blocker = replace(
            first,
            node=nodes[0] if len(nodes) == 1 else "",
            others=tuple(sorted(one.name for one in others)[:MAX_OTHERS]),
            message=_message(first, group, nodes),
            remedies=tuple(_remedies(first, group)),
            since=min(one.since for one in group),
        )
    earlier = [old.since for old in known if continues(old, blocker)]
    return replace(blocker, since=min([blocker.since, *earlier]))


def _message(first: Blocker, group: Sequence[Blocker], nodes: Sequence[str]) -> str:
    """Return the message about all of them; it ends with the first one's own if that says more than the cause."""
    place = f"on {name_list(nodes)}" if nodes else f"({name_list(sorted(one.name for one in group))})"
    clauses = {one.message.partition(f"{one.kind} {one.namespace}/{one.name} ")[2] for one in group}
    if len(clauses) == 1 and (clause := min(clauses)):
        return f"{len(group)} {first.kind}s {place} {clause}"
    own = "" if first.message.endswith(first.cause) else f". {first.message}"
    return f"{len(group)} {first.kind}s {place}: {first.cause}{own}"


def _remedies(first: Blocker, group: Sequence[Blocker]) -> Iterator[Remedy]:
    """Yield the changes that all of them need, and what the first one's remedies show beside them."""
    by_name = sorted(group, key=lambda one: (one.node, one.name))
    yield from dict.fromkeys(one for blocker in by_name for one in blocker.remedies if one.undo)
    yield from (one for one in first.remedies if not one.undo)
