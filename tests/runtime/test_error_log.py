from __future__ import annotations

import pytest
import structlog
from structlog.testing import capture_logs

from upgrade_manager.kube.errors import Conflict, Forbidden, Gone, Throttled, Transient
from upgrade_manager.runtime.error_log import ErrorLog, fingerprint
from upgrade_manager.runtime.result import RetryError, TerminalError


def new_log() -> ErrorLog:
    return ErrorLog(structlog.get_logger())


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (Conflict("x"), "warning"),
        (Gone("x"), "warning"),
        (RetryError("x"), "warning"),
        (Throttled("x", retry_after=1), "warning"),
        (Transient("x"), "warning"),
        (TimeoutError(), "warning"),
        (ConnectionResetError(), "warning"),
        (Forbidden("x"), "error"),
        (TerminalError("x"), "error"),
        (KeyError("x"), "error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_transient_errors_are_warnings_without_traceback(error: Exception, level: str) -> None:
    with capture_logs() as lines:
        new_log().failed("a", error, failures=1)
    assert lines[0]["log_level"] == level
    assert lines[0]["error"] == (str(error) or type(error).__name__)
    assert ("exc_info" in lines[0]) is (level == "error")


def test_each_distinct_error_of_each_key_is_logged_once() -> None:
    log = new_log()
    with capture_logs() as lines:
        for _ in range(3):
            log.failed("a", ValueError("one"), failures=1)
            log.failed("a", ValueError("two"), failures=2)
            log.failed("b", ValueError("one"), failures=1)
    assert [line["log_level"] for line in lines] == ["error"] * 3 + ["debug"] * 6


def test_error_is_logged_again_after_a_success() -> None:
    log = new_log()
    with capture_logs() as lines:
        log.failed("a", ValueError("x"), failures=1)
        log.succeeded("a")
        log.succeeded("a")
        log.failed("a", ValueError("x"), failures=1)
    assert [line["log_level"] for line in lines] == ["error", "info", "error"]


def test_remembered_errors_of_a_key_are_bounded() -> None:
    log = new_log()
    with capture_logs():
        for number in range(1000):
            log.failed("a", ValueError(number), failures=number)
    assert len(log._seen["a"]) == 16


def test_errors_raised_on_different_lines_are_distinct() -> None:
    here = raised(ValueError("x"))
    assert fingerprint(here) == fingerprint(raised(ValueError("x")))
    assert fingerprint(here) != fingerprint(ValueError("x"))
