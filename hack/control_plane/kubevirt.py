"""KubeVirt's CustomResourceDefinitions: schemas from its module, the frames around them from here.

Its operator makes the definitions at run time. The schemas stand in its module as generated text; names, columns and
subresources are in its code, and are facts of its API that do not change within a version of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.control_plane.charts import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from upgrade_manager.kube.objects import Object

_SCHEMAS = "pkg/virt-operator/resource/generate/components/validations_generated.go"
#: An entry of the generated map: the kind's singular, and the schema as a raw string.
_ENTRY = re.compile(r'^\t"(\w+)": `(.*?)`,$', re.DOTALL | re.MULTILINE)
_GROUP = "kubevirt.io"


def _column(name: str, path: str, kind: str = "string", **more: str | int) -> Object:
    return {"name": name, "type": kind, "jsonPath": path, **more}


def _condition(kind: str) -> str:
    return f".status.conditions[?(@.type=='{kind}')].status"


_AGE = _column("Age", ".metadata.creationTimestamp", "date")
_PHASE = _column("Phase", ".status.phase")
#: By singular: the kind, its short names, whether its status is a subresource, and its columns.
_KINDS: dict[str, tuple[str, list[str], bool, list[Object]]] = {
    "virtualmachine": (
        "VirtualMachine",
        ["vm", "vms"],
        True,
        [_AGE, _column("Status", ".status.printableStatus"), _column("Ready", _condition("Ready"))],
    ),
    "virtualmachineinstance": (
        "VirtualMachineInstance",
        ["vmi", "vmis"],
        False,
        [
            _AGE,
            _PHASE,
            _column("IP", ".status.interfaces[0].ipAddress"),
            _column("NodeName", ".status.nodeName"),
            _column("Ready", _condition("Ready")),
            _column("Live-Migratable", _condition("LiveMigratable"), priority=1),
            _column("Paused", _condition("Paused"), priority=1),
        ],
    ),
    "virtualmachineinstancemigration": (
        "VirtualMachineInstanceMigration",
        ["vmim", "vmims"],
        True,
        [_PHASE, _column("VMI", ".spec.vmiName")],
    ),
    "kubevirt": ("KubeVirt", ["kv", "kvs"], True, [_AGE, _PHASE]),
}


def kubevirt_definitions(module: Path) -> Iterator[Object]:
    """The definitions of the kinds that the simulated cluster has."""
    for singular, text in _ENTRY.findall((module / _SCHEMAS).read_text(encoding="utf-8")):
        if singular in _KINDS:
            validation = next(parse(text))
            yield _definition(singular, validation or {})


def _definition(singular: str, validation: Object) -> Object:
    kind, short_names, has_status, columns = _KINDS[singular]
    version = {"name": "v1", "served": True, "storage": True, "schema": validation, "additionalPrinterColumns": columns}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": f"{singular}s", "singular": singular}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {**names, "shortNames": short_names, "categories": ["all"]},
            "versions": [{**version, **({"subresources": {"status": {}}} if has_status else {})}],
        },
    }
