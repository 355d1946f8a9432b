"""Runs the preflight checks of a plan and keeps their intermediate results.

The phase Initialize (pipeline/phases/initialize.py) calls it before anything is changed, the command `preflight`
(webhook/preflight) before the plan is created.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import structlog

from upgrade_manager.api.annotations import BadAnnotation, Flag
from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK, LABEL_SERVICE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import ENDPOINT_SLICES
from upgrade_manager.preflight import messages
from upgrade_manager.preflight.certificates import chain_validity
from upgrade_manager.preflight.disk import read_disk
from upgrade_manager.preflight.endpoints import endpoints_of
from upgrade_manager.preflight.poller import Poller, ProbeError
from upgrade_manager.preflight.preloaded import preloaded_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.api.annotations import PlanAnnotations
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.preflight.certificates import Validity
    from upgrade_manager.preflight.disk import Disk
    from upgrade_manager.preflight.endpoints import Endpoint
    from upgrade_manager.preflight.kubelets import KubeletReader
    from upgrade_manager.preflight.poller import Poll, Probe

#: Begins the name of a node in messages.
_NODE = "node "
#: The API servers' Service.
NAMESPACE, SERVICE = "default", "kubernetes"
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """All checks have passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """At least one check has failed; `cause` names every problem."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Some nodes or API servers have not responded yet; check again after `retry_after` seconds."""

    message: str
    retry_after: float
    #: The errors of kubelets by node, and of API servers by endpoint; both are empty while some were not read yet.
    kubelets: Mapping[str, str]
    endpoints: Mapping[str, str]
    #: The remedies for kubelets by node, where a remedy is known.
    remedies: Mapping[str, str]


Verdict: TypeAlias = Passed | Rejected | Pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The state of one check; it is final once it is not pending."""

    problems: tuple[str, ...] = ()
    failing: dict[str, str]
    remedies: Mapping[str, str] = field(default_factory=dict)
    unprobed: int = 0
    retry_after: float = 0.0

    @property
    def pending(self) -> bool:
        """True while the check has to be repeated, `retry_after` seconds later."""
        return bool(self.failing or self.unprobed)


@dataclass(slots=True)
class _State:
    """Intermediate results of one plan's checks."""

    plan_uid: str
    kubelets: Poller[Disk]
    endpoints: Poller[Validity]


class Preflight:
    """Checks disks, certificates and annotations for the phase Initialize; a failing check does not skip the other.

    One instance lives as long as the manager. It keeps intermediate results of the current plan, so that one
    unresponsive node does not cause requests to all others.
    """

    def __init__(self, *, probe: CertificateProbe, kubelets: KubeletReader, clock: Clock) -> None:
        self._probe = probe
        self._kubelets = kubelets
        self._clock = clock
        self._state = self._new_state("")

    async def check(
        self,
        client: Client,
        *,
        plan: str,
        annotations: PlanAnnotations,
        nodes: Sequence[Object],
        problems: Sequence[str] = (),
    ) -> Verdict:
        """Check the nodes and all API servers for the plan with that uid; `problems` of it are known already.

        Raises KubeError when the API server itself does not respond.
        """
        if self._state.plan_uid != plan:
            self._state = self._new_state(plan)
        certificates = await self.certificates(client, annotations)
        disks = await self.disks(client, annotations, nodes, plan={"metadata": {"uid": plan}})
        pending = [finding for finding in (certificates, disks) if finding.pending]
        if pending:
            message = messages.pending(
                kubelets=disks.failing,
                endpoints=certificates.failing,
                unprobed=certificates.unprobed + disks.unprobed,
            )
            return Pending(
                message=message,
                retry_after=min(finding.retry_after for finding in pending),
                kubelets={node.removeprefix(_NODE): error for node, error in disks.failing.items()},
                endpoints=certificates.failing,
                remedies={node.removeprefix(_NODE): remedy for node, remedy in disks.remedies.items()},
            )
        self._state = self._new_state("")
        found = (*problems, *certificates.problems, *disks.problems)
        log.info("preflight checks finished", nodes=len(nodes), problems=len(found))
        return Rejected(cause=". ".join(found)) if found else Passed()

    def _new_state(self, plan_uid: str) -> _State:
        monotonic = self._clock.monotonic
        return _State(plan_uid, kubelets=Poller(monotonic=monotonic), endpoints=Poller(monotonic=monotonic))

    async def disks(
        self, client: Client, annotations: PlanAnnotations, nodes: Sequence[Object], *, plan: Object
    ) -> Finding:
        """Check the nodes' disks for the plan, which need not exist yet; the caller repeats a pending check."""
        skip = annotations.skip_disk_check
        if skip is Flag.BAD:
            return Finding(problems=(str(annotations.bad_flag(ANNOTATION_SKIP_DISK_CHECK)),), failing={})
        if skip:
            return Finding(failing={})
        probes: dict[str, Probe[Disk]] = {
            f"{_NODE}{objects.name(node)}": partial(read_disk, self._kubelets, node) for node in nodes
        }
        poll = await self._state.kubelets.poll(probes, done=lambda disk: disk.suffices)
        full = await self._full(client, poll, plan)
        return _finding(
            poll,
            messages.disks_too_full(full) if full else "",
            messages.kubelets_failed(poll.failed, poll.remedies) if poll.failed else "",
        )

    async def _full(self, client: Client, poll: Poll[Disk], plan: Object) -> dict[str, str]:
        """Return the verdicts about disks that are too full; images that are preloaded already add nothing."""
        full = {node: disk for node, disk in poll.results.items() if not disk.suffices}
        if not full or poll.failing or poll.unprobed:
            return {}
        preloaded = {f"{_NODE}{name}" for name in await preloaded_nodes(client, plan=plan)}
        left = {node: replace(disk, added=0) if node in preloaded else disk for node, disk in full.items()}
        return {node: disk.verdict for node, disk in left.items() if not disk.suffices}

    async def certificates(self, client: Client, annotations: PlanAnnotations) -> Finding:
        """Check the certificates of all API servers; the caller repeats a pending check."""
        days = annotations.min_certs_days
        if isinstance(days, BadAnnotation):
            return Finding(problems=(str(days),), failing={})
        now = self._clock.now()
        probes = await self._endpoint_probes(client)
        poll = await self._state.endpoints.poll(probes, done=lambda found: found.outlasts(days=days, now=now))
        short = {
            endpoint: found.expiry(now)
            for endpoint, found in poll.results.items()
            if not found.outlasts(days=days, now=now)
        }
        return _finding(
            poll,
            messages.certificates_expire(short, days=days) if short else "",
            messages.endpoints_failed(poll.failed) if poll.failed else "",
        )

    async def _endpoint_probes(self, client: Client) -> dict[str, Probe[Validity]]:
        listing = await client.list(
            ENDPOINT_SLICES, namespace=NAMESPACE, label_selector=f"{LABEL_SERVICE_NAME}={SERVICE}"
        )
        endpoints = endpoints_of(listing.items)
        if not endpoints:
            return {f"Service {NAMESPACE}/{SERVICE}": _no_endpoint}
        return {f"endpoint {endpoint}": partial(self._read, endpoint) for endpoint in endpoints}

    async def _read(self, endpoint: Endpoint) -> Validity:
        """Read an endpoint's chain; one that is not valid yet is retried, because clocks may differ slightly."""
        try:
            found = chain_validity(await self._probe.read(endpoint.host, endpoint.port))
        except Transient as error:
            raise ProbeError(str(error)) from error
        if found.not_before > self._clock.now():
            raise ProbeError(f"not valid before {found.not_before:%Y-%m-%dT%H:%M:%SZ}; check the clocks")
        return found


def _finding(poll: Poll[Disk] | Poll[Validity], *problems: str) -> Finding:
    return Finding(
        problems=tuple(problem for problem in problems if problem),
        failing=dict(poll.failing),
        remedies=poll.remedies,
        unprobed=len(poll.unprobed),
        retry_after=poll.retry_after,
    )


async def _no_endpoint() -> Validity:
    raise ProbeError("its EndpointSlices are empty")
