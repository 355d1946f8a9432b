"""Finding the control plane's programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.control_plane.assets import PROGRAMS, Assets, AssetsError, find_assets
from hack.control_plane.cache import cache_root, publish
from hack.control_plane.pins import binaries_key, definitions_key

if TYPE_CHECKING:
    from pathlib import Path


def programs(folder: Path, *names: str, mode: int = 0o755) -> Path:
    """A folder with executable files."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("")
        (folder / name).chmod(mode)
    return folder


def cached(tmp_path: Path, *keys: str) -> None:
    """The cache of a provisioned machine."""
    root = cache_root({"HOME": str(tmp_path)})
    root.mkdir(parents=True)
    for key in keys:
        publish(programs(tmp_path / "out", *PROGRAMS), root / key)


class TestCache:
    def test_both_folders_are_found(self, tmp_path: Path) -> None:
        cached(tmp_path, binaries_key(), definitions_key())
        root = cache_root({"HOME": str(tmp_path)})
        assert find_assets({"HOME": str(tmp_path)}) == Assets(root / binaries_key(), root / definitions_key())

    @pytest.mark.parametrize("keys", [(), ("binaries",), ("definitions",)], ids=["none", "programs", "definitions"])
    def test_one_folder_is_not_enough(self, tmp_path: Path, keys: tuple[str, ...]) -> None:
        cached(tmp_path, *({"binaries": binaries_key, "definitions": definitions_key}[key]() for key in keys))
        with pytest.raises(AssetsError, match="`make real-kube` builds it, once"):
            find_assets({"HOME": str(tmp_path)})

    def test_a_folder_of_other_versions_is_not_taken(self, tmp_path: Path) -> None:
        cached(tmp_path, "kubernetes-v1.34.0", definitions_key())
        with pytest.raises(AssetsError):
            find_assets({"HOME": str(tmp_path)})


class TestVariable:
    def test_it_wins(self, tmp_path: Path) -> None:
        cached(tmp_path, binaries_key(), definitions_key())
        folder = programs(tmp_path / "mine", *PROGRAMS)
        found = find_assets({"HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(folder)})
        assert (found.folder, found.crds.name) == (folder, definitions_key())

    def test_empty_it_means_nothing(self, tmp_path: Path) -> None:
        cached(tmp_path, binaries_key(), definitions_key())
        assert find_assets({"HOME": str(tmp_path), "KUBEBUILDER_ASSETS": ""}).folder.name == binaries_key()

    def test_definitions_may_be_absent(self, tmp_path: Path) -> None:
        folder = programs(tmp_path / "mine", *PROGRAMS)
        assert not find_assets({"HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(folder)}).crds.exists()

    @pytest.mark.parametrize(
        ("names", "said"),
        [
            ((), "no etcd, no kube-apiserver, no kube-controller-manager, no kubectl"),
            (
                ("etcd", "kube-apiserver", "kubectl"),
                "no kube-controller-manager that can be started .envtest brings none.",
            ),
            (("kube-apiserver", "kube-controller-manager", "kubectl"), "no etcd that can be started: put it there"),
        ],
        ids=["nothing", "envtest's", "no store"],
    )
    def test_what_is_missing_is_named(self, tmp_path: Path, names: tuple[str, ...], said: str) -> None:
        folder = programs(tmp_path / "mine", *names)
        with pytest.raises(AssetsError, match=said):
            find_assets({"HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(folder)})

    def test_files_that_cannot_be_started_do_not_count(self, tmp_path: Path) -> None:
        folder = programs(tmp_path / "mine", *PROGRAMS, mode=0o644)
        with pytest.raises(AssetsError, match="no kubectl"):
            find_assets({"HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(folder)})


def test_each_program_has_its_path(tmp_path: Path) -> None:
    assets = Assets(tmp_path, tmp_path)
    paths = [assets.etcd, assets.kube_apiserver, assets.kube_controller_manager, assets.kubectl]
    assert [path.name for path in paths] == list(PROGRAMS)
