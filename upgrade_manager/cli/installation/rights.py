"""Checks the rights of the user and of the manager's ServiceAccount by access reviews; catalogue.py lists them."""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.keys import DEFAULT_NAMESPACE, GROUP, HARVESTER_SYSTEM, LEASE, MANAGER
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.remedy import ACCOUNT
from upgrade_manager.cli.installation.cluster import INSTALL
from upgrade_manager.cli.installation.row import Row, failed, passed
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SUBJECT_ACCESS_REVIEWS, Resource

if TYPE_CHECKING:
    from upgrade_manager.cli.installation.cluster import Cluster

OWN_ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)
_USER, _MANAGER = "your rights", "manager's rights"
_READ = ("list", "watch")


class Right(NamedTuple):
    """One verb on one resource."""

    #: Empty for all, or for a resource without namespaces.
    namespace: str
    group: str
    #: With the subresource, such as `nodes/stats`.
    resource: str
    verb: str
    #: Empty for all.
    name: str

    def __str__(self) -> str:
        """Return the right as `kubectl auth can-i` has it."""
        plural, slash, subresource = self.resource.partition("/")
        kind = f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource
        return " ".join(filter(None, (self.verb, kind, self.name, self.namespace and f"in {self.namespace}")))


#: Reads of the commands for users.
USER_READS = (
    *(Right("", GROUP, "upgradeplans", verb, "") for verb in _READ),
    *(Right(DEFAULT_NAMESPACE, "", "events", verb, "") for verb in _READ),
    Right(HARVESTER_SYSTEM, "coordination.k8s.io", "leases", "get", LEASE),
)
#: By ClusterRole: what it allows more than the one before.
ROLES = {"operator": ("patch",), "editor": ("create", "delete"), "admin": ("set-toolkit-image",)}


def manager_rights() -> list[Right]:
    """Return the rules of deploy/rbac for the manager's ServiceAccount, which `make manifests` writes."""
    text = files(__package__).joinpath("manager_rights.json").read_text(encoding="utf-8")
    return [Right(*one) for one in json.loads(text)]


async def check_manager_rights(cluster: Cluster) -> Row:
    """Check that the manager's ServiceAccount has each of them."""
    rights = manager_rights()
    missing = await _missing(cluster, rights, user=ACCOUNT)
    if not missing:
        return passed(_MANAGER, f"It has all {len(rights)}.")
    listed = name_list([str(one) for one in missing])
    return failed(_MANAGER, f"{len(missing)} of {len(rights)} are missing: {listed}.", INSTALL)


async def check_user_rights(cluster: Cluster) -> Row:
    """Check that the user may read what the commands show; more rights are listed."""
    plans = {verb: Right("", GROUP, "upgradeplans", verb, "") for verbs in ROLES.values() for verb in verbs}
    missing = await _missing(cluster, [*USER_READS, *plans.values()], user="")
    unread = [str(one) for one in USER_READS if one in missing]
    if unread:
        bind = f"kubectl create clusterrolebinding upgrades-NAME --clusterrole={MANAGER}-viewer --user=NAME"
        return failed(_USER, f"You may not {name_list(unread)}. An administrator grants it to you as NAME:", bind)
    may = [verb for verb, right in plans.items() if right not in missing]
    may_not = [verb for verb, right in plans.items() if right in missing]
    texts = [f"You may read UpgradePlans{f', and {name_list(may)} them' if may else ''}"]
    texts += [f"you may not {name_list(may_not)} them"] if may_not else []
    return passed(_USER, "; ".join(texts) + ".")


async def _missing(cluster: Cluster, rights: list[Right], *, user: str) -> list[Right]:
    """Return the rights that a user lacks, in order; those of the caller with an empty name."""
    allowed = await asyncio.gather(*(_allowed(cluster, right, user) for right in rights))
    return [right for right, is_allowed in zip(rights, allowed, strict=True) if not is_allowed]


async def _allowed(cluster: Cluster, right: Right, user: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "namespace": right.namespace,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": right.verb,
        "name": right.name,
    }
    kind = SUBJECT_ACCESS_REVIEWS if user else OWN_ACCESS_REVIEWS
    spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    review = await cluster.client.create(kind, {**head, "spec": {**spec, **({"user": user} if user else {})}})
    return objects.is_true(review, "status", "allowed")
