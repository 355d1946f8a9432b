"""YAML files of charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.control_plane.charts import definitions_in, parse

if TYPE_CHECKING:
    from pathlib import Path


class TestTemplates:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a: 1\n", [{"a": 1}]),
            ("a: {{ .Values.a }}\nb: 1\n", [{"a": None, "b": 1}]),
            ('labels: {{- include "l" . | nindent 4 }}\n  more: ""\n', [{"labels": {"more": ""}}]),
            ("{{- if .Values.crds }}\na: 1\n{{- end }}\n", [{"a": 1}]),
            ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
            ("", []),
        ],
        ids=["plain", "value", "labels", "condition", "documents", "empty"],
    )
    def test_actions_go(self, text: str, expected: list[object]) -> None:
        assert list(parse(text)) == expected

    def test_only_definitions_are_taken(self, tmp_path: Path) -> None:
        file = tmp_path / "all.yaml"
        file.write_text("kind: ConfigMap\n---\n---\nkind: CustomResourceDefinition\nspec: {}\n")
        assert list(definitions_in([file])) == [{"kind": "CustomResourceDefinition", "spec": {}}]
