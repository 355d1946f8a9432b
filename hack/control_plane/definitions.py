"""Other projects' CustomResourceDefinitions, read from their Go modules into JSON files, one for each kind.

JSON, because YAML of that size takes seconds to parse and the tests read it again and again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hack.control_plane.charts import definitions_in
from hack.control_plane.errors import ProvisionError
from hack.control_plane.kubevirt import kubevirt_definitions
from hack.control_plane.modules import download
from hack.control_plane.pins import GO_FOLDER, downloaded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.control_plane.toolchain import Go
    from upgrade_manager.kube.objects import Object

#: Where modules keep their definitions as YAML, by module.
_PLACES = {
    "github.com/harvester/harvester": "deploy/charts/harvester-crd/templates/*.yaml",
    "github.com/longhorn/longhorn-manager": "k8s/crds.yaml",
    "sigs.k8s.io/cluster-api": "config/crd/bases/cluster.x-k8s.io_*.yaml",
}
_KUBEVIRT = "kubevirt.io/kubevirt"
#: How often `extract_definitions` tells of a step.
STEPS = 1


def extract_definitions(go: Go, work: Path) -> None:
    """Put a file NAME.json for each definition into the folder `out` of `work`."""
    modules = downloaded()
    names = ", ".join(f"{module.path.rsplit('/', 1)[1]} {module.version}" for module in modules)
    go.progress.step(f"fetching the CustomResourceDefinitions of {names}")
    sums = (GO_FOLDER / "crds" / "go.sum").read_text(encoding="utf-8")
    found = download(go, modules, sums=sums, work=work)
    for path, module in found.items():
        definitions = list(_definitions(path, module.folder))
        if not definitions:
            raise ProvisionError(
                f"{path} has no definitions where earlier versions had them: see hack.control_plane.definitions"
            )
        for definition in definitions:
            target = work / "out" / f"{definition['metadata']['name']}.json"
            target.write_text(json.dumps(servable(definition), separators=(",", ":")), encoding="utf-8")


def servable(definition: Object) -> Object:
    """The definition as a control plane without any other part can serve it.

    Without conversion, since no webhook runs, and therefore with the stored version alone: of another version, objects
    would be served unconverted. Without the labels and the status that a chart or a generator gave it.
    """
    spec = definition["spec"]
    versions = [version for version in spec["versions"] if version["storage"]]
    stored = {key: value for key, value in spec.items() if key not in {"conversion", "preserveUnknownFields"}}
    return {
        "apiVersion": definition["apiVersion"],
        "kind": definition["kind"],
        "metadata": {"name": definition["metadata"]["name"]},
        "spec": {**stored, "versions": [{**version, "served": True} for version in versions]},
    }


def _definitions(path: str, folder: Path) -> Iterator[Object]:
    if path == _KUBEVIRT:
        yield from kubevirt_definitions(folder)
    else:
        yield from definitions_in(sorted(folder.glob(_PLACES[path])))
