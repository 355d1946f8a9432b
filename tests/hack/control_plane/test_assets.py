"""Finding the control plane's programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.control_plane.assets import PROGRAMS, Assets, AssetsError, expected_assets, find_assets

if TYPE_CHECKING:
    from pathlib import Path


def programs(folder: Path, *names: str, mode: int = 0o755) -> Path:
    """Make a folder with executable files."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=mode)
    return folder


@pytest.fixture
def cached(tmp_path: Path) -> Assets:
    """Return the cache of a provisioned machine."""
    assets = expected_assets({"XDG_CACHE_HOME": str(tmp_path)})
    programs(assets.folder, *PROGRAMS)
    assets.crds.mkdir()
    return assets


def test_programs_and_crds_are_found_in_the_cache(tmp_path: Path, cached: Assets) -> None:
    assert find_assets({"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": ""}) == cached
    assert cached.folder.is_relative_to(tmp_path / "harvester-upgrade-manager")


@pytest.mark.parametrize("missing", ["folder", "crds"])
def test_incomplete_cache_is_an_error(tmp_path: Path, cached: Assets, missing: str) -> None:
    getattr(cached, missing).rename(tmp_path / "elsewhere")
    with pytest.raises(AssetsError, match="not built: run `make real-kube`"):
        find_assets({"XDG_CACHE_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("mode", "missing"), [(0o755, "kube-controller-manager, kube-scheduler, .*"), (0o644, "etcd, .*")]
)
def test_missing_programs_are_named(tmp_path: Path, mode: int, missing: str) -> None:
    folder = programs(tmp_path / "mine", "etcd", "kube-apiserver", "kubectl", mode=mode)
    with pytest.raises(AssetsError, match=rf"lacks {missing}: .* unset KUBEBUILDER_ASSETS and run `make real-kube`$"):
        find_assets({"KUBEBUILDER_ASSETS": str(folder)})
