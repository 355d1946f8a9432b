"""Versions and cache keys."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from hack.control_plane import pins

if TYPE_CHECKING:
    from pathlib import Path


def go_mod(folder: Path, text: str) -> Path:
    (folder / "thing").mkdir()
    (folder / "thing" / "go.mod").write_text(text)
    return folder


class TestTree:
    def test_each_go_mod_requires_one_module_alone(self) -> None:
        assert pins.required("kubernetes").path == "k8s.io/kubernetes"
        assert pins.required("etcd").path == "go.etcd.io/etcd/server/v3"

    def test_each_pinned_sum_vouches_for_what_is_required(self) -> None:
        for name in ("kubernetes", "etcd"):
            module = pins.required(name)
            lines = (pins.GO_FOLDER / name / "go.sum").read_text().splitlines()
            assert any(line.startswith(f"{module.path} {module.version} h1:") for line in lines)

    def test_the_modules_with_definitions_have_their_sums(self) -> None:
        assert all(module.sum.startswith("h1:") for module in pins.downloaded())

    def test_the_keys_name_the_versions_and_the_machine(self) -> None:
        key = pins.binaries_key()
        assert key.startswith(f"kubernetes-{pins.required('kubernetes').version}-etcd-{pins.required('etcd').version}-")
        assert "-".join(pins.machine()) in key
        assert pins.definitions_key().startswith("crds-")


class TestReading:
    def test_the_version_is_one_line(self, tmp_path: Path) -> None:
        folder = go_mod(tmp_path, "module m\n\ngo 1.26.0\n\nrequire a.io/b/v3 v3.6.16\n")
        assert pins.required("thing", folder=folder) == pins.Module("a.io/b/v3", "v3.6.16")
        assert pins.language("thing", folder=folder) == (1, 26, 0)

    def test_a_file_without_it_is_named(self, tmp_path: Path) -> None:
        folder = go_mod(tmp_path, "module m\n")
        for read in (pins.required, pins.language):
            with pytest.raises(ValueError, match=r"thing/go.mod has no line"):
                read("thing", folder=folder)

    @pytest.mark.parametrize(
        ("system", "architecture", "expected"),
        [
            ("Linux", "x86_64", ("linux", "amd64")),
            ("Linux", "aarch64", ("linux", "arm64")),
            ("Darwin", "arm64", ("darwin", "arm64")),
            ("Linux", "riscv64", ("linux", "riscv64")),
        ],
    )
    def test_a_machine_is_named_as_go_does(
        self, monkeypatch: pytest.MonkeyPatch, system: str, architecture: str, expected: tuple[str, str]
    ) -> None:
        monkeypatch.setattr(platform, "system", lambda: system)
        monkeypatch.setattr(platform, "machine", lambda: architecture)
        assert pins.machine() == expected
