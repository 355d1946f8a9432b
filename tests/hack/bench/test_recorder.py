from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hack.bench.recorder import Audit

if TYPE_CHECKING:
    from pathlib import Path

#: An entry of an audit log.
EVENT = {
    "kind": "Event",
    "verb": "patch",
    "requestURI": "/apis/batch/v1/namespaces/a/jobs/one?fieldValidation=Strict",
    "userAgent": "manager/1",
    "requestObject": {"spec": {"suspend": True}},
    "responseStatus": {"code": 200},
    "responseObject": {"kind": "Job"},
    "requestReceivedTimestamp": "2026-01-01T00:00:00.250000Z",
    "stageTimestamp": "2026-01-01T00:00:01.500000Z",
}


def test_audit_log_entry_is_read_as_an_exchange(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    (tmp_path / "audit.log").write_text(json.dumps(EVENT) + "\n")
    (exchange,) = audit.exchanges()
    assert (exchange.request.method, exchange.request.path) == ("PATCH", "/apis/batch/v1/namespaces/a/jobs/one")
    assert json.loads(exchange.request.body) == {"spec": {"suspend": True}}
    assert (exchange.user_agent, exchange.status, exchange.writes) == ("manager/1", 200, True)
    assert exchange.ended - exchange.began == 1.25
    assert json.loads(exchange.body) == {"kind": "Job"}
