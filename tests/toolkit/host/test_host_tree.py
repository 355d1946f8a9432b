from __future__ import annotations

import os
from pathlib import Path

import pytest

from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.run.errors import StepFailed


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    root = tmp_path / "host"
    (root / "etc/real").mkdir(parents=True)
    (root / "etc/real/file").write_text("content")
    return HostTree(root)


def _link(tree: HostTree, name: str, target: str) -> None:
    (tree.root / name).symlink_to(target)


@pytest.mark.parametrize(
    ("links", "path", "found"),
    [
        pytest.param({}, "/etc/real/file", "etc/real/file", id="plain"),
        pytest.param({}, "/etc/../../../etc/real", "etc/real", id="above-the-root-is-the-root"),
        pytest.param({"var": "/etc"}, "/var/real/file", "etc/real/file", id="absolute-link"),
        pytest.param({"etc/alias": "real"}, "/etc/alias/file", "etc/real/file", id="relative-link"),
        pytest.param({"etc/out": "../../../etc/real"}, "/etc/out/file", "etc/real/file", id="link-out-of-the-root"),
        pytest.param({"a": "b", "b": "/etc"}, "/a/real", "etc/real", id="link-to-a-link"),
        pytest.param({}, "/etc/new/file", "etc/new/file", id="absent"),
    ],
)
def test_links_are_followed_as_the_host_follows_them(
    tree: HostTree, links: dict[str, str], path: str, found: str
) -> None:
    for name, target in links.items():
        _link(tree, name, target)
    assert tree.path(path) == tree.root / found


def test_loop_of_links_is_an_error(tree: HostTree) -> None:
    _link(tree, "a", "b")
    _link(tree, "b", "a")
    with pytest.raises(StepFailed, match=r"^/a/file on the host: too many symbolic links$"):
        tree.path("/a/file")


def test_written_file_is_complete_and_leaves_no_other(tree: HostTree) -> None:
    tree.write("/etc/rancher/rke2/config.yaml", "max-pods: 200\n", mode=0o600)
    path = tree.root / "etc/rancher/rke2/config.yaml"
    assert path.read_text() == "max-pods: 200\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_failed_write_keeps_the_old_content(tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tree.write("/etc/real/file", "new")
    assert tree.read("/etc/real/file") == "content"


@pytest.mark.parametrize(
    ("path", "text"),
    [("/etc/real/file", "content"), ("/etc/real/absent", None), ("/etc/real/file/below", None)],
)
def test_read_returns_none_without_the_file(tree: HostTree, path: str, text: str | None) -> None:
    assert tree.read(path) == text


@pytest.mark.parametrize("path", ["/etc/real/file", "/etc/real", "/etc/absent", "/absent/file"])
def test_removed_path_does_not_exist(tree: HostTree, path: str) -> None:
    tree.remove(path)
    assert not tree.exists(path)


def test_remove_takes_a_link_and_not_its_target(tree: HostTree) -> None:
    _link(tree, "etc/alias", "real")
    tree.remove("/etc/alias")
    assert not (tree.root / "etc/alias").is_symlink()
    assert tree.exists("/etc/real/file")
