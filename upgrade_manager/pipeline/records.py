"""What the manager notes on the plan before it changes something of others, to put it back later.

A note is written before the change it belongs to, so a crash in between loses nothing; a note that is there is never
written again, so a second look at a changed value is not taken for the original.
"""

from __future__ import annotations

from upgrade_manager.api.keys import (
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_REPLENISHMENT_INTERVAL,
    PREFIX,
)

#: The provisioning cluster's upgradeStrategy before the upgrade, as JSON; `null` where it had none.
ANNOTATION_UPGRADE_STRATEGY = f"{PREFIX}/upgrade-strategy"
#: "true" on a failed plan once what it changed is restored: from then on it may not restore any more, for what is
#: different now is another plan's doing.
ANNOTATION_RESTORED = f"{PREFIX}/restored"
#: "true" on a failed plan once what it made is removed, too.
ANNOTATION_TORN_DOWN = f"{PREFIX}/torn-down"
#: All notes that we make on a plan. A user's manifest may hold those of an earlier plan, copied with it.
NOTES = (
    ANNOTATION_REPLENISHMENT_INTERVAL,
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_UPGRADE_STRATEGY,
    ANNOTATION_RESTORED,
    ANNOTATION_TORN_DOWN,
)
