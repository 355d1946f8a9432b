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


@pytest.mark.parametrize("variables", [{}, {"KUBEBUILDER_ASSETS": ""}], ids=["unset", "empty"])
def test_programs_and_crds_are_found_in_the_cache(tmp_path: Path, cached: Assets, variables: dict[str, str]) -> None:
    assert find_assets({"XDG_CACHE_HOME": str(tmp_path), **variables}) == cached
    assert cached.folder.is_relative_to(tmp_path / "harvester-upgrade-manager")


@pytest.mark.parametrize("missing", ["folder", "crds"])
def test_programs_without_crds_or_the_reverse_are_not_enough(tmp_path: Path, cached: Assets, missing: str) -> None:
    getattr(cached, missing).rename(tmp_path / "elsewhere")
    with pytest.raises(AssetsError, match="not built: run `make real-kube`"):
        find_assets({"XDG_CACHE_HOME": str(tmp_path)})


def test_the_variable_overrides_the_cache_and_crds_may_be_missing(tmp_path: Path) -> None:
    folder = programs(tmp_path / "mine", *PROGRAMS)
    found = find_assets({"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(folder)})
    assert found.folder == folder
    assert not found.crds.exists()


@pytest.mark.parametrize(
    ("names", "mode", "missing"),
    [
        ((), 0o755, "etcd, kube-apiserver, kube-controller-manager, kubectl"),
        (("etcd", "kube-apiserver", "kubectl"), 0o755, "kube-controller-manager"),
        (PROGRAMS, 0o644, "etcd, kube-apiserver, kube-controller-manager, kubectl"),
    ],
    ids=["an empty folder", "envtest's programs", "files that cannot be executed"],
)
def test_missing_programs_are_named(tmp_path: Path, names: tuple[str, ...], mode: int, missing: str) -> None:
    folder = programs(tmp_path / "mine", *names, mode=mode)
    with pytest.raises(AssetsError, match=rf"lacks {missing}: .* unset KUBEBUILDER_ASSETS and run `make real-kube`$"):
        find_assets({"KUBEBUILDER_ASSETS": str(folder)})
