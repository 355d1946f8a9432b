from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import structlog

from upgrade_manager.api.annotations import BadAnnotation, Flag
from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK, LABEL_SERVICE_NAME
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import ENDPOINT_SLICES
from upgrade_manager.preflight import messages
from upgrade_manager.preflight.certificates import chain_validity, outlasts, verdict
from upgrade_manager.preflight.endpoints import endpoints_of
from upgrade_manager.preflight.errors import Unanswered
from upgrade_manager.preflight.kubelet import read_disk
from upgrade_manager.preflight.poller import Inquiry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.api.annotations import PlanAnnotations
    from upgrade_manager.kube.client import Client
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.preflight.certificate_validity import Validity
    from upgrade_manager.preflight.disk import Disk
    from upgrade_manager.preflight.endpoints import Endpoint
    from upgrade_manager.preflight.poller import Ask, Survey
    from upgrade_manager.runtime.clock import Clock

#: The API servers' own Service.
NAMESPACE, SERVICE = "default", "kubernetes"
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Nothing speaks against the upgrade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The upgrade must not begin; `cause` names everything that speaks against it."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """Somebody has not answered yet: to be looked at again in `after` seconds."""

    message: str
    after: float


Verdict: TypeAlias = Passed | Refused | Undecided


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """What one check comes to so far."""

    #: What speaks against the upgrade, a sentence each.
    faults: tuple[str, ...] = ()
    #: Who is silent, and why; how many more have not been asked; and seconds until somebody is to be asked again.
    silent: dict[str, str]
    unasked: int = 0
    after: float = 0.0


@dataclass(slots=True)
class _Memory:
    """What is known for one plan."""

    plan: str
    kubelets: Inquiry[Disk]
    endpoints: Inquiry[Validity]


class Preflight:
    """The checks before an upgrade, for the phase Initialize; every check is made, whatever the others find.

    One object for the life of the manager. It remembers who has answered for as long as the checks of one plan go on,
    so that a silent node does not have all others asked again and again.
    """

    def __init__(self, *, probe: CertificateProbe, clock: Clock) -> None:
        self._probe = probe
        self._clock = clock
        self._memory = self._forgotten("")

    async def check(self, client: Client, *, plan: str, annotations: PlanAnnotations, nodes: Sequence[str]) -> Verdict:
        """Check these nodes and all API servers for the plan of that uid, as far as they answer now.

        Raises KubeError where the API server itself has no answer.
        """
        if self._memory.plan != plan:
            self._memory = self._forgotten(plan)
        certificates = await self._certificates(client, annotations)
        disks = await self._disks(client, annotations, nodes)
        unasked = certificates.unasked + disks.unasked
        if certificates.silent or disks.silent or unasked:
            held = [finding.after for finding in (certificates, disks) if finding.silent or finding.unasked]
            message = messages.waits(kubelets=disks.silent, endpoints=certificates.silent, unasked=unasked)
            return Undecided(message=message, after=min(held))
        self._memory = self._forgotten("")
        faults = (*certificates.faults, *disks.faults)
        log.info("pre-flight checks made", nodes=len(nodes), faults=len(faults))
        return Refused(cause="; ".join(faults)) if faults else Passed()

    def _forgotten(self, plan: str) -> _Memory:
        monotonic = self._clock.monotonic
        return _Memory(plan, kubelets=Inquiry(monotonic=monotonic), endpoints=Inquiry(monotonic=monotonic))

    async def _disks(self, client: Client, annotations: PlanAnnotations, nodes: Sequence[str]) -> _Finding:
        skip = annotations.skip_disk_check
        if skip is Flag.BAD:
            return _Finding(faults=(str(annotations.bad_flag(ANNOTATION_SKIP_DISK_CHECK)),), silent={})
        if skip:
            return _Finding(silent={})
        asks: dict[str, Ask[Disk]] = {f"node {node}": partial(read_disk, client, node) for node in nodes}
        survey = await self._memory.kubelets.look(asks, satisfies=lambda disk: disk.suffices)
        full = {node: disk.verdict for node, disk in survey.answers.items() if not disk.suffices}
        faults = (messages.too_full(full),) if full else ()
        return _finding(survey, faults, (messages.silent_kubelets(survey.given_up),) if survey.given_up else ())

    async def _certificates(self, client: Client, annotations: PlanAnnotations) -> _Finding:
        days = annotations.min_certs_days
        if isinstance(days, BadAnnotation):
            return _Finding(faults=(str(days),), silent={})
        now = self._clock.now()
        asks = await self._endpoint_asks(client)
        survey = await self._memory.endpoints.look(asks, satisfies=lambda found: outlasts(found, days=days, now=now))
        short = {
            endpoint: verdict(found, now=now)
            for endpoint, found in survey.answers.items()
            if not outlasts(found, days=days, now=now)
        }
        faults = (messages.short_lived(short, days=days),) if short else ()
        return _finding(survey, faults, (messages.silent_endpoints(survey.given_up),) if survey.given_up else ())

    async def _endpoint_asks(self, client: Client) -> dict[str, Ask[Validity]]:
        listing = await client.list(
            ENDPOINT_SLICES, namespace=NAMESPACE, label_selector=f"{LABEL_SERVICE_NAME}={SERVICE}"
        )
        endpoints = endpoints_of(listing.items)
        if not endpoints:
            return {f"Service {NAMESPACE}/{SERVICE}": _no_endpoint}
        return {f"endpoint {endpoint}": partial(self._read, endpoint) for endpoint in endpoints}

    async def _read(self, endpoint: Endpoint) -> Validity:
        """When its certificates are valid; one that is not valid yet may only have a clock against it: wait for it."""
        try:
            found = chain_validity(await self._probe.read(endpoint.host, endpoint.port))
        except Transient as error:
            raise Unanswered(str(error)) from error
        if found.not_before > self._clock.now():
            raise Unanswered(f"it is not valid before {found.not_before:%Y-%m-%dT%H:%M:%SZ}; are the clocks right?")
        return found


def _finding(survey: Survey[Disk] | Survey[Validity], *faults: tuple[str, ...]) -> _Finding:
    return _Finding(
        faults=tuple(fault for some in faults for fault in some),
        silent=dict(survey.silent),
        unasked=len(survey.unasked),
        after=survey.after,
    )


async def _no_endpoint() -> Validity:
    raise Unanswered("no EndpointSlice names an endpoint of it")
