"""A scenario: the objects, durations and faults of a simulated cluster.

A scenario is a YAML file: one of hack/scenarios, selected by name, or any file with the same schema. Unknown keys
are refused, so that a mistyped fault is not ignored.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

#: The folder of the named scenarios.
SCENARIOS = Path(__file__).with_name("scenarios")

Seconds = Annotated[float, Field(ge=0)]


class ScenarioError(Exception):
    """An invalid scenario; its message names the scenario and the error."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Software(_Part):
    """The release that the cluster runs before the upgrade."""

    harvester: str = "v1.7.1"
    kubernetes: str = "v1.34.3+rke2r1"
    rancher: str = "v2.13.1"

    @property
    def os(self) -> str:
        """Return status.nodeInfo.osImage of the nodes."""
        return f"Harvester {self.harvester}"


class Release(_Part):
    """The release on the ISO; `metadata` are further keys of its harvester-release.yaml."""

    harvester: str = "v1.8.0"
    kubernetes: str = "v1.35.2+rke2r1"
    #: Empty means "Harvester " and the version.
    os: str = ""
    rancher: str = "v2.14.0"
    min_upgradable_version: str = "v1.7.0"
    metadata: dict[str, Any] = Field(default_factory=dict)
    #: Image references of the previous release's ISO only, of this one's only, and of both.
    images_removed: tuple[str, ...] = (
        "docker.io/rancher/harvester:v1.7.1",
        "docker.io/rancher/harvester-upgrade:v1.7.1",
        "docker.io/rancher/rancher:v2.13.1",
        "docker.io/longhornio/longhorn-engine:v1.10.0",
        "docker.io/longhornio/longhorn-manager:v1.10.0",
        "docker.io/rancher/mirrored-fluent-fluent-bit:3.1.8",
    )
    images_added: tuple[str, ...] = (
        "docker.io/rancher/harvester:v1.8.0",
        "docker.io/rancher/harvester-upgrade-toolkit:v1.8.0",
        "docker.io/rancher/rancher:v2.14.0",
        "docker.io/longhornio/longhorn-engine:v1.11.1",
        "docker.io/longhornio/longhorn-manager:v1.11.1",
    )
    images_kept: tuple[str, ...] = (
        "docker.io/rancher/nginx-ingress-controller:v1.14.1-hardened1",
        "docker.io/library/busybox:1.36.1",
    )

    @property
    def os_image(self) -> str:
        """Return status.nodeInfo.osImage of the nodes after their reboot."""
        return self.os or f"Harvester {self.harvester}"


class Disk(_Part):
    """The file system that a node's kubelet reports."""

    capacity_gib: float = 300
    used_gib: float = 90
    #: None means the kubelet's default, which its configuration shows.
    image_gc_high_threshold: int | str | None = None
    #: True if the kubelet responds, and the seconds after the first request for which it does not.
    answers: bool = True
    unreachable: Seconds = 0


class Nodes(_Part):
    """Nodes node-0, node-1, …: the first `management` are control plane and etcd, the others workers."""

    count: int = Field(3, ge=1)
    #: Prefix and suffix of the number in node names.
    prefix: str = "node-"
    suffix: str = ""
    management: int = Field(3, ge=1)
    #: Indexes of witness nodes, which hold etcd and no VMs.
    witness: tuple[int, ...] = ()
    cordoned: tuple[str, ...] = ()
    disks: dict[str, Disk] = Field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return all names, in order."""
        return tuple(f"{self.prefix}{index}{self.suffix}" for index in range(self.count))

    @cached_property
    def for_machines(self) -> tuple[str, ...]:
        """Return the names of the nodes that run VMs, in order."""
        return tuple(name for name in self.names if not self.is_witness(name))

    def index(self, name: str) -> int:
        """Return the number in a node's name."""
        return int(name.removeprefix(self.prefix).removesuffix(self.suffix))

    def is_management(self, name: str) -> bool:
        """Report whether the node runs the control plane and etcd."""
        return self.index(name) < self.management

    def is_witness(self, name: str) -> bool:
        """Report whether the node is a witness."""
        return self.index(name) in self.witness


class Machine(_Part):
    """A virtual machine that runs when the cluster starts."""

    name: str
    namespace: str = "default"
    node: str
    migratable: bool = True
    run_strategy: str = "Always"
    #: The number of its migrations that fail before one succeeds.
    failing_migrations: int = 0
    #: The number of start requests that KubeVirt refuses before it accepts one.
    failing_starts: int = 0
    volume: bool = True
    replicas: int = 3


class Fleet(_Part):
    """Further VMs, spread over the nodes that are not witnesses."""

    count: int = 0
    machines: tuple[Machine, ...] = ()


class Addon(_Part):
    """A Harvester add-on."""

    name: str
    namespace: str = "kube-system"
    enabled: bool = True
    #: Empty means its name.
    chart: str = ""
    version: str = "1.0.0"
    values: str = ""


class Durations(_Part):
    """Seconds, before the time scale and the jitter."""

    image_import: Seconds = 3
    image_retry: Seconds = 10
    pod_schedule: Seconds = 0.05
    pod_start: Seconds = 0.15
    pod_stop: Seconds = 0.4
    job_sync: Seconds = 1
    job_backoff: Seconds = 10
    repository_start: Seconds = 1
    checksums: Seconds = 0.3
    prepare: Seconds = 3
    survey: Seconds = 0.3
    manifests: Seconds = 4
    pre_drain: Seconds = 1
    post_drain: Seconds = 1
    single_node: Seconds = 3
    image_cleanup: Seconds = 0.5
    host_script: Seconds = 0.1
    restore_vm: Seconds = 0.5
    other: Seconds = 0.5
    planner: Seconds = 0.1
    kubelet_upgrade: Seconds = 1
    probes: Seconds = 1
    reboot_delay: Seconds = 0.5
    reboot: Seconds = 2
    migration: Seconds = 0.8
    vm_start: Seconds = 0.5
    replica_rebuild: Seconds = 1
    chart: Seconds = 0.5
    addon: Seconds = 0.5


class Fault(_Part):
    """A fault of a container; the first matching fault applies to a Pod."""

    #: checksums, prepare, survey, pre-drain, post-drain, single-node-upgrade, manifests, restore-vm, image-cleanup,
    #: agent-hold, agent-release, skip-on, skip-off or other. With exit code 0 the container succeeds, and its message
    #: is its result.
    work: str
    #: Empty means any node.
    node: str = ""
    #: The number of the Job's attempts that fail; None means all.
    attempts: int | None = None
    #: The container's termination message.
    message: str = "the simulated work failed"
    exit_code: int = 1
    #: The container hangs instead of failing.
    hang: bool = False


class ImportFault(_Part):
    """Failing imports of an image."""

    attempts: int = Field(1, ge=1)
    message: str = "unable to process data: unexpected EOF"


class RepositoryFaults(_Part):
    """Faults of the upgrade repository."""

    #: The number of requests with `status` before the first good response.
    failing_requests: int = 0
    status: int = 503
    #: Served in place of harvester-release.yaml.
    release_text: str | None = None
    #: Paths below /harvester-iso/ that do not exist.
    missing: tuple[str, ...] = ()
    #: Paths below /harvester-iso/ and their replaced content.
    files: dict[str, str] = Field(default_factory=dict)
    #: The same for content that is changed on its way: the mounted ISO has the right one.
    changed: dict[str, str] = Field(default_factory=dict)


class NodeFaults(_Part):
    """Faults of nodes."""

    #: Nodes that never boot again.
    lost_on_reboot: tuple[str, ...] = ()
    #: The number of attempts at which a node's system-agent cannot apply its plan.
    failing_plans: dict[str, int] = Field(default_factory=dict)


class HarvesterControllers(_Part):
    """The controllers of Harvester that act on nodes, each of which may be left out."""

    #: Removes the drain taint from Ready nodes.
    node_down: bool = True
    #: Refuses to cordon the last schedulable node, on the embedded API server.
    node_validator: bool = True


class UpgradeController(_Part):
    """The settings of the system-upgrade-controller: as Rancher's chart ships it on Harvester."""

    backoff_limit: int = 99
    deadline: int = 900
    ttl: int = 900
    pull_policy: str = "IfNotPresent"


class ApiServer(_Part):
    """One of the API servers, as a TLS client sees it."""

    #: Days since its certificate became valid (negative: future), and days until it and its CA's expire.
    since_days: float = 30
    days: float = 365
    authority_days: float = 3650
    #: True if it speaks TLS on its port.
    tls: bool = True
    #: True if it responds, and the seconds after the first handshake for which it does not.
    answers: bool = True
    unreachable: Seconds = 0


class Scenario(_Part):
    """A complete scenario."""

    name: str
    description: str = ""
    software: Software = Software()
    release: Release = Release()
    nodes: Nodes = Nodes()
    vms: Fleet = Fleet()
    addons: tuple[Addon, ...] = ()
    #: Properties of API servers by address: of the clients' server, and of further ones.
    api_servers: dict[str, ApiServer] = Field(default_factory=dict)
    #: True if Rancher's and Harvester's services exist, which `cluster-upgrade` upgrades.
    services: bool = False
    #: True if there is what operators repair: Deployments of CDI's and KubeVirt's controllers, Longhorn's nodes.
    operators: bool = False
    #: True for a toolkit of Harvester that empties KubeVirt's update methods, as its own upgrade to v1.8.0 does. Its
    #: toolkit for UpgradePlans leaves them to the manager (harvester/upgrade-toolkit 5ac1bbe3 upgrade_manifests.sh).
    toolkit_writes_methods: bool = False
    #: Longhorn's replica-replenishment-wait-interval; None means that the setting does not exist.
    replenishment_interval: str | None = "600"
    #: The fraction by which durations vary in both directions.
    jitter: float = Field(0.1, ge=0, lt=1)
    durations: Durations = Durations()
    harvester: HarvesterControllers = HarvesterControllers()
    upgrade_controller: UpgradeController = UpgradeController()
    faults: tuple[Fault, ...] = ()
    image_import: ImportFault | None = None
    repository: RepositoryFaults = RepositoryFaults()
    node_faults: NodeFaults = NodeFaults()

    def fault_of(self, work: str, node: str) -> Fault | None:
        """Return the fault of a container with this work on this node."""
        fitting = (fault for fault in self.faults if fault.work == work and fault.node in {"", node})
        return next(fitting, None)

    def changed(self, **values: Any) -> Scenario:
        """Return the scenario with other values, validated like a file; nested parts are merged."""
        return parse(_merged(self.model_dump(), values), origin=self.name)


def names() -> list[str]:
    """Return the names of the named scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def load(name_or_file: str) -> Scenario:
    """Load the scenario by name or file. Raises ScenarioError."""
    path = SCENARIOS / f"{name_or_file}.yaml"
    if "/" in name_or_file or not path.is_file():
        path = Path(name_or_file)
    try:
        document = deepcopy(_parsed(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        known = ", ".join(names())
        raise ScenarioError(f"no scenario {name_or_file!r}: there is no such file; names are {known}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ScenarioError(f"scenario {name_or_file!r} cannot be read: {_one_line(error)}") from error
    if not isinstance(document, dict):
        raise ScenarioError(f"scenario {name_or_file!r} is not a mapping")
    return parse({"name": path.stem, **document}, origin=name_or_file)


@cache
def _parsed(text: str) -> Any:
    """Parse YAML once: tests load a scenario hundreds of times."""
    return yaml.safe_load(text)


def parse(document: dict[str, Any], *, origin: str) -> Scenario:
    """Parse a scenario's YAML document; `origin` names it in errors. Raises ScenarioError."""
    try:
        return Scenario.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ScenarioError(f"scenario {origin!r} is broken at {where}: {first['msg']}") from error


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        known = result.get(key)
        result[key] = _merged(known, plain) if isinstance(known, dict) and isinstance(plain, dict) else plain
    return result


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
