"""`make sbom`: what an image contains, as a CycloneDX document.

The Python packages are those of requirements/run.txt, with their hashes. Debian's packages, and helm, are read from the
root file system of an image, where hack/image_packages.sh recorded them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from packageurl import PackageURL

from upgrade_manager import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ROOT = Path(__file__).parents[1]
_RECORDS = "var/lib/dpkg/status.d"
_HELM = "usr/local/bin/helm"


class SbomError(Exception):
    """The document cannot be made; one line for users."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the document and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m hack.sbom", description=__doc__)
    parser.add_argument("--root", type=Path, help="root file system of an image; without it, Python packages only")
    parser.add_argument("output", type=Path, help="the file to write")
    flags = parser.parse_args(arguments)
    try:
        text = document(_ROOT / "requirements/run.txt", root=flags.root)
    except SbomError as error:
        sys.stderr.write(f"sbom: {error}\n")
        return 1
    flags.output.parent.mkdir(parents=True, exist_ok=True)
    flags.output.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{flags.output}: {len(json.loads(text)['components'])} packages\n")
    return 0


def document(lock: Path, *, root: Path | None) -> str:
    """Return the validated document of a lock file and of a root file system. Raises SbomError."""
    bom = _python_packages(lock)
    component = bom.metadata.component
    if component is None:
        raise AssertionError("pyproject.toml describes it")
    component.version = __version__
    if root is not None:
        bom.components.update([*_debian_packages(root), *_helm(root)])
    for one in bom.components:
        # The tool repeats each line of the lock file there.
        one.description = None
    bom.register_dependency(component, bom.components)
    # The same each time, for the same content.
    bom.metadata.timestamp = None  # type: ignore[assignment]  # optional in the format
    bom.serial_number = uuid5(NAMESPACE_URL, "\n".join([__version__, *sorted(str(one.purl) for one in bom.components)]))
    # Takes seconds, in which it makes the grammars of all formats of JSON schemas.
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    text = JsonV1Dot6(bom).output_as_string(indent=2)
    invalid = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if invalid is not None:
        raise SbomError(f"the document is not valid: {invalid}")
    return text


def _python_packages(lock: Path) -> Bom:
    project = ("--pyproject", str(_ROOT / "pyproject.toml"))
    # Without validation, which `document` does. -W: it warns of what `document` adds.
    tool = (
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "cyclonedx_py",
        "requirements",
        "--output-reproducible",
        "--no-validate",
    )
    ended = subprocess.run(
        [*tool, *project, str(lock)],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise SbomError(f"cyclonedx-py failed for {lock.name}: {ended.stderr.strip().rpartition(chr(10))[2]}")
    return Bom.from_json(json.loads(ended.stdout))  # type: ignore[attr-defined, no-any-return]  # added by a decorator


def _debian_packages(root: Path) -> Iterator[Component]:
    """Yield the recorded packages. Raises SbomError without any."""
    records = sorted((root / _RECORDS).glob("*"))
    if not records:
        raise SbomError(
            f"{root} has no packages in {_RECORDS}; it is not the root file system of an image of this project"
        )
    release = (root / "usr/lib/os-release").read_text(encoding="utf-8")
    distribution = "-".join(re.findall(r"^(?:ID|VERSION_ID)=\"?([a-z0-9.]+)", release, re.MULTILINE)[::-1])
    for record in records:
        fields = HeaderParser().parsestr(record.read_text(encoding="utf-8"))
        name, version, arch = fields["Package"], fields["Version"], fields["Architecture"]
        purl = PackageURL("deb", "debian", name, version, {"arch": arch, "distro": distribution})
        yield Component(type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=str(purl))


def _helm(root: Path) -> Iterator[Component]:
    if not (root / _HELM).exists():
        return
    (version,) = re.findall(r"^ARG HELM=(\S+)$", (_ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    purl = PackageURL("golang", "helm.sh/helm", "v4", version)
    yield Component(type=ComponentType.APPLICATION, name="helm", version=version, purl=purl, bom_ref=str(purl))


if __name__ == "__main__":
    sys.exit(main())
