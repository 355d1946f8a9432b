"""hack/image.sh with programs that record how they are called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "hack/image.sh"
#: Of the machine, without its container tools.
NEEDED = ("sh", "dirname")


def run(folder: Path, *arguments: str, tools: str, **environment: str) -> tuple[int, list[str], str]:
    """Run the script where only these tools exist, and return its status, the tools' calls and the errors."""
    for name in NEEDED:
        (folder / name).symlink_to(shutil.which(name) or name)
    for tool in tools.split():
        (folder / tool).write_text(f'#!/bin/sh\necho "{tool} $*" >>"{folder}/calls"\n')
        (folder / tool).chmod(0o755)
    ended = subprocess.run(  # noqa: S603  # our own script
        [str(SCRIPT), *arguments],
        env={"PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    calls = folder / "calls"
    return ended.returncode, calls.read_text().splitlines() if calls.exists() else [], ended.stderr


@pytest.mark.parametrize(
    ("tools", "action", "calls"),
    [
        pytest.param("podman docker", "build", ["docker build --target manager --tag r/a:v1 ."], id="docker first"),
        pytest.param(
            "buildah podman", "build", ["podman build --target manager --tag r/a:v1 ."], id="podman before buildah"
        ),
        pytest.param("buildah", "push", ["buildah push r/a:v1"], id="buildah alone"),
        pytest.param(
            "docker",
            "buildx",
            ["docker buildx build --target manager --platform linux/amd64,linux/arm64 --push --tag r/a:v1 ."],
            id="platforms with docker",
        ),
        pytest.param(
            "buildah",
            "buildx",
            [
                "buildah build --target manager --platform linux/amd64,linux/arm64 --manifest r/a:v1 .",
                "buildah manifest push --all r/a:v1 docker://r/a:v1",
            ],
            id="platforms with buildah",
        ),
    ],
)
def test_first_tool_builds_and_pushes(tmp_path: Path, tools: str, action: str, calls: list[str]) -> None:
    assert run(tmp_path, action, "r/a:v1", tools=tools) == (0, calls, "")


def test_named_tool_and_target_are_taken(tmp_path: Path) -> None:
    found = run(tmp_path, "build", "a:v1", tools="docker nerdctl", CONTAINER_TOOL="nerdctl", TARGET="toolkit")
    assert found == (0, ["nerdctl build --target toolkit --tag a:v1 ."], "")


def test_missing_tools_are_one_line(tmp_path: Path) -> None:
    status, calls, error = run(tmp_path, "build", "a:v1", tools="")
    assert (status, calls, error.count("\n")) == (1, [], 1)
    assert error.startswith("image: docker, podman or buildah is needed, and is not on the PATH. Install one")
