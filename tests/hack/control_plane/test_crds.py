"""Which definitions a cluster on the real API server gets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hack.cluster.foreign import foreign_crds
from hack.control_plane.assets import Assets
from hack.control_plane.cache import publish
from hack.control_plane.crds import real_crds
from hack.control_plane.errors import AssetsError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "settings.harvesterhci.io"


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    """With one real definition, and one of a kind that no cluster here has."""
    (tmp_path / "out").mkdir()
    for name in (NAME, "keypairs.harvesterhci.io"):
        text = json.dumps({"metadata": {"name": name}, "spec": {"real": True}})
        (tmp_path / "out" / f"{name}.json").write_text(text)
    publish(tmp_path / "out", tmp_path / "crds")
    return Assets(tmp_path, tmp_path / "crds")


class TestRealDefinitions:
    def test_a_kind_has_its_projects_own_or_ours(self, assets: Assets) -> None:
        found = {crd["metadata"]["name"]: crd for crd in real_crds(assets)}
        ours = {crd["metadata"]["name"]: crd for crd in foreign_crds()}
        assert found == {**ours, NAME: {"metadata": {"name": NAME}, "spec": {"real": True}}}

    def test_they_are_the_callers_own(self, assets: Assets) -> None:
        for crd in real_crds(assets):
            crd["spec"].clear()
        assert all(crd["spec"] for crd in real_crds(assets))

    def test_where_they_are_missing_the_remedy_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(AssetsError, match="`make real-kube` fetches them"):
            real_crds(Assets(tmp_path, tmp_path / "gone"))
