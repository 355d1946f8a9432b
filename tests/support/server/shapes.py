"""Custom kinds that use every feature of schemas, for the conformance table."""

from __future__ import annotations

from typing import Any

from tests.support.server.apiserver import definition

GROUP = "shapes.example.io"
VERSION = f"{GROUP}/v1"
#: The path of each kind's objects.
WIDGETS = f"/apis/{VERSION}/namespaces/$ns/widgets"
RULED = f"/apis/{VERSION}/namespaces/$ns/ruled"

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items} | more


_SPEC = _object(
    size={"type": "integer", "minimum": 1, "maximum": 10},
    colour={"type": "string", "enum": ["red", "green"]},
    code={"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
    word={"type": "string", "minLength": 2},
    when={"type": "string", "format": "date-time"},
    names=_list(_TEXT, maxItems=3, minItems=1),
    unique=_list(_TEXT, **{"x-kubernetes-list-type": "set"}),
    parts=_list(
        _object(name=_TEXT, weight={"type": "integer", "default": 1}, note=_TEXT) | {"required": ["name"]},
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
    options={"type": "object", "additionalProperties": _NUMBER},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    mode={"type": "string", "default": "slow"},
    nested=_object(level={"type": "integer", "default": 3}, deep=_object(text=_TEXT)) | {"default": {}},
    strict=_object(must=_TEXT, other=_TEXT) | {"required": ["must"]},
)

WIDGET = definition(
    "widgets",
    "Widget",
    _object(spec=_SPEC, status=_object(phase=_TEXT, count={"type": "integer", "minimum": 0}), extra=_TEXT),
    group=GROUP,
    status=True,
)


def _rule(rule: str, **more: Any) -> dict[str, Any]:
    return {"rule": rule} | more


_RULED = _object(
    low=_NUMBER,
    high=_NUMBER,
    fixed={"type": "string", "x-kubernetes-validations": [_rule("self == oldSelf", message="fixed is fixed")]},
    plain={"type": "string", "maxLength": 20, "x-kubernetes-validations": [_rule("self != 'bad'")]},
    forbidden={
        "type": "string",
        "x-kubernetes-validations": [_rule("self != 'bad'", reason="FieldValueForbidden", message="not this")],
    },
    needed={
        "type": "object",
        "properties": {"kind": _TEXT, "value": _TEXT},
        "x-kubernetes-validations": [
            _rule(
                "self.kind != 'full' || has(self.value)",
                reason="FieldValueRequired",
                message="full needs a value",
                fieldPath=".value",
            )
        ],
    },
    items=_list(
        _object(name=_TEXT, amount=_NUMBER)
        | {"required": ["name"], "x-kubernetes-validations": [_rule("self.amount > 0", message="some, please")]},
        maxItems=5,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
) | {
    "x-kubernetes-validations": [
        _rule("!has(self.low) || !has(self.high) || self.low <= self.high", message="low must not exceed high"),
        _rule("!has(oldSelf.low) || has(self.low)", message="low stays once it is set"),
    ]
}

#: With CEL rules.
RULE = definition("ruled", "Rule", _object(spec=_RULED, status=_object(phase=_TEXT)), group=GROUP, status=True)

SHAPES = (WIDGET, RULE)


def widget(name: str = "one", /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def ruled(name: str = "one", /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": "Rule", "metadata": {"name": name}, "spec": spec}
