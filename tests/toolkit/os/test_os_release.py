from __future__ import annotations

from pathlib import Path

import pytest

from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.os.os_release import os_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param('NAME="SLE Micro"\nPRETTY_NAME="Harvester v1.8.0"\n', "Harvester v1.8.0", id="quoted"),
        pytest.param("PRETTY_NAME=Harvester\\ v1.8.0", "Harvester v1.8.0", id="escaped"),
        pytest.param("PRETTY_NAME='Harvester v1.8.0'", "Harvester v1.8.0", id="single-quotes"),
        pytest.param('PRETTY_NAME="Harvester v1.8.0', '"Harvester v1.8.0', id="open-quote"),
        pytest.param('NAME="SLE Micro"\n', "", id="without-a-name"),
    ],
)
def test_name_is_read_as_a_shell_reads_it(tmp_path: Path, text: str, name: str) -> None:
    tree = HostTree(tmp_path)
    tree.write("/usr/lib/os-release", text)
    tree.make_directory("/etc")
    (tmp_path / "etc/os-release").symlink_to("../usr/lib/os-release")
    assert os_name(tree) == name


def test_tree_without_the_file_has_no_name(tmp_path: Path) -> None:
    assert os_name(HostTree(tmp_path)) == ""
