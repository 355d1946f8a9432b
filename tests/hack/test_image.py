"""hack/image.sh with programs that record how they are called."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from upgrade_manager import __version__

ROOT = Path(__file__).parents[2]
#: Of the machine, without its container tools.
NEEDED = ("sh", "dirname", "mkdir", "sed", "cat")
COMMIT = "c0ffee" + "0" * 34
DIGEST = f"sha256:{'a' * 64}"
GO_DIGEST = f"sha256:{'b' * 64}"
(PYTHON,) = re.findall(r"^ARG PYTHON=(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
(GO,) = re.findall(r"^ARG GO=(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
BASE, GO_BASE = f"docker.io/library/python:{PYTHON}-slim", f"docker.io/library/golang:{GO}"
MANAGER = f"--target manager --build-arg VERSION={__version__} --build-arg REVISION={COMMIT}"
PINNED = f"--build-arg BASE={BASE} --build-arg BASE_DIGEST={DIGEST}"
GO_PINNED = f"--build-arg GO_BASE={GO_BASE} --build-arg GO_DIGEST={GO_DIGEST} --build-arg SNAPSHOT=20260102T000000Z"
PLATFORMS = "--platform linux/amd64,linux/arm64"
#: A registry that knows both bases, or none.
TOOL = f"""#!/bin/sh
case "$*" in
    *inspect*python*) echo "${{FOUND-{DIGEST}}}" ;;
    *inspect*golang*) echo "${{FOUND-{GO_DIGEST}}}" ;;
    *) echo "$(basename $0) $*" >>"$CALLS" ;;
esac
"""
GIT = f"""#!/bin/sh
case "$1" in
    rev-parse) echo {COMMIT} ;;
    status) printf "$CHANGED" ;;
esac
"""


class Script:
    """The script in a separate tree, where only some tools exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "hack").mkdir()
        (folder / "upgrade_manager").mkdir()
        shutil.copy(ROOT / "hack/image.sh", folder / "hack")
        shutil.copy(ROOT / "Dockerfile", folder)
        shutil.copy(ROOT / "upgrade_manager/__init__.py", folder / "upgrade_manager")
        for name in (*NEEDED, "basename"):
            (folder / "bin" / name).symlink_to(shutil.which(name) or name)
        self.program("git", GIT)
        self.program("date", "#!/bin/sh\n[ $1 = -u ] && echo 20260102T000000Z\n")

    def program(self, name: str, text: str) -> None:
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def run(self, *arguments: str, tools: str, **environment: str) -> tuple[int, list[str], str]:
        """Return its status, the tools' calls and the errors."""
        for tool in tools.split():
            self.program(tool, TOOL)
        calls = self.folder / "calls"
        ended = subprocess.run(  # noqa: S603  # our own script
            [str(self.folder / "hack/image.sh"), *arguments],
            env={"PATH": str(self.folder / "bin"), "CALLS": str(calls), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, calls.read_text().splitlines() if calls.exists() else [], ended.stderr


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_release_pins_its_base_and_is_attested(script: Script) -> None:
    attested = "--sbom=true --provenance=mode=max --metadata-file build/manager.json"
    call = f"docker buildx build {MANAGER} {PINNED} {PLATFORMS} {attested} --push --tag r/a:v1 ."
    assert script.run("buildx", "r/a:v1", tools="docker") == (0, [call], "")
    assert (script.folder / "build/manager.env").read_text() == f"BASE={BASE} BASE_DIGEST={DIGEST}\n"


def test_release_by_buildah_says_that_nothing_is_attested(script: Script) -> None:
    status, calls, error = script.run("buildx", "r/a:v1", tools="buildah skopeo")
    build = f"buildah build {MANAGER} {PINNED} {PLATFORMS} --manifest r/a:v1 ."
    assert (status, calls) == (0, [build, "buildah manifest push --all r/a:v1 docker://r/a:v1"])
    assert (
        error == "image: buildah attests nothing. Attach build/sbom/manager.cdx.json of make sbom (docs/releasing.md)\n"
    )


def test_release_of_the_toolkit_pins_packages_and_go(script: Script) -> None:
    status, (call,), _ = script.run("buildx", "r/a:v1", tools="docker", TARGET="toolkit")
    assert status == 0
    assert f"{PINNED} {GO_PINNED} {PLATFORMS}" in call
    again = (script.folder / "build/toolkit.env").read_text().split()
    assert again == [
        *[f"BASE={BASE}", f"BASE_DIGEST={DIGEST}"],
        *[f"GO_BASE={GO_BASE}", f"GO_DIGEST={GO_DIGEST}", "SNAPSHOT=20260102T000000Z"],
    ]


def test_recorded_release_is_built_again_from_the_same(script: Script) -> None:
    recorded = {"BASE": "r/python:1", "BASE_DIGEST": "sha256:old", "GO_BASE": "r/go:1", "GO_DIGEST": "sha256:older"}
    recorded["SNAPSHOT"] = "20250101T000000Z"
    status, (call,), _ = script.run("buildx", "r/a:v1", tools="docker", TARGET="toolkit", **recorded)
    assert status == 0
    assert " ".join(f"--build-arg {name}={value}" for name, value in recorded.items()) in call


@pytest.mark.parametrize("tools", ["docker", "podman", "podman skopeo"])
def test_release_without_a_digest_is_not_built(script: Script, tools: str) -> None:
    status, calls, error = script.run("buildx", "r/a:v1", tools=tools, FOUND="")
    assert (status, calls) == (1, [])
    assert f"image: the digest of {BASE} is not known. Set BASE_DIGEST=sha256:…" in error
