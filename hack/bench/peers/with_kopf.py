"""The controller with kopf, which `kopf run --quiet` starts: otherwise each event is a line of its log.

kopf 1.45, "Handlers": `on.event` is called for every object and every event, and keeps no state in annotations or
finalizers, unlike `on.update`. "Authentication": a login handler for an account that is not at the usual path.
Workers are not limited, as by default: each belongs to an object and stays for 5 s, so a limit would delay others.
"""

from __future__ import annotations

from typing import Any

import kopf

from hack.bench.peers.report import ACCOUNT, GROUP, HOST, PLURAL, PORT, VERSION, Report

REPORT = Report()


@kopf.on.login()
def login(**_: Any) -> kopf.ConnectionInfo:
    """Read the service account; kopf calls this again when the server has rejected the token."""
    token = (ACCOUNT / "token").read_text()
    return kopf.ConnectionInfo(server=f"https://{HOST}:{PORT}", ca_path=str(ACCOUNT / "ca.crt"), token=token)


@kopf.on.event(GROUP, VERSION, PLURAL)
def reconcile(name: str, spec: kopf.Spec, status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    """Change the patch, which kopf sends when the handler has returned."""
    REPORT.handled(name)
    if status.get("observed", 0) != spec["value"]:
        patch.status["observed"] = spec["value"]
