"""`make sbom`, by the tools that it locks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hack.sbom import main
from upgrade_manager import __version__

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements/run.txt").read_text()
#: Name, version and hashes of each locked package.
LOCKED = {
    (name, version): set(re.findall(r"--hash=sha256:([0-9a-f]{64})", rest))
    for name, version, rest in re.findall(r"^([a-z0-9_.-]+)==([^\s;]+)(.*?)(?=^\S|\Z)", LOCK, re.MULTILINE | re.DOTALL)
}
RECORD = """Package: {name}
Status: install ok installed
Architecture: amd64
Version: {version}
Description: what it is
 in several lines
"""
(HELM,) = re.findall(r"^ARG HELM=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def made(output: Path, *arguments: str) -> dict[str, Any]:
    assert main([*arguments, str(output)]) == 0
    return dict(json.loads(output.read_text()))


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the document of the Python packages."""
    path: Path = tmp_path_factory.mktemp("sbom") / "manager.cdx.json"
    made(path)
    return path


def purls(document: dict[str, Any]) -> set[str]:
    return {component["purl"] for component in document["components"]}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Return a root file system with two Debian packages and Helm."""
    records = tmp_path / "image/var/lib/dpkg/status.d"
    records.mkdir(parents=True)
    for name, version in (("libc6", "2.36-9+deb12u10"), ("dash", "0.5.12-2")):
        (records / name).write_text(RECORD.format(name=name, version=version))
    for folder in ("usr/lib", "usr/local/bin"):
        (tmp_path / "image" / folder).mkdir(parents=True)
    (tmp_path / "image/usr/lib/os-release").write_text('VERSION_ID="12"\nID=debian\n')
    (tmp_path / "image/usr/local/bin/helm").touch()
    return tmp_path / "image"


@pytest.mark.full
def test_every_locked_package_is_listed_with_its_hashes(manager: Path) -> None:
    document = json.loads(manager.read_text())
    found = {
        (component["name"], component["version"]): {
            digest["content"] for reference in component["externalReferences"] for digest in reference["hashes"]
        }
        for component in document["components"]
    }
    assert len(LOCKED) == LOCK.count("==") - LOCK.count("version ==") > 30
    assert found == LOCKED
    assert all(LOCKED.values())
    described = document["metadata"]["component"]
    assert (described["name"], described["version"]) == ("harvester-upgrade-manager", __version__)


@pytest.mark.full
def test_document_is_the_same_each_time_and_names_no_machine(manager: Path, tmp_path: Path) -> None:
    text = manager.read_text()
    assert made(tmp_path / "b.json") == json.loads(text)
    urls = set(re.findall(r"https?://([^/\"]+)", text))
    assert urls <= {"pypi.org", "github.com", "cyclonedx.org"} | {url for url in urls if url.endswith("readthedocs.io")}
    assert str(ROOT) not in text


@pytest.mark.full
def test_debian_packages_and_helm_of_an_image_are_listed(manager: Path, tmp_path: Path, image: Path) -> None:
    assert purls(made(tmp_path / "b.json", "--root", str(image))) - purls(json.loads(manager.read_text())) == {
        "pkg:deb/debian/dash@0.5.12-2?arch=amd64&distro=debian-12",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64&distro=debian-12",
        f"pkg:golang/helm.sh/helm/v4@{HELM}",
    }


def test_other_root_file_system_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tmp_path), str(tmp_path / "a.json")]) == 1
    assert "has no packages in var/lib/dpkg/status.d" in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()
