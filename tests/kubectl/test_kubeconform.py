"""All manifests against the schemas of the real API server, by kubeconform."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.control_plane.assets import find_tool
from tests.support.cluster.kubectl import Cluster
from tests.support.programs.helm import Helm
from tests.support.programs.kustomize import COMPONENTS, DEFAULT, DEPLOY, rendered, with_components

#: Where kubeconform finds the schema of a kind, below a folder.
LOCATION = "{{.Group}}/{{.ResourceAPIVersion}}/{{.ResourceKind}}.json"
_REF = "#/definitions/"
#: Types whose JSON is not what the document says.
_SCALARS = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ["integer", "string"],
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ["number", "string"],
}


def write_schemas(document: Mapping[str, Any], folder: Path) -> None:
    """Write a file for each kind of an OpenAPI v2 document."""
    definitions = {name: _strict(name, one) for name, one in document["definitions"].items()}
    for name, definition in document["definitions"].items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            # kubeconform has the version for the group of core kinds.
            path = folder / (kind["group"] or kind["version"]) / kind["version"] / f"{kind['kind'].lower()}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            used = {one: definitions[one] for one in _closure(name, definitions)}
            path.write_text(json.dumps({"$ref": _REF + name, "definitions": used}))


def _strict(name: str, schema: Any) -> Any:
    """Return a schema that refuses unknown fields."""
    if name in _SCALARS:
        return {"type": _SCALARS[name]}
    if isinstance(schema, list):
        return [_strict("", one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    strict = {key: _strict("", value) for key, value in schema.items() if key != "properties"}
    if "properties" in schema:
        strict["properties"] = {field: _strict("", value) for field, value in schema["properties"].items()}
        is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
        strict |= {} if is_open else {"additionalProperties": False}
    return strict


def _closure(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions that one refers to, itself included."""
    found, waiting = {name}, [name]
    while waiting:
        new = {*_references(definitions[waiting.pop()])} - found
        found |= new
        waiting += new
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _references(one)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(_REF)
            else:
                yield from _references(value)


pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

#: Kinds of other projects, whose definitions the cluster does not have.
OTHERS = ("Addon", "Certificate", "Issuer", "PrometheusRule", "ServiceMonitor", "Version")
ALL = (
    "webhook.certificates=cert-manager",
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "dashboard.enabled=true",
)


def kubeconform(schemas: Path, manifests: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    options = ["-strict", "-summary", f"-skip={','.join(OTHERS)}", f"-schema-location={schemas}/{LOCATION}"]
    return subprocess.run(  # noqa: S603  # our own kubeconform
        [str(find_tool("kubeconform", os.environ)), *options],
        input=yaml.safe_dump_all(manifests),
        capture_output=True,
        text=True,
        check=False,
    )


async def test_manifests_have_only_fields_of_the_api_server(cluster: Cluster, tmp_path: Path) -> None:
    schemas, all_components = tmp_path / "schemas", tmp_path / "all"
    all_components.mkdir()
    write_schemas((await cluster.wire.get("/openapi/v2")).body, schemas)
    helm = Helm(tmp_path)
    manifests = [
        *rendered(DEFAULT),
        *rendered(with_components(all_components, COMPONENTS)),
        *rendered(DEPLOY / "samples"),
        *helm.rendered(),
        *helm.rendered(*ALL),
    ]
    valid = kubeconform(schemas, manifests)
    assert valid.returncode == 0, valid.stdout
    assert "Invalid: 0, Errors: 0" in valid.stdout

    deployment = next(one for one in rendered(DEFAULT) if one["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    assert "imagePullPolice" in kubeconform(schemas, [deployment]).stdout
