"""The programs of Jobs: in the images alone, apart from the commands for users."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from upgrade_manager.cli.options import command_line
from upgrade_manager.cli.toolkit_options import JOB_COMMANDS

ROOT = Path(__file__).parents[2]
#: By the program that Jobs start: arguments, and the usage error.
PROGRAMS = {
    "upgrade-toolkit": (["restore-vm"], "upgrade-manager restore-vm: the following arguments are required"),
    "upgrade_node.sh": ([], "upgrade-manager node: the following arguments are required: type"),
    "upgrade_manifests.sh": (["x"], "upgrade-manager cluster-upgrade: unrecognized arguments: x"),
}


def test_workstation_has_the_programs_for_users_alone() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert {*scripts} == {"upgrade-manager", "kubectl-upgradeplan", "kubectl_complete-upgradeplan"}


def test_help_lists_the_commands_of_jobs_apart() -> None:
    parser, commands = command_line()
    listed = re.findall(r"^    ([a-z-]+)\b", parser.format_help(), re.MULTILINE)
    assert [*listed, *JOB_COMMANDS] == [*commands]
    assert parser.epilog == f"Jobs in the toolkit image start: {', '.join(JOB_COMMANDS)}."


@pytest.mark.parametrize("name", PROGRAMS)
def test_image_has_the_programs_of_jobs(tmp_path: Path, name: str) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    subprocess.run([str(ROOT / "hack/toolkit_programs.sh"), str(tmp_path)], check=True)  # noqa: S603  # our own script
    assert {path.name for path in tmp_path.iterdir()} == {"python", *PROGRAMS}
    arguments, message = PROGRAMS[name]
    ended = subprocess.run(  # noqa: S603  # the same
        [str(tmp_path / name), *arguments],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert message in ended.stderr


def test_dockerfile_writes_them_into_both_images() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert dockerfile.index("/toolkit_programs.sh /opt/venv/bin") < dockerfile.index("/image_root.sh /image")
    assert "!hack/toolkit_programs.sh" in (ROOT / ".dockerignore").read_text()
