""".ci/run on a tree whose make targets do what a test defines."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci/run"
ALL = "====== 3 passed in 0.12s ======"
REAL = "====== 1 passed in 0.10s ======"
TARGETS = (
    "programs",
    "setup",
    "audit",
    "lint",
    "types",
    "layers",
    "manifests",
    "real-kube",
    "helm",
    "helm-controller",
    "kubeconform",
    "prometheus",
    "coverage",
    "test-all",
    "test-real",
    "test-display",
    "demo",
    "wheel",
    "images-debian",
)


def run(tree: Path, *, folder: str = ".", **recipes: str) -> subprocess.CompletedProcess[str]:
    """Run the script, from a folder of the tree; a target without a recipe succeeds."""
    recipes = {"test-all": f"echo '{ALL}'", "test-real": f"echo '{REAL}'", **recipes}
    rules = [f".PHONY: {name}\n{name}:\n\t@{recipes.get(name, 'true')}\n" for name in TARGETS]
    (tree / "Makefile").write_text("\n".join(rules))
    environment = {name: value for name, value in os.environ.items() if name != "UPGRADE_MANAGER_CI"}
    return subprocess.run(  # noqa: PLW1510, S603  # its failure is what some tests are about
        ["bash", os.path.relpath(".ci/run", folder)],  # noqa: S607  # found on the PATH
        cwd=tree / folder,
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


def test_all_steps_pass_and_are_printed(tree: Path) -> None:
    ended = run(tree, demo="echo beside the tests")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines().count("beside the tests") == 2
    assert ended.stdout.splitlines()[-3:] == ["── 0 step(s) failed", REAL, ALL]


def test_run_from_another_folder_has_the_same_steps(tree: Path) -> None:
    ended = run(tree, folder="deploy/crds")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-3:] == ["── 0 step(s) failed", REAL, ALL]


@pytest.mark.parametrize("step", ["audit", "wheel", "lint", "types", "layers", "manifests", "coverage", "real-kube"])
@pytest.mark.thin
def test_a_failed_step_fails_the_run_and_later_steps_run(tree: Path, step: str) -> None:
    ended = run(tree, **{step: "false"})
    assert ended.returncode != 0
    assert ended.stdout.splitlines()[-3:] == [f"── 1 step(s) failed: {step}", REAL, ALL]


@pytest.mark.parametrize(
    ("step", "recipe", "errors"),
    [
        pytest.param("lint", "echo a; echo b; exit 1", ["a", "b"], id="a program"),
        pytest.param(
            "test-all",
            "echo one; echo 'E   assert 1'; echo 'FAILED test'; exit 1",
            ["E   assert 1", "FAILED test"],
            id="pytest",
        ),
    ],
)
@pytest.mark.full
def test_errors_of_a_failed_step_stand_at_the_end(tree: Path, step: str, recipe: str, errors: list[str]) -> None:
    printed = run(tree, **{step: recipe}).stdout.splitlines()
    place = printed.index(f"── errors of {step}:")
    assert [line for line in printed[place + 1 :] if not line.startswith("make")][: len(errors)] == errors
    assert printed[place:].index(f"── 1 step(s) failed: {step}") > len(errors)


def test_a_failed_demo_fails_on_both_api_servers(tree: Path) -> None:
    ended = run(tree, demo="false")
    assert ended.returncode != 0
    assert "── 2 step(s) failed: demo demo-real" in ended.stdout


@pytest.mark.parametrize(("step", "line"), [("test-real", -2), ("test-all", -1)])
@pytest.mark.parametrize("summary", ["=== 1 failed, 2 passed in 1.00s ===", ""])
@pytest.mark.full
def test_failed_tests_or_a_missing_summary_fail_the_run(tree: Path, step: str, line: int, summary: str) -> None:
    ended = run(tree, **{step: f"echo '{summary}'; exit 1" if summary else "true"})
    assert ended.returncode != 0
    assert ended.stdout.splitlines()[line] == (summary or f"{step}: no test summary")


def test_a_stale_crd_fails_the_run(tree: Path) -> None:
    ended = run(tree, manifests="echo 'kind: Other' >deploy/crds/plan.yaml")
    assert ended.returncode != 0
    assert "── 1 step(s) failed: manifests" in ended.stdout


def test_a_failed_set_up_ends_the_run(tree: Path) -> None:
    ended = run(tree, setup="echo broken; false")
    assert ended.returncode != 0
    assert "lint" not in ended.stdout
    assert "── 1 step(s) failed: set-up" in ended.stdout
