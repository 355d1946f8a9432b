"""The distribution's programs as files, as pip installs them."""

from __future__ import annotations

import stat
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]


def install(name: str, folder: Path, *, before: str = "") -> None:
    """Write the program of that name into a folder, with a line of Python that it runs first."""
    module, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][name].split(":")
    program = folder / name
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{before}\n"
        f"from {module} import {function}\nsys.exit({function}())\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
