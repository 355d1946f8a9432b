"""Plans of the system-upgrade-controller (SUC), which run a Job on every managed node.

The phases ImagePreload and ImageCleanup, and pipeline/phases/host_plans.py create them; pipeline/phases/plan_jobs.py
follows their Jobs.

A Plan is never changed after its creation, because the controller would restart running Jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.image_name import digest_version
from upgrade_manager.api.keys import CATTLE_SYSTEM, LABEL_HOSTNAME, MANAGED_LABEL, Component
from upgrade_manager.api.names import label_value
from upgrade_manager.kube.resources import SUC_PLANS
from upgrade_manager.resources.image_list import LIST_KEY, LIST_PATH
from upgrade_manager.resources.toolkit import NODE_NAME, PLAN_NAME, checksums_variable, tolerations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.resources.owner import Owner
    from upgrade_manager.resources.toolkit import ToolkitImage

#: Seconds. 0 means no deadline to new versions of the controller, but the default to old ones.
DEADLINE = 21600
#: Reads the image list from mounted files, because arguments and environment are limited in length. An unreadable list
#: fails the Job; an image that is in use or missing is skipped.
REMOVE = (
    f"cat {LIST_PATH}-*/{LIST_KEY} >/tmp/images.gz && gunzip -c /tmp/images.gz >/tmp/images || exit 1; "
    "while read -r image; do "
    "chroot /host /usr/bin/env CRI_CONFIG_FILE=/var/lib/rancher/rke2/agent/etc/crictl.yaml "
    '/var/lib/rancher/rke2/bin/crictl rmi "$image" </dev/null || echo "kept $image"; done </tmp/images'
)


#: For a container that only has to start; the controller's own context is privileged.
_UNPRIVILEGED = {"privileged": False, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Settings shared by all Plans of an upgrade."""

    image: ToolkitImage
    service_account: str
    #: Of the ISO's files, by path: what our toolkit checks before it uses what it downloads.
    checksums: Mapping[str, str] = field(default_factory=dict)


def image_preload_plan(
    owner: Owner, settings: PlanSettings, *, concurrency: int, done: Sequence[str] = ()
) -> dict[str, Any]:
    """Build the Plan that loads the new release's images onto every node, except those that are `done`."""
    plan = _plan(owner, settings, Component.IMAGE_PRELOAD, concurrency=concurrency)
    if done:
        # The name of each managed node is its hostname (facts/suc_nodes.py).
        others = {"key": LABEL_HOSTNAME, "operator": "NotIn", "values": list(done)}
        plan["spec"]["nodeSelector"]["matchExpressions"] = [others]
    plan["spec"]["upgrade"] |= {"command": ["upgrade_node.sh"], "args": ["prepare"]}
    plan["spec"]["upgrade"]["envs"] += checksums_variable(settings.checksums)
    return plan


def survey_plan(owner: Owner, settings: PlanSettings, *, concurrency: int, reports: bool) -> dict[str, Any]:
    """Build the Plan that surveys every node and changes nothing.

    With `reports` each Pod reports what would make the node's upgrade fail; else it shows only that its image starts.
    """
    plan = _plan(owner, settings, Component.SURVEY, concurrency=concurrency)
    upgrade = plan["spec"]["upgrade"]
    if reports:
        upgrade |= {"command": ["upgrade_node.sh"], "args": ["survey"]}
        node = {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}
        checksums = checksums_variable(settings.checksums)
        upgrade["envs"] = [*upgrade["envs"], {"name": NODE_NAME, "valueFrom": node}, *checksums]
    else:
        upgrade |= {"command": ["true"], "securityContext": _UNPRIVILEGED}
    return plan


def image_cleanup_plan(owner: Owner, settings: PlanSettings, *, secrets: Sequence[str]) -> dict[str, Any]:
    """Build the Plan that removes the images in these Secrets' lists, one node after the other."""
    plan = _plan(owner, settings, Component.IMAGE_CLEANUP, concurrency=1)
    plan["spec"]["secrets"] = [
        {"name": name, "path": f"{LIST_PATH}-{index:02}", "ignoreUpdates": True} for index, name in enumerate(secrets)
    ]
    plan["spec"]["upgrade"] |= {"command": ["/bin/sh", "-c"], "args": [REMOVE]}
    return plan


def script_plan(
    owner: Owner, settings: PlanSettings, component: Component, *, script: str, concurrency: int
) -> dict[str, Any]:
    """Build a Plan that runs a script on every managed node, by the shell and the programs of the host."""
    plan = _plan(owner, settings, component, concurrency=concurrency)
    plan["spec"]["upgrade"] |= {"command": ["chroot", "/host", "/bin/sh", "-c"], "args": [script]}
    return plan


def image_of_jobs(spec: Mapping[str, Any]) -> str:
    """Return the image of a Plan's Jobs: the controller appends the version to one without tag and digest."""
    image = str(spec["upgrade"]["image"])
    is_complete = "@" in image or ":" in image.rpartition("/")[2]
    return image if is_complete else f"{image}:{str(spec['version']).replace('+', '-')}"


def _plan(owner: Owner, settings: PlanSettings, component: Component, *, concurrency: int) -> dict[str, Any]:
    name = owner.name_of(component)
    plan = owner.manifest(SUC_PLANS, name, component, namespace=CATTLE_SYSTEM, is_dependent=True)
    image, version = _image_and_version(settings.image)
    plan["spec"] = {
        "concurrency": concurrency,
        "jobActiveDeadlineSecs": DEADLINE,
        "nodeSelector": {"matchLabels": {MANAGED_LABEL: "true"}},
        "serviceAccountName": settings.service_account,
        "tolerations": tolerations(),
        "version": version,
        "upgrade": {
            "image": image,
            "envs": [{"name": PLAN_NAME, "value": owner.name}],
        },
    }
    return plan


def _image_and_version(image: ToolkitImage) -> tuple[str, str]:
    """Return both for the Plan, from which the controller makes exactly that image.

    It appends the version to an image without tag and digest, and uses the version as a label value; a tag that is not
    valid as one goes into the image, as a digest does.
    """
    if image.digest:
        return str(image), digest_version(image.digest)
    version = label_value(image.image_tag)
    return (image.repository, image.tag) if version == image.image_tag else (str(image), version)
