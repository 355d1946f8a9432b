"""The pairs of releases whose steps are known, their rows, and the refusal of all others.

pipeline/phases/eligibility.py and webhook/checks/version.py judge a plan by it; spec.force skips it. A command of a Job
reads its rows by toolkit/iso/migration.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.release.migrations import generic, v1_7_to_v1_8, v1_8_to_v1_9
from upgrade_manager.release.migrations.pair import Pair, Standing, minor_of
from upgrade_manager.release.migrations.row import PLACES

if TYPE_CHECKING:
    from upgrade_manager.release.migrations.row import Row

_ORDER = tuple(PLACES)
#: The last words of a refusal.
FORCED = (
    "spec.force: true skips this check: the upgrade then makes the changes that every upgrade needs, and those between "
    "the two releases as far as they are known"
)
#: In the order of the releases.
PAIRS = (
    Pair(
        current=(1, 6),
        target=(1, 7),
        standing=Standing.REFUSED,
        reason="it moves each node's network to NetworkManager by a program of Harvester's installer, and the stored "
        "versions of Longhorn's CRDs in a way that no interruption survives",
    ),
    Pair(current=(1, 7), target=(1, 7), standing=Standing.KNOWN),
    Pair(current=(1, 7), target=(1, 8), standing=Standing.KNOWN, rows=v1_7_to_v1_8.ROWS),
    Pair(current=(1, 8), target=(1, 8), standing=Standing.KNOWN),
    Pair(
        current=(1, 8),
        target=(1, 9),
        standing=Standing.PROVISIONAL,
        reason="v1.9 was not final when its steps were written down (v1.9.0-rc6)",
        rows=v1_8_to_v1_9.ROWS,
    ),
    Pair(
        current=(1, 9),
        target=(1, 9),
        standing=Standing.PROVISIONAL,
        reason="v1.9 was not final when its steps were written down (v1.9.0-rc6)",
    ),
)


def find(current: str, target: str) -> Pair | None:
    """Return the pair of two versions; None if the table does not have it, as for a development build."""
    minors = minor_of(current), minor_of(target)
    return next((pair for pair in PAIRS if (pair.current, pair.target) == minors), None)


def rows_between(current: str, target: str) -> tuple[Row, ...]:
    """Return the rows of every upgrade and, as far as they are known, of the pair, in the order of the upgrade."""
    pair = find(current, target)
    found = generic.ROWS + (pair.rows if pair is not None else ())
    return tuple(sorted(found, key=lambda row: _ORDER.index(row.place)))


def refusal(current: str, target: str) -> str:
    """Return why the steps of an upgrade are not known well enough, and which pairs are; empty if they are."""
    pair = find(current, target)
    if pair is not None and pair.standing is Standing.KNOWN:
        return ""
    if pair is None:
        why = (
            "the steps between these releases are unknown"
            if _are_releases(current, target)
            else _of_build(current, target)
        )
    elif pair.standing is Standing.REFUSED:
        why = f"the step from {pair} is not supported: {pair.reason}"
    else:
        why = f"the steps {_described(pair)} are provisional: {pair.reason}"
    return f"{why}. Known are the upgrades {known()}"


def known() -> str:
    """Return the pairs whose steps are known, as one text."""
    texts = [_described(pair) for pair in PAIRS if pair.standing is Standing.KNOWN]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _described(pair: Pair) -> str:
    return str(pair) if pair.current == pair.target else f"from {pair}"


def _are_releases(*versions: str) -> bool:
    return all(minor_of(version) for version in versions)


def _of_build(current: str, target: str) -> str:
    build = target if minor_of(target) is None else current
    return f"{build or 'an empty version'} is not a release, and its steps are unknown"
