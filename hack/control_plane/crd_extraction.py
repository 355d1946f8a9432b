"""Read other projects' CustomResourceDefinitions out of their Go modules into JSON files, one for each kind.

JSON, because YAML of that size takes seconds to parse.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING

import yaml

from hack.crds.foreign import foreign_crds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from upgrade_manager.kube.objects import Object

#: The files with definitions, by module.
_YAML_FILES = {
    "github.com/fluxcd/kustomize-controller": "config/crd/bases/*.yaml",
    "github.com/harvester/harvester": "deploy/charts/harvester-crd/templates/*.yaml",
    "github.com/longhorn/longhorn-manager": "k8s/crds.yaml",
    "sigs.k8s.io/cluster-api": "config/crd/bases/cluster.x-k8s.io_*.yaml",
}
#: A chart's template action; these charts only fill in labels.
_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
#: KubeVirt's operator builds its definitions at run time; only their schemas are text, by the kind's singular.
_KUBEVIRT_SCHEMAS = "pkg/virt-operator/resource/generate/components/validations_generated.go"
_KUBEVIRT_SCHEMA = re.compile(r'^\t"(\w+)": `(.*?)`,$', re.DOTALL | re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def extract_crds(module: str, folder: Path, out: Path) -> None:
    """Write NAME.json into `out` for each definition in a module's folder. Raises ValueError when it has none."""
    pattern = _YAML_FILES.get(module)
    crds = list(_from_yaml(sorted(folder.glob(pattern))) if pattern else _from_kubevirt(folder))
    if not crds:
        raise ValueError(f"{module} has no CustomResourceDefinitions in {pattern or _KUBEVIRT_SCHEMAS}")
    for crd in crds:
        (out / f"{crd['metadata']['name']}.json").write_text(json.dumps(_servable(crd)), encoding="utf-8")


def _from_yaml(files: list[Path]) -> Iterator[Object]:
    for file in files:
        for document in yaml.load_all(_ACTION.sub("", file.read_text(encoding="utf-8")), Loader=_LOADER):
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                yield document


def _from_kubevirt(folder: Path) -> Iterator[Object]:
    """Yield the definitions in hack/crds with KubeVirt's own schemas."""
    small = deepcopy(foreign_crds())
    crds = {crd["spec"]["names"]["singular"]: crd for crd in small if crd["spec"]["group"] == "kubevirt.io"}
    for singular, schema in _KUBEVIRT_SCHEMA.findall((folder / _KUBEVIRT_SCHEMAS).read_text(encoding="utf-8")):
        if singular in crds:
            crds[singular]["spec"]["versions"][0]["schema"] = next(yaml.load_all(schema, Loader=_LOADER))
            yield crds[singular]


def _servable(crd: Object) -> Object:
    """Return the definition with its stored version alone: without its conversion webhook, others cannot be served."""
    spec = {key: value for key, value in crd["spec"].items() if key not in {"conversion", "preserveUnknownFields"}}
    spec["versions"] = [{**version, "served": True} for version in spec["versions"] if version["storage"]]
    return {
        "apiVersion": crd["apiVersion"],
        "kind": crd["kind"],
        "metadata": {"name": crd["metadata"]["name"]},
        "spec": spec,
    }
