"""The commands that make would run, without running them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def dry_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own Makefile
        ["make", "--dry-run", *arguments],  # noqa: S607  # found on the PATH
        cwd=ROOT,
        # Not the variables by which a make that runs the tests would change this one.
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        pytest.param("a:v1", "a", id="name"),
        pytest.param("registry.example:5000/team/a:v1", "registry.example:5000/team/a", id="registry with a port"),
    ],
)
def test_helm_gets_repository_and_tag(image: str, repository: str) -> None:
    ended = dry_run("helm-deploy", f"IMG={image}")
    assert f" --set-string image.repository={repository} --set-string image.tag=v1" in ended.stdout, ended.stderr


def test_helm_gets_the_digest_where_the_image_has_one() -> None:
    ended = dry_run("helm-deploy", f"IMG=registry.example:5000/team/a@sha256:{'a' * 64}")
    settings = f"image.repository=registry.example:5000/team/a --set-string image.digest=sha256:{'a' * 64}"
    assert f" --set-string {settings}" in ended.stdout, ended.stderr


def test_image_without_a_tag_is_refused() -> None:
    ended = dry_run("helm-deploy", "IMG=registry.example:5000/a")
    assert ended.returncode != 0
    assert "IMG=registry.example:5000/a has no tag" in ended.stderr


@pytest.mark.parametrize(
    ("image", "message"),
    [
        pytest.param("", "name the image that the cluster pulls: IMG=REGISTRY/NAME:TAG", id="none"),
        pytest.param("registry.example:5000/a", "IMG=registry.example:5000/a has no tag", id="no tag"),
    ],
)
def test_installer_without_an_image_of_the_cluster_is_refused(image: str, message: str) -> None:
    ended = dry_run("build-installer", f"IMG={image}")
    assert ended.returncode != 0
    assert message in ended.stderr


@pytest.mark.parametrize("image", ["registry.example:5000/a:v1", f"a@sha256:{'a' * 64}"])
def test_installer_has_the_image_that_is_named(image: str) -> None:
    ended = dry_run("build-installer", f"IMG={image}")
    assert f'hack/overlay.sh build/overlay "{image}"' in ended.stdout, ended.stderr


def test_removal_keeps_the_crd() -> None:
    assert dry_run("undeploy").stdout.endswith("-k deploy/default -l app.kubernetes.io/name\n")


def test_image_and_docker_build_are_the_same() -> None:
    image, build = dry_run("image", "IMG=a:v1"), dry_run("docker-build", "IMG=a:v1")
    assert image.stdout == build.stdout == "hack/image.sh build a:v1\n"
