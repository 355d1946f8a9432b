from __future__ import annotations

import os
import sys

from upgrade_manager.cli.options import parse_options


def main() -> int:
    """Run the command `upgrade-manager` and return its exit status."""
    options = parse_options(sys.argv[1:], os.environ)
    _skip_optional_imports()
    # Imported late, so that `--help` and usage errors are fast.
    from upgrade_manager.cli.run import run  # noqa: PLC0415

    return run(options)


def _skip_optional_imports() -> None:
    """Keep libraries from importing what the manager does not use: 4 MB and 60 ms."""
    # structlog uses rich for tracebacks if it is installed.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # documented: an import now fails
    # pydantic searches all installed distributions for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
