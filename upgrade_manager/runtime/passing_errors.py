"""Errors that pass: a change of an object by others, and the refusal of a policy. Only those that last are reported.

pipeline/reconciler.py asks it before it reports an error; blockers/refusals.py holds those that last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Conflict, Invalid, KubeError, PreconditionFailed, Terminal, policy_refusal

if TYPE_CHECKING:
    from collections.abc import Container

#: Conflicts of one plan in a row that others may cause, as a burst of changes does.
MAX_CONFLICTS = 5
#: Seconds for which a policy may refuse. After its start, an API server does not know the kind of the policies'
#: parameter, and looks for it every 30 s (k8s.io/apiserver v0.35.4, pkg/server/options/admission.go).
POLICY_START = 40.0
log = structlog.get_logger(__name__)


class PassingErrors:
    """Counts them, by the plan's uid, since the plan's last reconcile without an error."""

    def __init__(self) -> None:
        self._conflicts: dict[str, int] = {}
        #: Since when a policy has refused.
        self._refused: dict[str, float] = {}

    def passes(self, uid: str, error: Exception) -> bool:
        """Count the error; return True unless it lasts or is of another kind."""
        if isinstance(error, Invalid) and policy_refusal(error):
            is_early = loop_time() - self._refused.setdefault(uid, loop_time()) < POLICY_START
        elif isinstance(error, Conflict):
            self._conflicts[uid] = self._conflicts.get(uid, 0) + 1
            # A webhook's conflict is an error at once.
            is_early = isinstance(error, PreconditionFailed) and self._conflicts[uid] <= MAX_CONFLICTS
        else:
            return False
        if is_early:
            log.info("refused for the moment, requeued", error=str(error))
        return is_early

    def may_pass(self, uid: str, error: KubeError) -> bool:
        """Return True for a passing error, and for a conflict, perhaps of a precondition, that has not lasted."""
        if isinstance(error, Conflict):
            return self._conflicts.get(uid, 0) < MAX_CONFLICTS
        return not isinstance(error, Terminal)

    def clear(self, uid: str) -> None:
        """Forget the errors of a plan after a reconcile without one."""
        self._conflicts.pop(uid, None)
        self._refused.pop(uid, None)

    def keep(self, uids: Container[str]) -> None:
        """Forget the other plans."""
        for counted in (self._conflicts, self._refused):
            for uid in [uid for uid in counted if uid not in uids]:
                del counted[uid]
