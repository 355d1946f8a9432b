from __future__ import annotations

import os
import sys

from upgrade_manager.cli.options import parse_options


def main() -> int:
    """The command `upgrade-manager`; its exit status."""
    options = parse_options(sys.argv[1:], os.environ)
    _travel_light()
    # What `--help` and a typing error do not need is not loaded for them.
    from upgrade_manager.cli.run import run  # noqa: PLC0415

    return run(options)


def _travel_light() -> None:
    """Keep libraries from loading what the manager has no use for: 4 MB and 60 ms of every start."""
    # structlog takes rich, where it finds it, for tracebacks on a terminal.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # documented: importing it now fails
    # pydantic looks through all installed distributions for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
