""".ci/run on a tree whose make targets only say what a test tells them to."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci/run"
SUMMARY = "====== 3 passed in 0.12s ======"
TARGETS = ("setup", "lint", "types", "layers", "manifests", "real-kube", "coverage", "test", "test-real", "demo")


def run(tree: Path, **recipes: str) -> subprocess.CompletedProcess[str]:
    """Run the script; each target does what its recipe says, else it succeeds."""
    recipes = {"test-real": f"echo '{SUMMARY}'", "test": "echo '=== 1 passed in 0.10s ==='", **recipes}
    rules = [f".PHONY: {name}\n{name}:\n\t@{recipes.get(name, 'true')}\n" for name in TARGETS]
    (tree / "Makefile").write_text("\n".join(rules))
    environment = {name: value for name, value in os.environ.items() if name != "UPGRADE_MANAGER_CI"}
    return subprocess.run(  # noqa: PLW1510  # its failure is what some tests are about
        ["bash", ".ci/run"],  # noqa: S607  # found on the PATH
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci/run")
    (tmp_path / "deploy/crds").mkdir(parents=True)
    (tmp_path / "deploy/crds/plan.yaml").write_text("kind: CustomResourceDefinition\n")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *command], cwd=tmp_path, check=True)  # noqa: S603, S607  # git
    return tmp_path


def test_when_all_steps_pass_it_ends_with_the_tests_summary(tree: Path) -> None:
    ended = run(tree)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-2:] == ["── 0 step(s) failed", SUMMARY]


@pytest.mark.parametrize("step", ["lint", "types", "layers", "manifests", "coverage"])
def test_a_failed_step_fails_the_run_and_the_others_are_run_all_the_same(tree: Path, step: str) -> None:
    ended = run(tree, **{step: "false"})
    assert ended.returncode != 0
    assert ended.stdout.splitlines()[-2:] == [f"── 1 step(s) failed: {step}", SUMMARY]


def test_a_demo_that_fails_fails_on_both_api_servers(tree: Path) -> None:
    ended = run(tree, demo="false")
    assert ended.returncode != 0
    assert ended.stdout.splitlines()[-2:] == ["── 2 step(s) failed: demo demo-real", SUMMARY]


def test_without_a_real_api_server_the_run_fails_and_what_can_be_tested_is(tree: Path) -> None:
    ended = run(tree, **{"real-kube": "false"})
    assert ended.returncode != 0
    assert ended.stdout.splitlines()[-2:] == ["── 1 step(s) failed: real-kube", "=== 1 passed in 0.10s ==="]


def test_failed_tests_fail_the_run_and_their_summary_stands_last(tree: Path) -> None:
    ended = run(tree, **{"test-real": "echo '=== 1 failed, 2 passed in 1.00s ==='; exit 1"})
    assert ended.returncode != 0
    assert ended.stdout.splitlines()[-1] == "=== 1 failed, 2 passed in 1.00s ==="


def test_no_summary_is_a_failure(tree: Path) -> None:
    ended = run(tree, **{"test-real": "true"})
    assert ended.returncode != 0
    assert ended.stdout.splitlines()[-1] == "no test summary"


def test_a_stale_crd_fails_the_run(tree: Path) -> None:
    ended = run(tree, manifests="echo 'kind: Other' >deploy/crds/plan.yaml")
    assert ended.returncode != 0
    assert "── 1 step(s) failed: manifests" in ended.stdout


def test_after_a_failed_set_up_nothing_else_is_tried(tree: Path) -> None:
    ended = run(tree, setup="echo broken; false")
    assert ended.returncode != 0
    assert "lint" not in ended.stdout
    assert ended.stdout.splitlines()[-2:] == ["── 1 step(s) failed: set-up", "no test summary"]
