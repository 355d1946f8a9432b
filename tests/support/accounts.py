"""The accounts that both API servers know in tests, besides an administrator."""

from __future__ import annotations

from hack.kube.controlplane import Account

#: May do nothing but what everybody may.
BOB = Account(token="bob", name="bob", groups=("developers",))  # noqa: S106  # on loopback only
ACCOUNTS = (BOB,)
