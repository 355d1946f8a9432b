from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from upgrade_manager.runtime.logging import configure_logging


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def broken() -> None:
    raise ValueError("refused: Bearer abc")


def now() -> datetime:
    return datetime(2026, 1, 1, 12, 0, 0, 5000, tzinfo=UTC)


def configured(stream: io.StringIO, *, level: str = "info", log_format: str = "auto") -> io.StringIO:
    configure_logging(level=level, log_format=log_format, stream=stream, now=now)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_on_a_pipe_every_line_is_json() -> None:
    stream = configured(io.StringIO())
    log = structlog.get_logger("pipeline", plan="p")
    log.info("phase completed", seconds=3, token="abc")  # noqa: S106  # it is there to be hidden
    assert lines(stream) == [
        {
            "timestamp": "2026-01-01T12:00:00.005Z",
            "level": "info",
            "event": "phase completed",
            "logger": "pipeline",
            "plan": "p",
            "seconds": 3,
            "token": "[redacted]",
        }
    ]


def test_lines_of_the_standard_library_have_the_same_form() -> None:
    stream = configured(io.StringIO())
    logging.getLogger("aiohttp.server").warning("lost %s with Bearer abc", "connection")
    logging.getLogger("asyncio").info("not shown below a warning")
    assert lines(stream) == [
        {
            "timestamp": "2026-01-01T12:00:00.005Z",
            "level": "warning",
            "event": "lost connection with Bearer [redacted]",
            "logger": "aiohttp.server",
        }
    ]


def test_a_traceback_is_one_field_without_secrets() -> None:
    stream = configured(io.StringIO())
    try:
        broken()
    except ValueError:
        structlog.get_logger("x").exception("broken")
        logging.getLogger("y").exception("broken too")
    for line in lines(stream):
        assert line["exception"].startswith("Traceback")
        assert line["exception"].endswith("ValueError: refused: Bearer [redacted]")


def test_a_terminal_gets_colours_and_tracebacks_over_several_lines() -> None:
    stream = configured(Terminal())
    try:
        broken()
    except ValueError:
        structlog.get_logger("x").exception("broken")
    text = stream.getvalue()
    assert "\x1b[" in text
    assert "Traceback (most recent call last):\n" in text
    assert "abc" not in text


@pytest.mark.parametrize(
    ("log_format", "stream", "no_color", "is_json", "colours"),
    [
        ("auto", io.StringIO, "", True, False),
        ("auto", Terminal, "", False, True),
        ("auto", Terminal, "1", False, False),
        ("json", Terminal, "", True, False),
        ("console", io.StringIO, "", False, False),
    ],
)
def test_formats(
    monkeypatch: pytest.MonkeyPatch,
    log_format: str,
    stream: type[io.StringIO],
    no_color: str,
    *,
    is_json: bool,
    colours: bool,
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    made = configured(stream(), log_format=log_format)
    structlog.get_logger("x").info("hello")
    assert made.getvalue().startswith("{") is is_json
    assert ("\x1b[" in made.getvalue()) is colours


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("debug", ["d", "i", "w", "e", "std-d", "std-w"]),
        ("info", ["i", "w", "e", "std-w"]),
        ("warning", ["w", "e", "std-w"]),
        ("error", ["e"]),
    ],
)
def test_levels(level: str, events: list[str]) -> None:
    stream = configured(io.StringIO(), level=level)
    for name in ("debug", "info", "warning", "error"):
        getattr(structlog.get_logger("x"), name)(name[0])
    logging.getLogger("y").debug("std-d")
    logging.getLogger("y").warning("std-w")
    assert [line["event"] for line in lines(stream)] == events


def test_an_unknown_level_or_format_is_refused() -> None:
    with pytest.raises(ValueError, match="log level 'loud' is unknown: use one of debug, info, warning, error"):
        configured(io.StringIO(), level="loud")
    with pytest.raises(ValueError, match="'xml' is not a valid LogFormat"):
        configured(io.StringIO(), log_format="xml")


def test_configuring_again_replaces_the_first_configuration() -> None:
    first, second = configured(io.StringIO()), configured(io.StringIO())
    logging.getLogger("y").warning("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


def test_what_no_json_type_fits_becomes_text() -> None:
    stream = configured(io.StringIO())
    structlog.get_logger("x").info("typed", path=io, missing=None)
    assert "module 'io'" in lines(stream)[0]["path"]


def test_a_logger_needs_no_name() -> None:
    stream = configured(io.StringIO())
    structlog.get_logger().info("anonymous")
    assert lines(stream)[0]["logger"] == ""
