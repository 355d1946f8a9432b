"""The accounts that both API servers know in tests, besides an administrator."""

from __future__ import annotations

from hack.control_plane.control_plane import Account

#: May do nothing but what everybody may.
BOB = Account(token="bob", name="bob", groups=("developers",))  # noqa: S106  # on loopback only
ACCOUNTS = (BOB,)
