"""What a real API server itself takes down of its requests: when it had what, by whom, by its own clock."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hack.bench.recorder import Exchange
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from pathlib import Path

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH"}
#: Of these kinds the answers are taken down; of plans the requests are enough; of the rest nothing.
_ANSWERED = {
    "": ["secrets"],
    "apps": ["deployments", "deployments/status"],
    "batch": ["jobs", "jobs/status"],
    "discovery.k8s.io": ["endpointslices"],
    "harvesterhci.io": ["virtualmachineimages", "virtualmachineimages/status"],
    "upgrade.cattle.io": ["plans", "plans/status"],
}
_ASKED = {"management.harvesterhci.io": ["upgradeplans", "upgradeplans/status"], "": ["nodes", "services"]}
#: MB, of which one is never reached: a file that is begun anew in the middle would be half a story.
_SIZE = 10_000


class Audit:
    """The log of one API server; its flags are for whoever starts that."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "audit.log"
        policy = folder / "audit-policy.json"
        policy.write_text(json.dumps(_policy()))
        self.flags = (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self._log}",
            f"--audit-log-maxsize={_SIZE}",
        )

    def exchanges(self) -> list[Exchange]:
        """The writes so far, in the order of their answers; times in seconds of the epoch."""
        with self._log.open() as lines:
            return [_exchange(json.loads(line)) for line in lines]


def _policy() -> dict[str, Any]:
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [_rule("RequestResponse", _ANSWERED), _rule("Request", _ASKED), {"level": "None"}],
    }


def _rule(level: str, kinds: dict[str, list[str]]) -> dict[str, Any]:
    resources = [{"group": group, "resources": names} for group, names in kinds.items()]
    return {"level": level, "verbs": list(_METHODS), "resources": resources}


def _exchange(event: dict[str, Any]) -> Exchange:
    request = Request(
        method=_METHODS[event["verb"]],
        path=urlsplit(event["requestURI"]).path,
        headers={"user-agent": event.get("userAgent", "")},
        body=_bytes(event.get("requestObject")),
    )
    return Exchange(
        request=request,
        status=event["responseStatus"]["code"],
        began=_seconds(event["requestReceivedTimestamp"]),
        ended=_seconds(event["stageTimestamp"]),
        answer=_bytes(event.get("responseObject")),
    )


def _bytes(obj: Any) -> bytes:
    return json.dumps(obj).encode() if obj is not None else b""


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
