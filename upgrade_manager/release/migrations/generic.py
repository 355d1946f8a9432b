"""The rows of every upgrade, whatever its releases; pairs.py adds those of the pair.

toolkit/charts and toolkit/commands/cluster_upgrade.py carry them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.release.migrations.row import Row

ROWS: tuple[Row, ...] = ()
