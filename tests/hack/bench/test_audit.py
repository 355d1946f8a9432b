from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hack.bench.audit import Audit

if TYPE_CHECKING:
    from pathlib import Path

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


def test_an_entry_of_the_log_is_an_exchange(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    (tmp_path / "audit.log").write_text(json.dumps(EVENT) + "\n")
    (exchange,) = audit.exchanges()
    assert (exchange.request.method, exchange.request.path) == ("PATCH", "/apis/batch/v1/namespaces/a/jobs/one")
    assert json.loads(exchange.request.body) == {"spec": {"suspend": True}}
    assert (exchange.user_agent, exchange.status, exchange.writes) == ("manager/1", 200, True)
    assert exchange.ended - exchange.began == 1.25
    assert json.loads(exchange.answer) == {"kind": "Job"}


def test_the_policy_asks_for_writes_only_and_for_no_more_than_is_needed(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    policy = json.loads((tmp_path / "audit-policy.json").read_text())
    assert [rule["level"] for rule in policy["rules"]] == ["RequestResponse", "Request", "None"]
    assert all(rule["verbs"] == ["create", "update", "patch"] for rule in policy["rules"][:-1])
    assert f"--audit-policy-file={tmp_path / 'audit-policy.json'}" in audit.flags
