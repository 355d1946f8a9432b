from __future__ import annotations

import shutil
import subprocess
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.pipeline.imagelists import compress
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.sucplan import (
    LIST_KEY,
    LIST_PATH,
    REMOVE,
    PlanSettings,
    image_cleanup_plan,
    image_list_secret,
    image_preload_plan,
)
from upgrade_manager.resources.tolerations import tolerations
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from pathlib import Path

OWNER = Owner(name="up", uid="0a1b2c3d-4e5f")
SETTINGS = PlanSettings(image=ToolkitImage(repository="example/toolkit", tag="v1.7.0"), service_account="planner")
PRELOAD = image_preload_plan(OWNER, SETTINGS, concurrency=3)
CLEANUP = image_cleanup_plan(OWNER, SETTINGS)


@pytest.mark.parametrize("plan", [PRELOAD, CLEANUP], ids=["preload", "cleanup"])
class TestEveryPlan:
    def test_it_has_a_deadline_that_old_and_new_controllers_read_alike(self, plan: dict[str, Any]) -> None:
        assert plan["spec"]["jobActiveDeadlineSecs"] == 21600

    def test_it_selects_the_managed_nodes_and_tolerates_an_upgrade(self, plan: dict[str, Any]) -> None:
        assert plan["spec"]["nodeSelector"] == {"matchLabels": {"harvesterhci.io/managed": "true"}}
        assert plan["spec"]["tolerations"] == tolerations()

    def test_its_image_has_no_tag_because_its_version_is_the_tag(self, plan: dict[str, Any]) -> None:
        assert plan["spec"]["upgrade"]["image"] == "example/toolkit"
        assert plan["spec"]["version"] == "v1.7.0"

    def test_it_learns_the_plan_under_the_controllers_spelling_of_env(self, plan: dict[str, Any]) -> None:
        assert plan["spec"]["upgrade"]["envs"] == [{"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"}]
        assert plan["spec"]["serviceAccountName"] == "planner"

    def test_its_labels_reach_the_jobs(self, plan: dict[str, Any]) -> None:
        assert [key for key in plan["metadata"]["labels"] if "cattle.io/" in key] == []


def test_preload_runs_the_nodes_script_on_as_many_nodes_as_asked() -> None:
    assert PRELOAD["metadata"]["name"] == "up-image-preload"
    assert PRELOAD["spec"]["concurrency"] == 3
    assert PRELOAD["spec"]["upgrade"]["command"] == ["upgrade_node.sh"]
    assert PRELOAD["spec"]["upgrade"]["args"] == ["prepare"]


def test_cleanup_takes_one_node_after_the_other() -> None:
    assert CLEANUP["metadata"]["name"] == "up-image-cleanup"
    assert CLEANUP["spec"]["concurrency"] == 1


def test_cleanup_mounts_the_list_that_the_secret_holds() -> None:
    secret = image_list_secret(OWNER, compressed="eA==")
    (mounted,) = CLEANUP["spec"]["secrets"]
    assert (mounted["name"], mounted["path"]) == (secret["metadata"]["name"], LIST_PATH)
    assert secret["data"] == {LIST_KEY: "eA=="}


def test_the_secret_of_a_namesake_has_another_name() -> None:
    other = image_list_secret(Owner(name="up", uid="ffffffff-0000"), compressed="")
    assert other["metadata"]["name"] != image_list_secret(OWNER, compressed="")["metadata"]["name"]


def test_a_plan_does_not_grow_with_its_list() -> None:
    assert len(str(CLEANUP)) < 4000


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_the_clean_up_passes_every_image_to_crictl_and_forgives_a_failure(tmp_path: Path, shell: str) -> None:
    """Its own script, with a crictl that refuses one image."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} here")
    images = [f"docker.io/rancher/x:{number}" for number in range(40)]
    (tmp_path / LIST_KEY).write_bytes(b64decode(compress(images)))
    crictl = tmp_path / "crictl"
    crictl.write_text(f'#!/bin/sh\n[ "$2" = docker.io/rancher/x:7 ] && exit 1\necho "$2" >> {tmp_path}/removed\n')
    crictl.chmod(0o755)
    script = REMOVE.replace(LIST_PATH, str(tmp_path)).replace("/var/lib/rancher/rke2/bin/crictl", str(crictl))
    script = script.replace("chroot /host ", "")
    done = subprocess.run([found, "-c", script], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    assert (done.returncode, done.stdout) == (0, "kept docker.io/rancher/x:7\n")
    assert len((tmp_path / "removed").read_text().splitlines()) == 39
