from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from hack.bench.peers.controller_process import records
from hack.bench.peers.drawing import fault_data, speed_data
from hack.bench.peers.environments import PEERS, PLOT_LOCK
from hack.bench.peers.faulty_server import Break, Faults
from hack.bench.peers.requests import CONTROLLER, Received, from_audit
from hack.bench.peers.results import ROWS, Outcome, Run, behaviour_table, figures, table
from hack.bench.peers.servers import WIDGETS, embedded_server, widget
from hack.bench.peers.speed import delays, lag, whole
from upgrade_manager import __version__
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.transport import Request


def event(**changes: Any) -> dict[str, Any]:
    return {
        "stage": "ResponseComplete",
        "verb": "patch",
        "user": {"username": CONTROLLER},
        "objectRef": {"resource": "widgets", "name": "widget-1", "subresource": "status"},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:01.000000Z",
        "stageTimestamp": "2026-01-01T00:00:01.250000Z",
        **changes,
    }


def received(name: str, *, at: float, controller: bool) -> Received:
    return Received(
        verb="patch",
        name=name,
        subresource="status" if controller else "",
        by_controller=controller,
        status=200,
        began=at,
        ended=at + 0.5,
    )


def run(peer: str, **changes: Any) -> Run:
    ones = ("synced", "processor", "events", "memory", "memory_after", "paced", "burst", "whole_burst", "lag")
    values: dict[str, Any] = {**dict.fromkeys(ones, 1.0), "reactions": (0.001, 0.002, 0.003), "requests": 9}
    return Run(peer=peer, **values | changes)


def test_audit_event_is_a_request_with_its_times() -> None:
    (found,) = from_audit(event())
    assert (found.name, found.reports, found.changes) == ("widget-1", True, False)
    assert found.ended - found.began == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        pytest.param({"verb": "watch", "stage": "ResponseStarted"}, 1, id="a watch begins"),
        pytest.param({"verb": "watch"}, 0, id="a watch ends"),
        pytest.param({"verb": "list", "objectRef": {"resource": "widgets"}}, 1, id="a list"),
    ],
)
def test_watch_counts_when_it_begins(changes: dict[str, Any], count: int) -> None:
    assert len(list(from_audit(event(**changes)))) == count


def test_refused_patch_is_not_a_report() -> None:
    (found,) = from_audit(event(responseStatus={"code": 429}))
    assert not found.reports


def test_delays_pair_each_change_with_its_first_patch() -> None:
    log = [received("a", at=1, controller=False), received("b", at=2, controller=False)]
    log += [
        received("b", at=3, controller=True),
        received("a", at=4, controller=True),
        received("a", at=9, controller=True),
    ]
    assert list(delays(log)) == [0.5, 2.5]
    assert lag(log) == 7
    assert whole(log) == 8.5


def test_records_are_found_among_other_lines() -> None:
    log = 'login\n{"event": "started", "at": 1, "processor": 2}\n{"event": "syn'
    assert [record["event"] for record in records(log)] == ["started"]


def test_table_has_the_medians_of_each_controller() -> None:
    runs = [
        run("upgrade_manager", synced=1.0),
        run("upgrade_manager", synced=2.0),
        run("upgrade_manager", synced=9.0),
        run("kopf", synced=4.0),
    ]
    lines = table(runs).splitlines()
    assert lines[0] == f"| | upgrade_manager {__version__} | {PEERS['kopf'].title} |"
    assert lines[2] == "| start to all objects reconciled, s | 2 | 4 |"
    assert len(lines) == 2 + len(ROWS)


def test_figures_compare_with_the_best_other_library() -> None:
    runs = [
        run("upgrade_manager", synced=2.0, events=30.0),
        run("kopf", synced=4.0, events=20.0),
        run("kr8s", events=10.0, synced=8.0),
    ]
    found = {figure.name: figure for figure in figures([*runs, run("raw", synced=0.1)], server="real")}
    assert found["real, over the best other: start to all objects reconciled"].value == 0.5
    assert found["real, over the best other: objects reconciled, one core"].met


@pytest.mark.parametrize("lock", [*(peer.lock for peer in PEERS.values()), PLOT_LOCK], ids=lambda lock: lock.stem)
def test_lock_files_name_hashes_and_no_registry(lock: Any) -> None:
    text = lock.read_text()
    assert "--hash=sha256:" in text
    assert "://" not in text


def outcome(peer: str, **changes: Any) -> Outcome:
    values: dict[str, Any] = {"recovered": None, "ended": None, "requests": 3, "limit": 60.0}
    return Outcome(peer=peer, fault="503 for a minute", **values | changes)


OUTCOMES = (
    pytest.param({"recovered": 1.0}, "recovered", "1 s, 3 requests", id="recovered"),
    pytest.param({"ended": 2.0}, "ended", "ends after 2 s, 3 requests", id="ended"),
    pytest.param({"requests": 1}, "unaware", "**not** in 60 s, 1 request", id="neither"),
)


@pytest.mark.parametrize(("changes", "kind", "text"), OUTCOMES)
def test_outcome_has_a_kind_and_a_text(changes: dict[str, Any], kind: str, text: str) -> None:
    found = outcome("kopf", **changes)
    assert (found.kind, found.text) == (kind, text)


def test_behaviour_has_a_row_for_each_fault() -> None:
    outcomes = [outcome("upgrade_manager", recovered=1.0), outcome("kopf")]
    lines = behaviour_table(outcomes).splitlines()
    assert lines[2:] == ["| 503 for a minute | 1 s, 3 requests | **not** in 60 s, 3 requests |"]
    (row,) = fault_data(outcomes)["rows"]
    assert [cell["text"] for cell in row["cells"]] == ["1 s, 3 requests", "not in 60 s, 3 requests"]


def test_plot_has_the_values_of_the_table() -> None:
    data = speed_data([run("upgrade_manager", synced=2.0), run("kopf", synced=4.0)])
    assert data["rows"][0] == {"name": "start to all objects reconciled, s", "values": [2.0, 4.0], "labels": ["2", "4"]}
    assert len(data["rows"]) == len(ROWS)


async def first_line(faults: Faults, *, version: str, how: Break | None = None) -> Any:
    """Return the first event of a watch that breaks; None at its end."""
    request = Request(method="GET", path=WIDGETS.path(), query=(("watch", "true"), ("resourceVersion", version)))
    async with faults.open(request) as stream:
        if how is not None:
            faults.break_watches(how)
        line = await anext(stream.chunks(), None)
    return json.loads(line) if line else None


async def test_watches_end_with_410_before_the_compacted_version() -> None:
    faults = Faults(embedded_server(), expired_as_event=True)
    client = Client(faults.server, user_agent="bench", random=Random(0))
    first, second = [objects.resource_version(await client.create(WIDGETS, widget(number))) for number in (0, 1)]
    assert (await first_line(faults, version=first))["object"]["metadata"]["resourceVersion"] == second
    assert await first_line(faults, version=first, how=Break.END) is None
    assert (await first_line(faults, version=first, how=Break.EXPIRED))["object"]["code"] == 410
    faults.compacted = int(first)
    assert (await first_line(faults, version=first))["object"]["code"] == 410
    faults.expired_as_event = False
    assert (await first_line(faults, version=first))["code"] == 410
