"""The rows of the built-in kinds, from builtin.yaml, and the columns name and age, which every kind may show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

from hack.apiserver.resources import Column, Row
from hack.yaml_documents import documents
from upgrade_manager.kube.resources import Resource

NAME = Column(name="Name", type="string", json_path=".metadata.name", format="name", description="Name of the object")
#: Custom columns have the type date; built-in ones declare the same column as string.
AGE = Column(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since the object was created"
)
BUILTIN_AGE = replace(AGE, declared="string", absent="<unknown>")


def _read(path: Path) -> tuple[Row, ...]:
    table = next(documents(path.read_text(encoding="utf-8")))
    expressions: dict[str, str] = {}
    for name, text in table["expressions"].items():
        expressions[name] = Template(text).substitute(expressions)
    return tuple(_row(expressions, **kind) for kind in table["kinds"])


def _row(
    expressions: dict[str, str], *, plural: str, kind: str, group: str = "", namespaced: bool = True, **fields: Any
) -> Row:
    resource = Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=namespaced)
    columns = tuple(_column(column, expressions) for column in fields.pop("columns", ()))
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    return Row(resource=resource, singular=kind.lower(), list_kind=kind + "List", columns=columns, **fields)


def _column(column: Any, expressions: dict[str, str]) -> Column:
    if column == "age":
        return BUILTIN_AGE
    path = Template(column["json_path"]).substitute(expressions)
    return Column(**{"type": "string", "absent": "", **column, "json_path": path})


ROWS = _read(Path(__file__).with_suffix(".yaml"))
