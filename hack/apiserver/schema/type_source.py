"""Makes the table of the built-in kinds' Go types: `python -m hack.apiserver.schema.type_source MODULES`.

MODULES is a Go module cache that holds k8s.io/api and its like in one version. What is taken are names: of types, of
their fields, of what the fields hold, and how a strategic merge patch joins them. Rerun it when Kubernetes is updated.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from hack.apiserver.builtin import ROWS
from hack.apiserver.schema.go_types import TABLE

VERSION = "v0.35.4"
#: Where the types of an API group's v1 are, by the last word of the package's folder.
_API = "admissionregistration apps authentication authorization batch coordination core discovery events networking"
_PACKAGES = {name: f"api@{VERSION}/{name}/v1" for name in f"{_API} policy rbac scheduling storage".split()} | {
    "meta": f"apimachinery@{VERSION}/pkg/apis/meta/v1",
    "apiextensions": f"apiextensions-apiserver@{VERSION}/pkg/apis/apiextensions/v1",
    "apiregistration": f"kube-aggregator@{VERSION}/pkg/apis/apiregistration/v1",
}
#: Types that read and write themselves, by what they take.
_LEAVES = {
    "meta.Time": "time",
    "meta.MicroTime": "microtime",
    "meta.Duration": "string",
    "meta.FieldsV1": "any",
    "meta.Verbs": "[]string",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "port",
    "runtime.RawExtension": "any",
    "apiextensions.JSON": "any",
    "apiextensions.JSONSchemaPropsOrBool": "or apiextensions.JSONSchemaProps",
    "apiextensions.JSONSchemaPropsOrArray": "or apiextensions.JSONSchemaProps",
    "apiextensions.JSONSchemaPropsOrStringArray": "or apiextensions.JSONSchemaProps",
    "[]byte": "bytes",
    "types.UID": "string",
    "int": "int64",
}
_STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\}|\n(.*?)^\})", re.MULTILINE | re.DOTALL)
_ALIAS = re.compile(r"^(?:type |\t)(\w+) ((?:map\[|\[\]|[a-z])[\w\[\].]*)$", re.MULTILINE)
_FIELD = re.compile(r"^\t(?:(\w+)[ \t]+)?(\S+)[ \t]+`(.*)`", re.MULTILINE)
_TAG = re.compile(r'(\w+):"([^"]*)"')
_IMPORTS = {"metav1": "meta", "v1": "core", "apiv1": "core", "corev1": "core", "rbacv1": "rbac"}


def _named(text: str, package: str) -> str:
    """A Go type with the names that the table has for what it mentions."""
    for prefix in ("*", "[]", "map[string]"):
        if text.startswith(prefix) and text not in _LEAVES:
            return prefix + _named(text.removeprefix(prefix), package)
    if text.startswith("map["):
        return "map[string]" + _named(text.partition("]")[2], package)
    scope, dot, name = text.rpartition(".")
    whole = f"{_IMPORTS.get(scope, scope)}.{name}" if dot else text
    if not dot and text[:1].isupper():
        whole = f"{package}.{text}"
    return _LEAVES.get(whole, whole)


def _fields(body: str, package: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for match in _FIELD.finditer(body):
        tags = dict(_TAG.findall(match[3]))
        name, *options = tags.get("json", "-").split(",")
        if name == "-" and not options:
            continue
        kind = _named(match[2], package)
        if not name:
            fields[f"<{kind}>"] = ""
            continue
        # A member that Go writes even when it is empty.
        shown = "" if "omitempty" in options or "omitzero" in options else "!"
        shown += "~" if "omitzero" in options else ""
        key = tags.get("patchMergeKey", "+") if "merge" in tags.get("patchStrategy", "").split(",") else ""
        fields[name] = f"{kind}{shown}{' ' + key if key else ''}"
    return fields


def _read(modules: Path) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for package, folder in _PACKAGES.items():
        for path in sorted((modules / "k8s.io" / folder).glob("*.go")):
            text = path.read_text()
            types |= {f"{package}.{name}": _fields(body, package) for name, body in _STRUCT.findall(text)}
            for name, target in _ALIAS.findall(text):
                types.setdefault(f"{package}.{name}", _named(target, package))
    return types


def _flat(fields: dict[str, str], types: dict[str, Any]) -> dict[str, str]:
    """With the fields of embedded structs in their places."""
    flat: dict[str, str] = {}
    for name, kind in fields.items():
        flat |= _flat(types.get(name[1:-1], {}), types) if name.startswith("<") else {name: kind}
    return flat


def _reachable(name: str, types: dict[str, Any], found: dict[str, Any]) -> None:
    if name in found or name not in types or name in _LEAVES:
        return
    known = types[name]
    found[name] = known if isinstance(known, str) else _flat(known, types)
    for kind in [found[name]] if isinstance(known, str) else found[name].values():
        _reachable(re.sub(r"^(\*|\[\]|map\[string\]|or )+", "", kind).split(" ")[0].rstrip("!~"), types, found)


def main() -> None:
    """Write the table."""
    types = _read(Path(sys.argv[1]))
    found: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for row in ROWS:
        package = row.resource.group.split(".")[0] or "core"
        kinds[row.resource.name] = f"{package}.{row.resource.kind}"
        _reachable(kinds[row.resource.name], types, found)
    _reachable("meta.DeleteOptions", types, found)
    table = {"kinds": kinds, "types": dict(sorted(found.items()))}
    lines = [f"{json.dumps(name)}: {json.dumps(kind)}" for name, kind in table["types"].items()]
    TABLE.write_text('{"kinds": ' + json.dumps(kinds) + ',\n"types": {\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
