"""The cache folder: whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.control_plane.cache import MANIFEST, cache_root, is_whole, make_root, publish, sweep, workplace
from hack.control_plane.errors import AssetsError, ProvisionError


def filled(out: Path) -> Path:
    """A folder as a build fills it."""
    (out / "below").mkdir(parents=True)
    (out / "etcd").write_text("program")
    (out / "below" / "file").write_text("content")
    return out


class TestRoot:
    @pytest.mark.parametrize(
        ("environ", "expected"),
        [
            ({"HOME": "/home/me"}, "/home/me/.cache"),
            ({"HOME": "/home/me", "XDG_CACHE_HOME": "/big"}, "/big"),
            ({"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache"),
            ({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}, "/home/me/.cache"),
            ({"XDG_CACHE_HOME": "/big"}, "/big"),
        ],
    )
    def test_it_follows_the_base_directory_specification(self, environ: dict[str, str], expected: str) -> None:
        assert cache_root(environ) == Path(expected) / "harvester-upgrade-manager" / "kube"

    @pytest.mark.parametrize("environ", [{}, {"HOME": ""}], ids=["unset", "empty"])
    def test_without_a_home_it_says_so(self, environ: dict[str, str]) -> None:
        with pytest.raises(AssetsError, match="HOME is not set"):
            cache_root(environ)

    def test_one_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ProvisionError, match=f"{tmp_path}/file/kube cannot be written .Not a directory"):
            make_root(tmp_path / "file" / "kube")


class TestWholeness:
    def test_a_published_folder_is_whole(self, tmp_path: Path) -> None:
        publish(filled(tmp_path / "out"), tmp_path / "folder")
        assert is_whole(tmp_path / "folder")
        assert not (tmp_path / "out").exists()

    def test_it_takes_the_place_of_one_that_is_not(self, tmp_path: Path) -> None:
        filled(tmp_path / "folder")
        (tmp_path / "folder" / "stale").write_text("")
        publish(filled(tmp_path / "out"), tmp_path / "folder")
        assert not (tmp_path / "folder" / "stale").exists()

    @pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"etcd": 7000}', '{"gone": 7}'])
    def test_a_bad_list_means_that_it_is_not(self, tmp_path: Path, text: str) -> None:
        publish(filled(tmp_path / "out"), tmp_path / "folder")
        (tmp_path / "folder" / MANIFEST).write_text(text)
        assert not is_whole(tmp_path / "folder")

    @pytest.mark.parametrize("name", ["etcd", "below/file", MANIFEST])
    def test_a_lost_or_shortened_file_means_that_it_is_not(self, tmp_path: Path, name: str) -> None:
        publish(filled(tmp_path / "out"), tmp_path / "folder")
        (tmp_path / "folder" / name).write_text("")
        assert not is_whole(tmp_path / "folder")
        (tmp_path / "folder" / name).unlink()
        assert not is_whole(tmp_path / "folder")

    def test_one_that_is_not_there_is_not(self, tmp_path: Path) -> None:
        assert not is_whole(tmp_path / "folder")


class TestWorkplace:
    def test_it_goes_with_its_work(self, tmp_path: Path) -> None:
        with workplace(tmp_path) as work:
            filled(work / "out" / "more")
        assert list(tmp_path.iterdir()) == []

    def test_one_whose_process_was_killed_is_swept_up(self, tmp_path: Path) -> None:
        abandoned = workplace(tmp_path)
        filled(abandoned.__enter__() / "out" / "more")
        publish(filled(tmp_path / "out"), tmp_path / "folder")
        sweep(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]
