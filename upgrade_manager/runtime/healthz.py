"""The probes `/healthz` and `/readyz`, with the responses of controller-runtime's pkg/healthz.

`?verbose` lists all checks, `?exclude=NAME` leaves one out, and each check has a path below the probe's. Requests share
results of the last second, so that any number of them costs one run of each check in a second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import structlog
from aiohttp import web

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.http_server import HttpServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from structlog.typing import FilteringBoundLogger

#: Seconds after which a reconcile or the event loop counts as hung (observability.md, probes).
HANG_TIMEOUT = 60.0
#: Seconds for one check.
CHECK_TIMEOUT = 5.0
#: Seconds for which the result of a check is valid.
MAX_AGE = 1.0

#: Raises when the check fails.
Check: TypeAlias = "Callable[[], Awaitable[None]]"


class Unhealthy(Exception):
    """A failed check; its message is shown in the log and on the path of the check."""


async def ping() -> None:
    """Pass; the check of a probe without checks."""


class _SharedCheck:
    """A check whose result is valid for MAX_AGE; requests that come while it runs wait for the same run."""

    def __init__(self, name: str, check: Check, log: FilteringBoundLogger) -> None:
        self._name = name
        self._check = check
        self._log = log
        self._running = asyncio.Lock()
        #: The error of the last run, empty after a success, and the loop time of its end.
        self._error, self._checked_at = "", float("-inf")

    @property
    def valid_error(self) -> str | None:
        """The result of `error` while it is valid."""
        return self._error if loop_time() < self._checked_at + MAX_AGE else None

    async def error(self) -> str:
        """Return why the check fails; empty when it passes."""
        async with self._running:
            if self.valid_error is None:
                error = await _error_of(self._check)
                self._report(error)
                self._error, self._checked_at = error, loop_time()
            return self._error

    def _report(self, error: str) -> None:
        """Log a change from success to failure, and back."""
        if error and not self._error:
            self._log.warning("probe failed", check=self._name, error=error)
        elif self._error and not error:
            self._log.info("probe recovered", check=self._name)


class Probe:
    """The named checks behind one path."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, _SharedCheck] = {}
        self._log = structlog.get_logger(__name__, probe=name)
        self._ping = {"ping": _SharedCheck("ping", ping, self._log)}

    def add(self, name: str, check: Check) -> None:
        """Add a check."""
        self._checks[name] = _SharedCheck(name, check, self._log)

    async def report(self, *, verbose: bool = False, exclude: Collection[str] = ()) -> tuple[int, str]:
        """Return the status and `ok`, or the results of all checks if one has failed or if `verbose`."""
        checks = self._checks or self._ping
        names = sorted(checks)
        included = [name for name in names if name not in exclude]
        errors = {name: checks[name].valid_error for name in included}
        # Most requests of a flood need no task.
        if due := [name for name, error in errors.items() if error is None]:
            errors |= zip(due, await asyncio.gather(*(checks[name].error() for name in due)), strict=True)
        failed = {name for name, error in errors.items() if error}
        if not failed and not verbose:
            return 200, "ok"
        lines = [_line(name, failed=name in failed, excluded=name in exclude) for name in names]
        if unknown := ", ".join(f'"{name}"' for name in sorted(set(exclude) - set(names))):
            lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
        # controller-runtime, too, writes healthz on both paths.
        lines.append(f"healthz check {'failed' if failed else 'passed'}")
        return 500 if failed else 200, "\n".join(lines) + "\n"

    async def report_one(self, name: str) -> tuple[int, str]:
        """Return the status and `ok`, or why this check fails."""
        check = (self._checks or self._ping).get(name)
        if check is None:
            return 404, "404 page not found\n"
        error = await check.error()
        return (500, f"internal server error: {error}\n") if error else (200, "ok")


class Probes:
    """The liveness probe `healthz` and the readiness probe `readyz`."""

    def __init__(self) -> None:
        self.healthz = Probe("healthz")
        self.readyz = Probe("readyz")

    def server(self, address: tuple[str, int]) -> HttpServer:
        """Return the plain HTTP server of both."""
        app = web.Application()
        for probe in (self.healthz, self.readyz):
            for path in (f"/{probe.name}", f"/{probe.name}/"):
                app.router.add_get(path, _all_checks(probe))
            app.router.add_get(f"/{probe.name}/{{check}}", _one_check(probe))
        return HttpServer("probes", flag="--health-probe-bind-address", app=app, address=address)


async def _error_of(check: Check) -> str:
    """Run the check and return why it fails; empty when it passes."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await check()
    except TimeoutError:
        return f"timed out after {CHECK_TIMEOUT:g} s"
    except Exception as error:  # noqa: BLE001  # any exception of a check is its failure
        return str(error) or type(error).__name__
    return ""


def _line(name: str, *, failed: bool, excluded: bool) -> str:
    """Return the result of one check as controller-runtime does: the reason is in the log and on the check's path."""
    if failed:
        return f"[-]{name} failed: reason withheld"
    return f"[+]{name} excluded: ok" if excluded else f"[+]{name} ok"


def _all_checks(probe: Probe) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        exclude = request.query.getall("exclude", [])
        return _response(await probe.report(verbose="verbose" in request.query, exclude=exclude))

    return handle


def _one_check(probe: Probe) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        return _response(await probe.report_one(request.match_info["check"]))

    return handle


def _response(report: tuple[int, str]) -> web.Response:
    status, text = report
    return web.Response(status=status, text=text, charset="utf-8", headers={"X-Content-Type-Options": "nosniff"})
