from __future__ import annotations

import asyncio

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.support.managers.runtime import serving
from upgrade_manager.runtime.healthz import MAX_AGE, Check, Probe, Probes, Unhealthy

FAILED = "healthz check failed\n"
WITHHELD = f"failed: reason withheld\n{FAILED}"


async def good() -> None:
    pass


async def bad() -> None:
    raise Unhealthy("the cache of nodes is not synced")


async def silent() -> None:
    raise KeyError


async def hanging() -> None:
    await asyncio.sleep(3600)


def new_probe(**checks: Check) -> Probe:
    probe = Probe("readyz")
    for name, check in checks.items():
        probe.add(name, check)
    return probe


@pytest.mark.parametrize(
    ("checks", "exclude", "report"),
    [
        pytest.param({"a": good}, [], "ok", id="all pass"),
        pytest.param({"a": good, "b": bad}, ["b"], "ok", id="an excluded check is not run"),
        pytest.param({"a": good, "b": bad}, [], f"[+]a ok\n[-]b {WITHHELD}", id="the reason is withheld"),
        pytest.param({"a": hanging, "b": good}, [], f"[-]a failed: reason withheld\n[+]b ok\n{FAILED}", id="hanging"),
    ],
)
async def test_report_lists_checks_when_one_fails(checks: dict[str, Check], exclude: list[str], report: str) -> None:
    status = 200 if report == "ok" else 500
    assert await new_probe(**checks).report(exclude=exclude) == (status, report)


@pytest.mark.parametrize(
    ("checks", "exclude", "report"),
    [
        pytest.param({}, [], "[+]ping ok\n", id="no check is a ping"),
        pytest.param({"b": good, "a": good}, [], "[+]a ok\n[+]b ok\n", id="sorted"),
        pytest.param(
            {"a": good, "b": bad},
            ["b", "y", "x"],
            '[+]a ok\n[+]b excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x", "y"\n',
            id="unknown exclusions are named",
        ),
    ],
)
async def test_verbose_report_lists_all_checks(checks: dict[str, Check], exclude: list[str], report: str) -> None:
    found = await new_probe(**checks).report(verbose=True, exclude=exclude)
    assert found == (200, f"{report}healthz check passed\n")


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("a", (200, "ok")),
        ("b", (500, "internal server error: the cache of nodes is not synced\n")),
        ("c", (500, "internal server error: KeyError\n")),
        ("d", (500, "internal server error: timed out after 5 s\n")),
        ("ping", (404, "404 page not found\n")),
        ("x", (404, "404 page not found\n")),
    ],
)
async def test_report_of_one_check_has_its_reason(name: str, report: tuple[int, str]) -> None:
    assert await new_probe(a=good, b=bad, c=silent, d=hanging).report_one(name) == report


class Counted:
    """A check that takes some seconds, and counts its runs."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.runs = 0
        self.error = ""
        self._seconds = seconds

    async def check(self) -> None:
        self.runs += 1
        await asyncio.sleep(self._seconds)
        if self.error:
            raise Unhealthy(self.error)


@pytest.mark.rule("security: requests of a probe share results that are at most a second old")
async def test_many_requests_cost_one_run_in_a_second() -> None:
    fast, slow = Counted(), Counted(seconds=0.5)
    probe = new_probe(fast=fast.check, slow=slow.check)

    async def ask() -> None:
        assert await probe.report() == (200, "ok")

    async with asyncio.TaskGroup() as group:
        for _ in range(2_000):
            group.create_task(ask())
            await asyncio.sleep(1 / 200)
    assert (fast.runs, slow.runs) == (10, 7)


async def test_result_is_at_most_a_second_old() -> None:
    counted = Counted()
    probe = new_probe(a=counted.check)
    assert await probe.report_one("a") == (200, "ok")
    counted.error = "lost"
    await asyncio.sleep(0.99)
    assert await probe.report() == (200, "ok")
    await asyncio.sleep(0.01)
    assert (await probe.report())[0] == 500
    counted.error = ""
    assert (await probe.report_one("a"))[0] == 500
    await asyncio.sleep(MAX_AGE)
    assert await probe.report_one("a") == (200, "ok")


async def test_request_that_is_cancelled_does_not_end_others() -> None:
    probe = new_probe(a=Counted(seconds=1).check)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(probe.report())
        second = group.create_task(probe.report())
        await asyncio.sleep(0.5)
        first.cancel()
    assert second.result() == (200, "ok")


async def test_failure_and_recovery_are_logged_once() -> None:
    counted = Counted()
    probe = new_probe(b=counted.check)
    with capture_logs() as lines:
        for counted.error in ("", "not synced", "not synced for 2 s", "", ""):
            await asyncio.sleep(MAX_AGE)
            await asyncio.gather(*(probe.report() for _ in range(9)))
    assert [(line["event"], line["check"], line.get("error")) for line in lines] == [
        ("probe failed", "b", "not synced"),
        ("probe recovered", "b", None),
    ]


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/healthz", 200, "ok"),
        ("/healthz/", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
        ("/readyz", 500, f"[-]caches {WITHHELD}"),
        ("/readyz?exclude=caches", 200, "ok"),
        ("/readyz/caches", 500, "internal server error: the cache of nodes is not synced\n"),
        ("/readyz/other", 404, "404 page not found\n"),
    ],
)
async def test_probes_are_served_over_http(path: str, status: int, text: str) -> None:
    probes = Probes()
    probes.readyz.add("caches", bad)
    server = probes.server(("127.0.0.1", 0))
    async with serving(server) as place, aiohttp.ClientSession() as session:
        response = await session.get(f"http://{place}{path}")
        assert (response.status, await response.text()) == (status, text)
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
