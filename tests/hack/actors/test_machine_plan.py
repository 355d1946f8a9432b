from __future__ import annotations

import pytest

from hack.actors import machine_plan as plans

OPTIONS = {
    "enabled": True,
    "force": True,
    "deleteEmptyDirData": True,
    "ignoreDaemonSets": True,
    "disableEviction": False,
    "gracePeriod": 0,
    "timeout": 0,
    "skipWaitForDeleteTimeoutSeconds": 0,
    "preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}],
    "postDrainHooks": [{"annotation": "harvesterhci.io/post-hook"}],
}
TEXT = (
    '{"deleteEmptyDirData":true,"disableEviction":false,"enabled":true,"force":true,"gracePeriod":0,'
    '"ignoreDaemonSets":true,"postDrainHooks":[{"annotation":"harvesterhci.io/post-hook"}],'
    '"preDrainHooks":[{"annotation":"harvesterhci.io/pre-hook"}],"skipWaitForDeleteTimeoutSeconds":0,"timeout":0}'
)


def test_drain_text_is_the_documented_one() -> None:
    assert plans.drain_text(OPTIONS, single=False) == TEXT


@pytest.mark.parametrize(
    ("text", "members", "result"),
    [(None, 5, 1), ("", 5, 1), ("1", 5, 1), ("0", 5, 0), ("3", 5, 3), ("10%", 25, 3), ("1%", 3, 1), ("100%", 4, 4)],
)
def test_concurrency_is_a_number_or_a_percentage(text: str | None, members: int, result: int) -> None:
    assert plans.concurrency(text, members) == result
