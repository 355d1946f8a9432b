"""All checks of a new plan before its creation; the command `upgrade-manager preflight` calls it.

A plan that passes starts: the rows are a dry-run of its creation, the webhook's checks and those of Initialize, by the
code that these run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence  # noqa: TC003  # dataclass fields
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import KubeError
from upgrade_manager.preflight.check import Preflight
from webhook.admission import is_skipped
from webhook.catalogue import CHECKS
from webhook.check import Finding, Subject
from webhook.cluster import LiveReader, NotInstalled
from webhook.preflight import certificates, creation, harvester, iso, kubelets, release
from webhook.preflight.permission import EDITOR, ROLE, Permissions, bind_commands
from webhook.preflight.row import FAILED, SKIPPED, UNKNOWN, Row, printable
from webhook.runner import run_checks
from webhook.sharing import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.preflight.kubelets import KubeletReader
    from webhook.check import Check
    from webhook.cluster import ClusterReader
    from webhook.preflight.iso_server import IsoServer

#: Seconds for all checks, for which no API server waits: Initialize gives kubelets up to three minutes.
DEADLINE = 240.0
_NEEDS_PLAN = "needs a plan. Use -f FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The servers that the checks ask beside the API server."""

    certificates: CertificateProbe
    kubelets: KubeletReader
    iso: IsoServer
    clock: Clock
    #: Shows the user what a check waits for.
    on_wait: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of all checks."""

    rows: Sequence[Row]
    #: The release that Harvester reports; empty if it cannot be read.
    running: str
    #: True if the webhook does not check the plan.
    is_skipped: bool
    #: The commands that give the user the permissions that were missing, and that a role has.
    bind: Sequence[str] = ()

    @property
    def failed(self) -> int:
        """The number of failed checks."""
        return sum(row.outcome == FAILED for row in self.rows)

    @property
    def unknown(self) -> list[str]:
        """The checks that could not be made, for which the plan may still be refused."""
        return [row.check for row in self.rows if row.outcome == UNKNOWN]

    @property
    def passed(self) -> bool:
        """True if the plan starts."""
        return not self.failed and not self.unknown


async def check(
    plan: Object, client: Client, toolkit: ToolkitConfig, around: Surroundings, *, skip_iso: bool = False
) -> Report:
    """Run the checks; without a plan, skip the checks of a plan's fields."""
    reader, permissions = SnapshotReader(LiveReader(client)), Permissions()
    subject = Subject.of(plan, cluster=reader, toolkit=toolkit)

    async def run(checks: Sequence[Check]) -> dict[str, Row]:
        results = await run_checks(checks, subject, deadline=DEADLINE, forbidden=permissions.message)
        return {result.name: Row.of(result) for result in results}

    first = await run([harvester.check(client)])
    if first[harvester.NAME].outcome == FAILED:
        return Report(rows=list(first.values()), running="", is_skipped=is_skipped(plan))
    checks = [*_of_initialize(plan, client, around, skip_iso=skip_iso), *CHECKS]
    rows = first | await run([one for one in checks if plan or not _needs_plan(one)])
    skipped = Row(check="", outcome=SKIPPED, reason=_NEEDS_PLAN)
    every = [first[harvester.NAME], *(rows.get(one.name) or replace(skipped, check=one.name) for one in checks)]
    may_not_create = rows.get(creation.NAME, skipped).outcome == UNKNOWN
    roles = [*([ROLE] if permissions.missing else []), *([EDITOR] if may_not_create else [])]
    bind = await bind_commands(client, *roles)
    kept = list(_without_repeats(every))
    return Report(rows=kept, running=await _running(reader), is_skipped=is_skipped(plan), bind=bind)


def _of_initialize(plan: Object, client: Client, around: Surroundings, *, skip_iso: bool) -> list[Check]:
    """Return the checks that are not the webhook's."""
    probe = certificates.UserProbe(around.certificates)
    reader = kubelets.UserKubelets(around.kubelets)
    preflight = Preflight(probe=probe, kubelets=reader, clock=around.clock)
    return [
        creation.check(client, plan),
        release.CHECK,
        iso.check(around.iso, is_skipped=skip_iso),
        kubelets.check(client, preflight, plan, on_wait=around.on_wait),
        certificates.check(client, preflight, probe),
    ]


def _needs_plan(check: Check) -> bool:
    """Return True for a check of fields of the plan; all other checks read the cluster."""
    return check.field != "spec" or check.name == creation.NAME


def _without_repeats(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows; of the installed webhook's findings only those that no other row has."""
    known = {printable(one.message) for row in rows if row.check != creation.NAME for one in row.findings}
    for row in rows:
        left = [one for one in row.findings if one.message not in known] if row.check == creation.NAME else row.findings
        if len(left) == len(row.findings):
            yield row
        elif left:
            yield replace(row, findings=left)
        else:
            yield replace(row, findings=[Finding(problem=_SAME, field="spec")])


_SAME = "The installed webhook denies the plan for the reasons below"


async def _running(cluster: ClusterReader) -> str:
    try:
        return await release.running_version(cluster)
    except (KubeError, NotInstalled):
        return ""
