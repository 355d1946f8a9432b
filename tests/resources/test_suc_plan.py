from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from upgrade_manager.api.names import label_value
from upgrade_manager.release.image_lists import pack
from upgrade_manager.resources.image_list import LIST_KEY, LIST_PATH, ImageList
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.suc_plan import (
    REMOVE,
    PlanSettings,
    image_cleanup_plan,
    image_of_jobs,
    image_preload_plan,
    survey_plan,
)
from upgrade_manager.resources.toolkit import ToolkitImage, tolerations

OWNER = Owner(name="up", uid="0a1b2c3d-4e5f")
SETTINGS = PlanSettings(image=ToolkitImage(repository="example/toolkit", tag="v1.7.0"), service_account="planner")
PRELOAD = image_preload_plan(OWNER, SETTINGS, concurrency=3)
SURVEY = survey_plan(OWNER, SETTINGS, concurrency=3, reports=True)
BARE_SURVEY = survey_plan(OWNER, SETTINGS, concurrency=3, reports=False)
CLEANUP = image_cleanup_plan(OWNER, SETTINGS, secrets=["one", "two"])


@pytest.mark.rule(
    "pipeline: ImagePreload runs upgrade_node.sh prepare on every managed node by a SUC Plan",
    "pipeline: ImageCleanup removes images from every node by a SUC Plan with concurrency 1",
    "workloads: Plans select nodes with the label managed=true",
    "workloads: Plans pass HARVESTER_UPGRADEPLAN_NAME",
    "workloads: Plan Jobs have a deadline of 21600 seconds",
    "workloads: a Plan's image has no tag, and its version is the tag",
    "workloads: all Plans have the tolerations",
)
@pytest.mark.parametrize(
    "plan", [PRELOAD, SURVEY, BARE_SURVEY, CLEANUP], ids=["preload", "survey", "bare survey", "cleanup"]
)
def test_fields_of_all_plans(plan: dict[str, Any]) -> None:
    spec = plan["spec"]
    assert spec["nodeSelector"] == {"matchLabels": {"harvesterhci.io/managed": "true"}}
    assert spec["tolerations"] == tolerations()
    assert spec["jobActiveDeadlineSecs"] == 21600
    assert (spec["upgrade"]["image"], spec["version"]) == ("example/toolkit", "v1.7.0")
    assert spec["upgrade"]["envs"][0] == {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"}
    assert len(spec["upgrade"]["envs"]) == (2 if plan is SURVEY else 1)
    assert spec["serviceAccountName"] == "planner"
    assert [key for key in plan["metadata"]["labels"] if "cattle.io/" in key] == []


@pytest.mark.parametrize(
    ("tag", "image", "version"),
    [
        pytest.param("v1.7.0", "r/t", "v1.7.0", id="the version is the tag"),
        pytest.param("v1.7.0+up1", "r/t", "v1.7.0+up1", id="the controller itself replaces the plus"),
        pytest.param("t" * 63, "r/t", "t" * 63, id="as long as a label's value may be"),
        pytest.param("t" * 64, "r/t:" + "t" * 64, "t" * 57, id="a longer one comes with the image"),
        pytest.param("v1.7.0-", "r/t:v1.7.0-", "", id="as does one that is not a label's value"),
    ],
)
def test_every_tag_gives_valid_labels(tag: str, image: str, version: str) -> None:
    spec = image_preload_plan(
        OWNER, PlanSettings(image=ToolkitImage(repository="r/t", tag=tag), service_account="a"), concurrency=1
    )["spec"]
    assert spec["upgrade"]["image"] == image
    assert spec["version"].startswith(version)
    assert label_value(spec["version"].replace("+", "-")) == spec["version"].replace("+", "-")


DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.rule("workloads: the version of a SUC Plan with a digest is sha256- and its first 12 digits")
@pytest.mark.parametrize(
    ("image", "name", "version", "jobs"),
    [
        pytest.param(
            ToolkitImage(repository="registry:5000/t", tag="v1+x", digest=DIGEST),
            f"registry:5000/t@{DIGEST}",
            "sha256-0123456789ab",
            f"registry:5000/t@{DIGEST}",
            id="a digest is in the image",
        ),
        pytest.param(
            ToolkitImage(repository="registry:5000/t", tag="v1+x"),
            "registry:5000/t",
            "v1+x",
            "registry:5000/t:v1-x",
            id="a tag is the version, which the controller appends",
        ),
        pytest.param(
            ToolkitImage(repository="r/t", tag="v1-"), "r/t:v1-", label_value("v1-"), "r/t:v1-", id="a tag in the image"
        ),
    ],
)
def test_controller_makes_exactly_that_image(image: ToolkitImage, name: str, version: str, jobs: str) -> None:
    spec = image_preload_plan(OWNER, PlanSettings(image=image, service_account="a"), concurrency=1)["spec"]
    assert (spec["upgrade"]["image"], spec["version"]) == (name, version)
    assert image_of_jobs(spec) == jobs == str(image)


@pytest.mark.rule(
    "pipeline: ImagePreload runs upgrade_node.sh prepare on every managed node by a SUC Plan",
    "workloads: the preload Plan is named PLAN-image-preload",
    "workloads: the preload Plan's concurrency is the resolved one",
    "workloads: the preload Plan runs upgrade_node.sh prepare",
)
def test_preload() -> None:
    assert PRELOAD["metadata"]["name"] == "up-image-preload"
    assert PRELOAD["spec"]["concurrency"] == 3
    assert PRELOAD["spec"]["upgrade"]["command"] == ["upgrade_node.sh"]
    assert PRELOAD["spec"]["upgrade"]["args"] == ["prepare"]


@pytest.mark.rule(
    "workloads: the survey Plan is named PLAN-survey and runs upgrade_node.sh survey",
    "workloads: a survey that only shows the image runs without privileges",
)
def test_survey() -> None:
    assert SURVEY["metadata"]["name"] == BARE_SURVEY["metadata"]["name"] == "up-survey"
    assert SURVEY["spec"]["concurrency"] == 3
    assert (SURVEY["spec"]["upgrade"]["command"], SURVEY["spec"]["upgrade"]["args"]) == (
        ["upgrade_node.sh"],
        ["survey"],
    )
    node = {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}
    assert SURVEY["spec"]["upgrade"]["envs"][1] == {"name": "HARVESTER_UPGRADE_NODE_NAME", "valueFrom": node}
    assert BARE_SURVEY["spec"]["upgrade"]["command"] == ["true"]
    assert BARE_SURVEY["spec"]["upgrade"]["securityContext"] == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.rule(
    "pipeline: ImageCleanup removes images from every node by a SUC Plan with concurrency 1",
    "pipeline: the list given to the nodes may exceed 128 KiB",
    "workloads: the cleanup Plan is named PLAN-image-cleanup and has concurrency 1",
    "workloads: the cleanup Plan removes images with the host's crictl",
)
def test_cleanup() -> None:
    assert CLEANUP["metadata"]["name"] == "up-image-cleanup"
    assert CLEANUP["spec"]["concurrency"] == 1
    assert CLEANUP["spec"]["upgrade"]["command"] == ["/bin/sh", "-c"]
    assert CLEANUP["spec"]["upgrade"]["args"] == [REMOVE]
    assert "chroot /host " in REMOVE
    assert '/var/lib/rancher/rke2/bin/crictl rmi "$image"' in REMOVE
    # The list changes neither the Plan's hash nor its size.
    assert CLEANUP["spec"]["secrets"] == [
        {"name": "one", "path": f"{LIST_PATH}-00", "ignoreUpdates": True},
        {"name": "two", "path": f"{LIST_PATH}-01", "ignoreUpdates": True},
    ]
    assert len(str(CLEANUP)) < 4000


def programs_of_the_image() -> Iterator[Path]:
    """Yield the programs that the Dockerfile copies into the toolkit's image, where this machine has them."""
    text = (Path(__file__).parents[2] / "Dockerfile").read_text()
    (names,) = re.findall(r"/image_programs.sh /programs (.*) \\$", text, re.MULTILINE)
    for name in names.split():
        if path := shutil.which(name):
            yield Path(path)


def scripted(folder: Path, shell: str, crictl: str) -> subprocess.CompletedProcess[str]:
    """Run the clean-up's own script on files of that folder, with the image's programs and that for a crictl."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} here")
    program = folder / "crictl"
    program.write_text(crictl)
    program.chmod(0o755)
    script = REMOVE.replace("/tmp/", f"{folder}/").replace(LIST_PATH, str(folder / "images"))  # noqa: S108  # in a Pod
    script = script.replace("/var/lib/rancher/rke2/bin/crictl", str(program)).replace("chroot /host ", "")
    (folder / "bin").mkdir()
    for path in programs_of_the_image():
        (folder / "bin" / path.name).symlink_to(path)
    environ = {"PATH": str(folder / "bin")}
    return subprocess.run([found, "-c", script], env=environ, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603


def mount(folder: Path, images: ImageList) -> None:
    """Do what the controller and the kubelet do with a Plan's Secrets."""
    plan = image_cleanup_plan(OWNER, SETTINGS, secrets=images.names())
    content = {secret["metadata"]["name"]: secret["data"][LIST_KEY] for secret in images.secrets()}
    for secret in plan["spec"]["secrets"]:
        place = folder / secret["path"].removeprefix("/run/system-upgrade/secrets/")
        place.mkdir()
        (place / LIST_KEY).write_bytes(b64decode(content[secret["name"]]))


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
class TestScript:
    @pytest.mark.rule(
        "pipeline: ImageCleanup removes images from every node by a SUC Plan with concurrency 1",
        "workloads: the cleanup Plan removes images with the host's crictl",
        "workloads: an image that cannot be removed does not fail the Job",
    )
    def test_every_image_is_removed_and_failures_are_ignored(self, tmp_path: Path, shell: str) -> None:
        mount(tmp_path, ImageList(owner=OWNER, packed=pack([f"docker.io/rancher/x:{number}" for number in range(40)])))
        crictl = f'#!/bin/sh\n[ "$2" = docker.io/rancher/x:7 ] && exit 1\necho "$2" >> {tmp_path}/removed\n'
        done = scripted(tmp_path, shell, crictl)
        assert (done.returncode, done.stdout) == (0, "kept docker.io/rancher/x:7\n")
        assert len((tmp_path / "removed").read_text().splitlines()) == 39

    @pytest.mark.rule("pipeline: the list given to the nodes may exceed 128 KiB")
    def test_chunks_are_joined_in_order_beyond_the_tenth(self, tmp_path: Path, shell: str) -> None:
        packed = pack([f"docker.io/rancher/x:{number}" for number in range(40)])
        for index in range(12):
            (tmp_path / f"images-{index:02}").mkdir()
            end = (index + 1) * 10 if index < 11 else None
            (tmp_path / f"images-{index:02}" / LIST_KEY).write_bytes(packed[index * 10 : end])
        done = scripted(tmp_path, shell, f'#!/bin/sh\necho "$2" >> {tmp_path}/removed\n')
        assert done.returncode == 0
        assert len((tmp_path / "removed").read_text().splitlines()) == 40

    @pytest.mark.parametrize("lost", [0, 1, 2], ids=["the first", "one between", "the last"])
    @pytest.mark.thin
    def test_missing_chunk_fails_the_job(self, tmp_path: Path, shell: str, lost: int) -> None:
        random = Random(1)
        packed = pack([f"docker.io/a/b@sha256:{random.getrandbits(256):064x}" for _ in range(40_000)])
        images = ImageList(owner=OWNER, packed=packed)
        assert len(images.names()) == 3
        mount(tmp_path, images)
        (tmp_path / f"images-0{lost}" / LIST_KEY).unlink()
        done = scripted(tmp_path, shell, f"#!/bin/sh\necho >{tmp_path}/called\n")
        assert done.returncode != 0
        assert not (tmp_path / "called").exists()
