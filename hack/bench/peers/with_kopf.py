"""The controller with kopf, which `kopf run --quiet` starts: otherwise each event is a line of its log.

kopf 1.45, "Handlers": `on.event` is called for every object and every event, and keeps no state in annotations or
finalizers, unlike `on.update`. "Async/Await": a coroutine runs in the event loop, another function in a thread.
"Authentication": a login handler for an account that is not at the usual path.
Workers are not limited, as by default: each belongs to an object and stays for 5 s, so a limit would delay others.
"""

from __future__ import annotations

from typing import Any

import kopf

from hack.bench.peers.report import ACCOUNT, GROUP, HOST, PLURAL, PORT, VERSION, Report

REPORT = Report()
#: Seconds: the default ones, which end after 54, and then its last one for some minutes more.
BACKOFFS = (1, 1, 2, 3, 5, 8, 13, 21, *[21] * 10)
#: Objects of a list at a time, as kubectl asks for them.
CHUNK = 500


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Retry for longer than by default ("Retrying of API errors"), and list in pieces, which is for many objects."""
    settings.networking.error_backoffs = BACKOFFS
    settings.watching.chunk_size = CHUNK


@kopf.on.login()
async def login(**_: Any) -> kopf.ConnectionInfo:
    """Read the service account; kopf calls this again when the server has rejected the token."""
    return connection()


def connection() -> kopf.ConnectionInfo:
    """Return the API server and the token."""
    token = (ACCOUNT / "token").read_text()
    return kopf.ConnectionInfo(server=f"https://{HOST}:{PORT}", ca_path=str(ACCOUNT / "ca.crt"), token=token)


@kopf.on.event(GROUP, VERSION, PLURAL)
async def reconcile(name: str, spec: kopf.Spec, status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    """Change the patch, which kopf sends when the handler has returned."""
    REPORT.handled(name)
    if status.get("observed", 0) != spec["value"]:
        patch.status["observed"] = spec["value"]
