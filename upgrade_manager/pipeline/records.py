"""What the manager notes on the plan before it changes something of others, to put it back later.

A note is written before the change it belongs to, so a crash in between loses nothing; a note that is there is never
written again, so a second look at a changed value is not taken for the original.
"""

from __future__ import annotations

from upgrade_manager.api.keys import PREFIX

#: The provisioning cluster's upgradeStrategy before the upgrade, as JSON; `null` where it had none.
ANNOTATION_UPGRADE_STRATEGY = f"{PREFIX}/upgrade-strategy"
#: "true" on a failed plan once what it changed is restored.
ANNOTATION_RESTORED = f"{PREFIX}/restored"
