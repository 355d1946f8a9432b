"""Other projects' CustomResourceDefinitions, out of their modules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hack.control_plane.definitions import extract_definitions, servable
from hack.control_plane.errors import ProvisionError
from hack.control_plane.progress import Progress
from hack.control_plane.toolchain import Go
from tests.support.fake_go import FakeMachine

if TYPE_CHECKING:
    from pathlib import Path

    from upgrade_manager.kube.objects import Object


def go(machine: FakeMachine) -> Go:
    progress = Progress(write=lambda _: None, monotonic=lambda: 0.0)
    return Go(program=machine.home / "go", environ={}, runner=machine, progress=progress)


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(home=tmp_path, gos={str(tmp_path / "go"): "go1.26"})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / "out").mkdir(parents=True)
    return tmp_path / "work"


class TestExtraction:
    def test_each_kind_gets_a_file(self, machine: FakeMachine, work: Path) -> None:
        extract_definitions(go(machine), work)
        assert {path.name for path in (work / "out").iterdir()} == {
            "machines.cluster.x-k8s.io.json",
            "settings.harvesterhci.io.json",
            "versions.harvesterhci.io.json",
            "virtualmachineinstances.kubevirt.io.json",
            "virtualmachines.kubevirt.io.json",
            "volumes.longhorn.io.json",
        }

    def test_what_a_server_on_its_own_could_not_serve_is_left_out(self, machine: FakeMachine, work: Path) -> None:
        extract_definitions(go(machine), work)
        found = json.loads((work / "out" / "volumes.longhorn.io.json").read_text())
        assert found == {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "volumes.longhorn.io"},
            "spec": {
                "group": "longhorn.io",
                "names": {"kind": "Thing", "plural": "volumes"},
                "scope": "Namespaced",
                "versions": [
                    {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                ],
            },
        }

    def test_a_module_that_keeps_them_elsewhere_now_is_named(
        self, machine: FakeMachine, work: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tests.support.fake_go.definition", lambda _: "kind: ConfigMap\n")
        with pytest.raises(ProvisionError, match=r"github\.com/harvester/harvester has no definitions"):
            extract_definitions(go(machine), work)


def test_a_stored_version_that_was_not_served_any_more_is() -> None:
    version: Object = {"name": "v1", "served": False, "storage": True}
    spec: Object = {"group": "a.io", "versions": [version]}
    found = servable({"apiVersion": "v1", "kind": "CRD", "metadata": {"name": "a", "labels": {}}, "spec": spec})
    assert found["spec"]["versions"] == [{"name": "v1", "served": True, "storage": True}]
