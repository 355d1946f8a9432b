from __future__ import annotations

import os
import sys

from upgrade_manager.cli.options import parse_options


def main() -> int:
    """The command `upgrade-manager`; its exit status."""
    options = parse_options(sys.argv[1:], os.environ)
    # What `--help` and a typing error do not need is not loaded for them.
    from upgrade_manager.cli.run import run  # noqa: PLC0415

    return run(options)
