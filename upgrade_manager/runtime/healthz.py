"""The probes `/healthz` and `/readyz`, with the responses of controller-runtime's pkg/healthz.

`?verbose` lists all checks, `?exclude=NAME` leaves one out, and each check has a path below the probe's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import structlog
from aiohttp import web

from upgrade_manager.runtime.http_server import HttpServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection


#: Seconds after which a reconcile or the event loop counts as hung (observability.md, probes).
HANG_TIMEOUT = 60.0
#: Seconds for one check.
CHECK_TIMEOUT = 5.0

#: Raises when the check fails.
Check: TypeAlias = "Callable[[], Awaitable[None]]"


class Unhealthy(Exception):
    """A failed check; its message is shown in the log and on the path of the check."""


async def ping() -> None:
    """Pass; the check of a probe without checks."""


class Probe:
    """The named checks behind one path."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, Check] = {}
        self._log = structlog.get_logger(__name__, probe=name)

    def add(self, name: str, check: Check) -> None:
        """Add a check."""
        self._checks[name] = check

    async def report(self, *, verbose: bool = False, exclude: Collection[str] = ()) -> tuple[int, str]:
        """Run all checks; return the status and `ok`, or all results if one has failed or if `verbose`."""
        checks = self._checks or {"ping": ping}
        names = sorted(checks)
        included = [name for name in names if name not in exclude]
        errors = await asyncio.gather(*(_error_of(checks[name]) for name in included))
        failed = {name: error for name, error in zip(included, errors, strict=True) if error}
        if failed:
            self._log.warning("probe failed", errors=failed)
        elif not verbose:
            return 200, "ok"
        lines = [_line(name, failed=name in failed, excluded=name in exclude) for name in names]
        if unknown := ", ".join(f'"{name}"' for name in sorted(set(exclude) - set(names))):
            lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
        # controller-runtime, too, writes healthz on both paths.
        lines.append(f"healthz check {'failed' if failed else 'passed'}")
        return 500 if failed else 200, "\n".join(lines) + "\n"

    async def report_one(self, name: str) -> tuple[int, str]:
        """Run one check; return the status and `ok` or why it fails."""
        check = (self._checks or {"ping": ping}).get(name)
        if check is None:
            return 404, "404 page not found\n"
        error = await _error_of(check)
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
