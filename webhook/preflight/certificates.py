"""The certificates of the API servers do not expire soon, by the check of Initialize (preflight/check.py).

gate.py has the row. The addresses are those of the cluster's network, which a user's machine may not reach.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import BadAnnotation
from upgrade_manager.api.text import name_list
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from webhook.check import CannotRun, Check, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.preflight.certificates import Validity
    from upgrade_manager.preflight.check import Finding as State
    from upgrade_manager.preflight.check import Preflight
    from webhook.check import Subject

NAME = "certificates"


class UserProbe:
    """A `CertificateProbe` that remembers whether any API server was reached from the user's machine."""

    def __init__(self, probe: CertificateProbe) -> None:
        self._probe = probe
        self.has_reached = False

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        """Implement `CertificateProbe`."""
        try:
            found = await self._probe.read(host, port)
        except Transient as error:
            self.has_reached |= error.reason not in {REFUSED, TIMED_OUT}
            raise
        self.has_reached = True
        return found


def check(client: Client, preflight: Preflight, probe: UserProbe) -> Check:
    """Return the check; `preflight` reads certificates by that probe."""

    async def find(subject: Subject) -> list[Finding]:
        if isinstance(subject.annotations.min_certs_days, BadAnnotation):
            # The check of annotations reports it.
            return []
        state = await preflight.certificates(client, subject.annotations)
        while state.pending:
            _check_reached(state, probe)
            await asyncio.sleep(state.retry_after)
            state = await preflight.certificates(client, subject.annotations)
        return [Finding(problem=problem) for problem in state.problems]

    return Check(name=NAME, field="spec", find=find)


def _check_reached(state: State, probe: UserProbe) -> None:
    """Raise CannotRun if no API server can be reached by its address in the cluster."""
    unreached = [name.removeprefix("endpoint ") for name in state.failing if name.startswith("endpoint ")]
    if unreached and not probe.has_reached and not state.unprobed:
        reason = f"{name_list(unreached)} cannot be reached from this machine"
        raise CannotRun(f"{reason}: the manager checks the certificates when the upgrade starts")
