from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from upgrade_manager.runtime.logging import (
    MAX_TEXT,
    MAX_TRACEBACK,
    MAX_TRACEBACK_LINE,
    MAX_VALUE,
    REDACTED,
    configure_logging,
    redact,
)

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def now() -> datetime:
    return datetime(2026, 1, 1, 12, 0, 0, 5000, tzinfo=UTC)


def configured(stream: io.StringIO, *, level: str = "info", log_format: str = "auto") -> io.StringIO:
    configure_logging(level=level, log_format=log_format, stream=stream, now=now)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def log_error() -> None:
    try:
        raise ValueError("refused: Bearer abc")  # noqa: TRY301  # for its traceback
    except ValueError:
        structlog.get_logger("x").exception("broken")
        logging.getLogger("y").exception("broken too")


def redacted(**fields: Any) -> dict[str, Any]:
    return dict(redact(None, "info", fields))


def test_lines_on_a_pipe_are_json() -> None:
    stream = configured(io.StringIO())
    log = structlog.get_logger("pipeline", plan="p")
    log.info("phase completed", seconds=3, token="abc")  # noqa: S106  # redacted
    logging.getLogger("aiohttp.server").warning("lost %s with Bearer abc", "connection")
    logging.getLogger("asyncio").info("not shown below a warning")
    structlog.get_logger().info("no JSON type", path=io)
    stamp = {"timestamp": "2026-01-01T12:00:00.005Z"}
    more = {"plan": "p", "seconds": 3, "token": "[redacted]"}
    assert lines(stream) == [
        {**stamp, "level": "info", "event": "phase completed", "logger": "pipeline", **more},
        {**stamp, "level": "warning", "event": "lost connection with Bearer [redacted]", "logger": "aiohttp.server"},
        {**stamp, "level": "info", "event": "no JSON type", "path": repr(io)},
    ]


def test_keys_are_in_one_order_and_none_is_empty() -> None:
    stream = configured(io.StringIO())
    bound = {"reconcile_id": "r", "phase": "", "plan": "p", "controller": "c"}
    with structlog.contextvars.bound_contextvars(**bound):
        structlog.get_logger("x").info("done", none=None, b=0, a=False)
    (line,) = lines(stream)
    assert list(line) == ["timestamp", "level", "logger", "event", "controller", "plan", "reconcile_id", "b", "a"]


def test_traceback_is_one_field_without_secrets() -> None:
    stream = configured(io.StringIO())
    log_error()
    assert len(lines(stream)) == 2
    for line in lines(stream):
        assert line["exception"].startswith("Traceback")
        assert line["exception"].endswith("ValueError: refused: Bearer [redacted]")


@pytest.mark.parametrize(
    ("text", "limit"),
    [("x" * 60_000, MAX_TRACEBACK_LINE), ("x" * 200 + "\n", MAX_TRACEBACK), ("x\n" * 60_000, MAX_TRACEBACK)],
    ids=["one line", "lines", "many lines"],
)
@pytest.mark.parametrize("name", ["structlog", "stdlib"])
def test_traceback_with_a_long_text_is_short(text: str, limit: int, name: str) -> None:
    stream = configured(io.StringIO())
    log: Any = structlog.get_logger("x") if name == "structlog" else logging.getLogger("x")
    try:
        raise ValueError(text * (1 if len(text) > limit else 300) + "the end")  # noqa: TRY301  # for its traceback
    except ValueError:
        log.exception("broken")
    (line,) = lines(stream)
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert "test_logging.py" in line["exception"]
    assert len(line["exception"]) < MAX_TRACEBACK + 100
    assert len(line["exception"].splitlines()[-1]) <= MAX_TRACEBACK_LINE


@pytest.mark.rule("security: a client's text is bounded in every log line")
@pytest.mark.parametrize(
    ("value", "limit"),
    [("é" * 60_000, MAX_TEXT), (["x" * 9_000] * 9, MAX_VALUE), ({"k": "x" * 60_000}, MAX_VALUE)],
    ids=["text", "list", "mapping"],
)
def test_long_value_is_shortened(value: object, limit: int) -> None:
    stream = configured(io.StringIO())
    structlog.get_logger("x").warning("refused", reason=value, peer="192.0.2.1")
    (line,) = lines(stream)
    assert (len(line["reason"]), line["reason"][-1], line["peer"]) == (limit, "…", "192.0.2.1")


def test_secret_at_the_limit_is_redacted() -> None:
    stream = configured(io.StringIO())
    structlog.get_logger("x").warning("refused", reason=f"{'x' * (MAX_TEXT - 30)} {JWT}")
    assert JWT[:20] not in stream.getvalue()


def test_terminal_gets_colours_and_multiline_tracebacks() -> None:
    stream = configured(Terminal())
    log_error()
    text = stream.getvalue()
    assert "\x1b[" in text
    assert "Traceback (most recent call last):\n" in text
    assert "abc" not in text


@pytest.mark.parametrize(
    ("log_format", "stream", "no_color", "starts"),
    [
        ("auto", io.StringIO, "", "{"),
        ("auto", Terminal, "", "\x1b"),
        ("auto", Terminal, "1", "2026"),
        ("json", Terminal, "", "{"),
        ("console", io.StringIO, "", "2026"),
    ],
)
def test_format_and_terminal_decide_on_json_and_colours(
    monkeypatch: pytest.MonkeyPatch, log_format: str, stream: type[io.StringIO], no_color: str, starts: str
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    made = configured(stream(), log_format=log_format)
    structlog.get_logger("x").info("hello")
    assert made.getvalue().startswith(starts)
    assert ("\x1b[" in made.getvalue()) is (starts == "\x1b")


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("debug", ["d", "i", "w", "e", "std-d", "std-w"]),
        ("info", ["i", "w", "e", "std-w"]),
        ("warning", ["w", "e", "std-w"]),
        ("error", ["e"]),
    ],
)
def test_level_filters_lines(level: str, events: list[str]) -> None:
    stream = configured(io.StringIO(), level=level)
    for name in ("debug", "info", "warning", "error"):
        getattr(structlog.get_logger("x"), name)(name[0])
    logging.getLogger("y").debug("std-d")
    logging.getLogger("y").warning("std-w")
    assert [line["event"] for line in lines(stream)] == events


def test_unknown_level_or_format_is_rejected() -> None:
    with pytest.raises(ValueError, match="log level 'loud' is unknown: use one of debug, info, warning, error"):
        configured(io.StringIO(), level="loud")
    with pytest.raises(ValueError, match="'xml' is not a valid LogFormat"):
        configured(io.StringIO(), log_format="xml")


def test_second_configuration_replaces_the_first() -> None:
    first, second = configured(io.StringIO()), configured(io.StringIO())
    logging.getLogger("y").warning("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


@pytest.mark.parametrize(
    "key", ["authorization", "Authorization", "token", "access_token", "tokenFile", "password", "api_key", "cookie"]
)
@pytest.mark.parametrize("value", ["secret", ["secret"], {"a": "secret"}, b"secret"])
def test_values_of_secret_keys_are_redacted(key: str, value: Any) -> None:
    assert redacted(**{key: value}) == {key: REDACTED}


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        (f"Authorization: Bearer {JWT}", f"Authorization: Bearer {REDACTED}"),
        ("bearer abc, and more", f"bearer {REDACTED}, and more"),
        ("Basic dXNlcjpwYXNz", f"Basic {REDACTED}"),
        (f"got {JWT} from the file", f"got {REDACTED} from the file"),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\n", f"{REDACTED}\n"),
        ("-----BEGIN PRIVATE KEY-----\nabc cut", REDACTED),
        ("get https://user:a@b:443/x: refused", f"get https://{REDACTED}@b:443/x: refused"),
        ("see https://docs.io/a and mail@b.io", "see https://docs.io/a and mail@b.io"),
        ("node-1 is upgraded, basic checks passed", "node-1 is upgraded, basic checks passed"),
    ],
)
def test_secrets_in_texts_are_redacted(text: str, safe: str) -> None:
    assert redacted(event=text, inner={"list": [text]}) == {"event": safe, "inner": {"list": [safe]}}


def test_other_values_are_kept_and_objects_become_text() -> None:
    fields = {"count": 3, "ratio": 0.5, "on": True, "token": None, "nodes": ["a", "b"], "tokens": 2}
    assert redacted(**fields) == fields
    assert redacted(error=ValueError(f"Bearer {JWT}")) == {"error": f"Bearer {REDACTED}"}
    assert redacted(body=b"123") == {"body": "<3 bytes>"}


def test_deeply_nested_values_are_not_logged() -> None:
    deep: Any = "bottom"
    for _ in range(20):
        deep = {"in": deep}
    assert "bottom" not in str(redacted(deep=deep))
