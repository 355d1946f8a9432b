"""KubeVirt's definitions: its schemas in our frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.cluster.foreign import foreign_crds
from hack.control_plane.kubevirt import kubevirt_definitions

if TYPE_CHECKING:
    from pathlib import Path

    from upgrade_manager.kube.objects import Object

KINDS = ("virtualmachine", "virtualmachineinstance", "virtualmachineinstancemigration", "kubevirt")
OURS = {crd["metadata"]["name"]: crd for crd in foreign_crds() if crd["spec"]["group"] == "kubevirt.io"}


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Object]:
    """What is made of a module with a schema for each kind, and for one that nobody here needs."""
    file = tmp_path / "pkg/virt-operator/resource/generate/components/validations_generated.go"
    file.parent.mkdir(parents=True)
    schema = "openAPIV3Schema:\n  description: |-\n    words\n  properties:\n    spec: {type: object}\n"
    entries = "".join(f'\t"{kind}": `{schema}`,\n' for kind in (*KINDS, "virtualmachineclone"))
    file.write_text(f"package components\n\nvar CRDsValidation map[string]string = map[string]string{{\n{entries}}}\n")
    return {crd["metadata"]["name"]: crd for crd in kubevirt_definitions(tmp_path)}


class TestDefinitions:
    def test_the_kinds_of_the_simulated_cluster_are_made(self, found: dict[str, Object]) -> None:
        assert set(found) == set(OURS)

    @pytest.mark.parametrize("name", OURS)
    def test_the_frame_is_that_of_ours(self, found: dict[str, Object], name: str) -> None:
        """Both describe the same API; the real one has more columns and a category."""
        theirs, ours = found[name]["spec"], OURS[name]["spec"]
        assert {key: theirs["names"][key] for key in ours["names"]} == ours["names"]
        assert theirs["scope"] == ours["scope"]
        assert theirs["versions"][0].get("subresources") == ours["versions"][0].get("subresources")
        assert theirs["versions"][0]["name"] == ours["versions"][0]["name"]

    def test_the_schema_is_the_modules(self, found: dict[str, Object]) -> None:
        schema = found["virtualmachines.kubevirt.io"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert schema["properties"] == {"spec": {"type": "object"}}
