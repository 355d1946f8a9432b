"""The CustomResourceDefinition of UpgradePlan, made of the models; `python -m upgrade_manager.api.crd` prints it.

What survives and what is refused:

- In the spec an unknown field is dropped by the API server, and kubectl, which validates strictly, refuses it: a
  misspelt `pauseNodes` must not let a node be drained that someone wanted to hold back. A field of a newer version
  therefore needs that version's definition; where only the manager is rolled back the newer definition stays, and
  the field survives, because every patch of ours names our own fields.
- In the status, which people do not write, unknown fields are kept (`x-kubernetes-preserve-unknown-fields` on every
  object in it). Where the definition is rolled back together with the manager, what a newer one had recorded is still
  there when it returns. For the same reason phases and node states are no enumerations.

The schema is structural. The rules in CEL compare single strings whose length is bounded, and look at no list, so
their cost is a small, fixed part of what the API server allows.
"""

from __future__ import annotations

import sys
from typing import Any

import yaml

from upgrade_manager.api import keys
from upgrade_manager.api.upgrade_plan import UpgradePlan

PLURAL = "upgradeplans"
SINGULAR = "upgradeplan"

#: Fixed at creation, with what to say to someone who tries to change them.
_FIXED = ("version", "image", "upgrade")

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
#: Said by pydantic about the models, of no use or not allowed in a structural schema.
_DROPPED = frozenset({"title", "default", "$defs", "$ref", "anyOf"})


def crd_manifest() -> dict[str, Any]:
    """The manifest, as `kubectl apply` takes it."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{keys.GROUP}"},
        "spec": {
            "group": keys.GROUP,
            "names": {
                "kind": keys.KIND,
                "listKind": f"{keys.KIND}List",
                "plural": PLURAL,
                "singular": SINGULAR,
                "shortNames": ["up", "ups"],
            },
            "scope": "Cluster",
            "versions": [
                {
                    "name": keys.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(),
                    "schema": {"openAPIV3Schema": _schema()},
                }
            ],
        },
    }


def crd_yaml() -> str:
    """The manifest as text, the same for the same models."""
    header = "# Made by `python -m upgrade_manager.api.crd`; change the models instead.\n"
    return header + yaml.safe_dump(crd_manifest(), sort_keys=False, width=120, allow_unicode=True)


def _columns() -> list[dict[str, Any]]:
    return [
        _column("Version", ".spec.version", "The Version object that is upgraded to."),
        _column("CurrentPhase", ".status.currentPhase", "How far the plan is."),
        _column("Available", _condition("Available", "status"), "Whether the plan may be carried out."),
        _column("Progressing", _condition("Progressing", "status"), "Whether the plan is being carried out."),
        _column("Degraded", _condition("Degraded", "status"), "Whether a step has raised an error."),
        _column("Age", ".metadata.creationTimestamp", "Time since the plan was created.", type_="date"),
        _column("Image", ".spec.image", "The image that holds the ISO.", wide=True),
        _column("Previous", ".status.previousVersion", "The version before the upgrade.", wide=True),
        _column("Target", ".status.releaseMetadata.harvester", "The version that is upgraded to.", wide=True),
        _column("Message", _condition("Progressing", "message"), "What the plan waits for.", wide=True),
    ]


def _column(name: str, path: str, description: str, *, type_: str = "string", wide: bool = False) -> dict[str, Any]:
    column = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


def _condition(type_: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


def _rules() -> list[dict[str, Any]]:
    """The rules of the spec; the API server judges them, also where the webhook is away."""
    needed = {
        "rule": "has(self.version) || has(self.image)",
        "message": "say what to upgrade to: set spec.version to the name of a Version in harvester-system, or "
        "spec.image to a VirtualMachineImage that holds the release's ISO",
        "reason": "FieldValueRequired",
        "fieldPath": ".version",
    }
    return [needed, *(_fixed(name) for name in _FIXED)]


def _fixed(name: str) -> dict[str, Any]:
    # On the spec and not on the field itself: there a rule is not asked when the field comes or goes.
    return {
        "rule": f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})",
        "message": f"spec.{name} is fixed once the plan exists and can be neither changed, added nor removed; "
        "create another UpgradePlan with the value that you want",
        "reason": "FieldValueForbidden",
        "fieldPath": f".{name}",
    }


def _schema() -> dict[str, Any]:
    generated = UpgradePlan.model_json_schema(by_alias=True)
    models = generated["$defs"]
    plan = generated["properties"]
    spec = _structural(plan["spec"], models, preserve=False)
    status = _structural(plan["status"], models, preserve=True)
    return {
        "type": "object",
        "description": generated["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"Group and version of this object: {keys.API_VERSION}."},
            "kind": {"type": "string", "description": f"Kind of this object: {keys.KIND}."},
            # The API server describes metadata itself, and refuses a definition that says more than this.
            "metadata": {"type": "object"},
            "spec": {**spec, "x-kubernetes-validations": _rules()},
            "status": status,
        },
    }


def _structural(node: dict[str, Any], models: dict[str, Any], *, preserve: bool) -> dict[str, Any]:
    """A node of pydantic's JSON schema as a structural one: references inlined, unions with null reduced."""
    merged = {**_target(node, models), **node}
    result = {key: value for key, value in merged.items() if key not in _DROPPED}
    result.pop("additionalProperties", None)
    if "properties" in merged:
        result["properties"] = {
            name: _structural(child, models, preserve=preserve) for name, child in merged["properties"].items()
        }
        if preserve:
            result[_PRESERVE] = True
    elif isinstance(merged.get("additionalProperties"), dict):
        result["additionalProperties"] = _structural(merged["additionalProperties"], models, preserve=preserve)
    if "items" in merged:
        result["items"] = _structural(merged["items"], models, preserve=preserve)
    return _ordered(result)


def _target(node: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    """What a node refers to: a model by its name, or the one alternative to null."""
    if "$ref" in node:
        model: dict[str, Any] = models[node["$ref"].rpartition("/")[2]]
        return model
    alternatives = [alternative for alternative in node.get("anyOf", ()) if alternative != {"type": "null"}]
    return {**_target(alternatives[0], models), **alternatives[0]} if alternatives else {}


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    """Type and description first, children last: the order in which a reader wants them."""
    head = [key for key in ("type", "format", "description") if key in schema]
    tail = [key for key in ("items", "additionalProperties", "properties") if key in schema]
    middle = sorted(key for key in schema if key not in {*head, *tail})
    return {key: schema[key] for key in (*head, *middle, *tail)}


if __name__ == "__main__":
    sys.stdout.write(crd_yaml())
