"""`python -m upgrade_manager` is the command `upgrade-manager`."""

from __future__ import annotations

import sys

from upgrade_manager.cli.main import main

sys.exit(main())
