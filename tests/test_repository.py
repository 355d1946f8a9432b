"""Lock files, documents and make targets of the repository agree."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from hack.bench.catalogue import BENCHMARKS

ROOT = Path(__file__).parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
DOCUMENTS = [*ROOT.glob("[A-Z]*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
#: A pin as a lock file writes it, with its marker, and the hashes that follow it.
PIN = re.compile(
    r"^([a-z0-9][a-z0-9.-]*)==(\S+)(?: ; [^\\\n]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: Path) -> dict[str, str]:
    return {match[1]: match[2] for match in PIN.finditer(lock.read_text())}


def wanted(source: Path) -> set[str]:
    """Return the names that an input file asks for."""
    lines = [line.split("#")[0].strip() for line in source.read_text().splitlines()]
    return {normalised(re.split(r"[<>=!~;\[ ]", line)[0]) for line in lines if line and not line.startswith("-")}


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


#: Targets that users of kubebuilder projects type.
HABITS = (
    "help lint test test-real build image docker-build docker-buildx docker-push manifests build-installer install "
    "uninstall deploy undeploy run helm-deploy helm-undeploy helm-status demo bench clean"
)


def test_makefile_has_the_targets_of_such_projects() -> None:
    assert set(HABITS.split()) <= targets()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
class TestLockFile:
    def test_every_requirement_is_pinned_and_hashed(self, lock: Path) -> None:
        requirements = re.findall(r"^[^#\s-].*$", lock.read_text(), re.MULTILINE)
        assert len(requirements) == len(PIN.findall(lock.read_text())) > 0

    def test_it_names_no_host_and_no_option(self, lock: Path) -> None:
        assert not re.search(r"://|^-|^\s+--(?!hash)", lock.read_text(), re.MULTILINE)

    def test_it_has_what_its_input_asks_for(self, lock: Path) -> None:
        assert wanted(lock.with_suffix(".in")) <= set(pins(lock))


def test_the_lock_files_agree_on_every_version() -> None:
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        for name, version in pins(lock).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_what_the_distribution_requires_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {normalised(re.split(r"[<>=!~;\[ ]", line)[0]) for line in project["dependencies"]}
    assert required <= set(pins(ROOT / "requirements/run.txt"))


def test_the_distribution_requires_what_it_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {normalised(re.split(r"[<>=!~;\[ ]", line)[0]) for line in project["dependencies"]}
    sources = [path for package in ("upgrade_manager", "webhook") for path in (ROOT / package).rglob("*.py")]
    imports = {
        module for path in sources for module in re.findall(r"^ *(?:import|from) (\w+)", path.read_text(), re.MULTILINE)
    }
    providers = packages_distributions()
    assert {normalised(providers[module][0]) for module in imports if module in providers} - required == {
        "harvester-upgrade-manager"
    }


def test_help_lists_every_target_that_is_for_people() -> None:
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607  # found on the PATH
    assert set(re.findall(r"^  make ([a-z-]+)", shown, re.MULTILINE)) == targets()
    assert {"help", "setup", "demo", "test", "lint", "types", "layers", "check", "bench"} <= targets()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
class TestDocument:
    def test_every_make_command_in_it_exists(self, document: Path) -> None:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(), re.MULTILINE))
        assert named <= targets()

    def test_every_module_that_it_runs_exists(self, document: Path) -> None:
        modules = re.findall(r"python -m ([a-z_.]+)", document.read_text())
        paths = [
            ROOT / module.replace(".", "/") for module in modules if module.startswith(("hack", "upgrade_manager"))
        ]
        assert [
            str(path) for path in paths if not (path / "__main__.py").exists() and not path.with_suffix(".py").exists()
        ] == []

    def test_every_file_that_it_points_to_exists(self, document: Path) -> None:
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text())
        assert [link for link in links if not (document.parent / link).exists()] == []

    def test_every_path_in_it_exists(self, document: Path) -> None:
        paths = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", document.read_text())
        manager = ROOT / "upgrade_manager"
        homes = (ROOT, manager, manager / "pipeline", manager / "toolkit")
        assert [path for path in paths if not any((home / path).exists() for home in homes)] == []


def test_the_map_names_every_package_and_existing_files() -> None:
    table = section(ROOT / "ARCHITECTURE.md", "What is where")
    rows = re.findall(r"^\| `([a-z._]+)` \|.*\|(.*)\|$", table, re.MULTILINE)
    homes = {name: ROOT / name.replace(".", "/") for name, _ in rows}
    folders = {name: home if home.is_dir() else ROOT / "upgrade_manager" / name for name, home in homes.items()}
    # A package in one of these is that one's own matter.
    there = [*ROOT.glob("upgrade_manager/*/__init__.py"), *ROOT.glob("hack/*/__init__.py")]
    there += [ROOT / name / "__init__.py" for name in ("hack", "webhook")]
    assert sorted(folders.values()) == sorted(path.parent for path in there)
    named = [folders[name] / file for name, files in rows for file in re.findall(r"`([\w/]+\.py)`", files)]
    assert [path for path in named if not path.is_file()] == []


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs/decisions"
    decisions = {path.name for path in folder.glob("[0-9]*.md")}
    assert decisions == set(re.findall(r"\]\((\d[^)]*\.md)\)", (folder / "README.md").read_text()))


def section(document: Path, heading: str) -> str:
    """Return the text under a heading, up to the next one."""
    return document.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_performance_table_names_every_benchmark() -> None:
    rows = (ROOT / "docs/performance.md").read_text().splitlines()
    assert {row.split("`")[-2] for row in rows if row.endswith("` |")} - {"NAME"} == set(BENCHMARKS)


def test_no_file_is_left_out_of_the_licence() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
