from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from upgrade_manager.runtime.healthz import Answer, CheckGroup, Unhealthy


async def good() -> None:
    pass


async def bad() -> None:
    raise Unhealthy("the cache of nodes is not synced")


async def silent() -> None:
    raise KeyError


async def hanging() -> None:
    await asyncio.sleep(3600)


def group(**checks: object) -> CheckGroup:
    made = CheckGroup("readyz")
    for name, check in checks.items():
        made.add(name, check)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("checks", "options", "answer"),
    [
        pytest.param({}, {}, Answer(200, "ok"), id="no check passes"),
        pytest.param({}, {"verbose": True}, Answer(200, "[+]ping ok\nhealthz check passed\n"), id="no check is a ping"),
        pytest.param({"b": good, "a": good}, {}, Answer(200, "ok"), id="all pass"),
        pytest.param(
            {"b": good, "a": good},
            {"verbose": True},
            Answer(200, "[+]a ok\n[+]b ok\nhealthz check passed\n"),
            id="verbose lists them in order",
        ),
        pytest.param(
            {"a": good, "b": bad},
            {},
            Answer(500, "[+]a ok\n[-]b failed: reason withheld\nhealthz check failed\n"),
            id="a failure withholds its reason",
        ),
        pytest.param(
            {"a": good, "b": bad},
            {"exclude": ["b"]},
            Answer(200, "ok"),
            id="an excluded check is not asked",
        ),
        pytest.param(
            {"a": good, "b": bad},
            {"exclude": ["b", "y", "x"], "verbose": True},
            Answer(
                200,
                "[+]a ok\n[+]b excluded: ok\n"
                'warn: some health checks cannot be excluded: no matches for "x", "y"\nhealthz check passed\n',
            ),
            id="unknown exclusions are named",
        ),
        pytest.param(
            {"a": hanging, "b": good},
            {},
            Answer(500, "[-]a failed: reason withheld\n[+]b ok\nhealthz check failed\n"),
            id="a check that hangs has failed",
        ),
    ],
)
async def test_all_checks_together(checks: dict[str, object], options: dict[str, object], answer: Answer) -> None:
    assert await group(**checks).answer(**options) == answer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("a", Answer(200, "ok")),
        ("b", Answer(500, "internal server error: the cache of nodes is not synced\n")),
        ("c", Answer(500, "internal server error: KeyError\n")),
        ("d", Answer(500, "internal server error: no answer within 5 s\n")),
        ("ping", None),
        ("x", None),
    ],
)
async def test_one_check_alone(name: str, answer: Answer | None) -> None:
    assert await group(a=good, b=bad, c=silent, d=hanging).answer_one(name) == answer


async def test_a_group_without_checks_has_a_ping() -> None:
    assert await group().answer_one("ping") == Answer(200, "ok")


async def test_the_reason_is_in_the_log() -> None:
    with capture_logs() as lines:
        await group(b=bad).answer()
    assert lines[0]["failures"] == {"b": "the cache of nodes is not synced"}


def test_a_name_is_taken_once() -> None:
    made = group(a=good)
    with pytest.raises(ValueError, match="has a check a already"):
        made.add("a", good)
