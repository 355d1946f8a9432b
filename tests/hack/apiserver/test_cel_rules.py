from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.cel_rules import validate_rules
from hack.apiserver.schema.correlation import Old

VALUE: dict[str, Any] = {
    "spec": {"attempt": 2, "nodes": ["a", "b"], "by": {"x": 1}},
    "status": {"phase": "Failed", "of": {"x": {"y": 1}}},
}
BEFORE: dict[str, Any] = {"spec": {"attempt": 1, "nodes": ["a"], "by": {}}}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("self.spec.attempt == 2", True),
        ("has(self.status) && has(self.status.phase)", True),
        ("has(self.status.reason)", False),
        ("has(self.status.of['x'].y)", True),
        ("has(self.spec.by) && self.spec.by.size() == 1", True),
        ("has(self.spec.by) && size(self.spec.nodes) == 2", True),
        ("size(self) == 2", True),
        ("size(self.spec) == 3", True),
        ("self.spec.nodes.size() == 2 && self.spec.attempt == 2", True),
        ("self.spec.nodes.all(node, node.size() == 1)", True),
        ("self['status']['phase'] == 'Failed'", True),
        ("self.spec.attempt == 2 && self.spec.by['x'] == 1", True),
        ("self.spec == oldSelf.spec", False),
        ("self.spec.attempt == oldSelf.spec.attempt + 1 && !has(oldSelf.status)", True),
        ("self.spec.attempt == 2 && has(self.spec.by.x) && !has(oldSelf.spec.by.x)", True),
    ],
)
def test_rule_sees_what_it_reads(*, rule: str, holds: bool) -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "no"}]}
    errors = list(validate_rules(VALUE, schema, old=Old(present=True, value=BEFORE)))
    assert [error.detail for error in errors] == ([] if holds else ["no"])
