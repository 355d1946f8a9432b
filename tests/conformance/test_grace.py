"""The time that a Pod has to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import PLACED
from tests.support.conformance_rows import Row, answered, delete, merge, play, post

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

PODS = "/api/v1/namespaces/$ns/pods"
POD = f"{PODS}/one"
_SPEC = {"containers": [{"name": "c", "image": "i"}]}
WAITING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC}),)
RUNNING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC | {"nodeName": "none-$word"}}),)

ROWS = [
    Row(
        title="a Pod without a node goes at once",
        given=WAITING,
        when=delete(POD),
        look=("kind", "metadata.deletionGracePeriodSeconds", "metadata.name", "metadata.deletionTimestamp"),
        then=answered(
            200,
            **{
                "kind": "Pod",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.name": "one",
                "metadata.deletionTimestamp": "$time",
            },
        ),
    ),
    Row(
        title="a Pod with a node gets its grace",
        given=RUNNING,
        when=delete(POD),
        look=("kind", "metadata.deletionGracePeriodSeconds", "metadata.name", "metadata.generation"),
        then=answered(
            200,
            **{
                "kind": "Pod",
                "metadata.deletionGracePeriodSeconds": 30,
                "metadata.name": "one",
                "metadata.generation": 2,
            },
        ),
    ),
    Row(
        title="a Pod with a node gets the grace of the request",
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 5}),
        look=("metadata.deletionGracePeriodSeconds",),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 5}),
    ),
    Row(
        title="a Pod without grace goes at once",
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 0}),
        look=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="a dying Pod goes when it is deleted without grace",
        given=(*RUNNING, delete(POD)),
        when=delete(POD, {"gracePeriodSeconds": 0}),
        look=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="a Pod that has ended goes at once",
        given=(*RUNNING, merge(f"{POD}/status", {"status": {"phase": "Succeeded"}})),
        when=delete(POD),
        look=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="a Pod without a node and with a finalizer stays",
        given=(post(PODS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}, "spec": _SPEC}),),
        when=delete(POD),
        look=PLACED[:4],
        then=answered(
            200,
            **{
                "metadata.deletionTimestamp": "$time",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.finalizers": ["a.io/b"],
                "metadata.generation": 2,
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_grace(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
