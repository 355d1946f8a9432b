"""The outage of another controller's Deployment, with its remedy; facts/deployments.py has the rule.

The finders imports, migrations, rancher, repository_outage and upgrade_controller call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.facts.deployments import available_since, outage_of
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from datetime import timedelta

    from upgrade_manager.api.remedy import Remedy
    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object


class Outage(NamedTuple):
    """The reason why a Deployment has no available replica, and the remedies."""

    problem: str
    remedies: tuple[Remedy, ...]


def outage(view: View, namespace: str, name: str) -> Outage | None:
    """Return the outage of the Deployment; None if at least one replica is available."""
    found = outage_of(_read(view, namespace, name), namespace, name)
    return None if found is None else Outage(found.problem, found.ways_out)


def has_just_changed(view: View, namespace: str, name: str, *, within: timedelta) -> bool:
    """Return True if the Deployment became available, or unavailable, so recently that its work is not late yet."""
    deployment = _read(view, namespace, name)
    since = None if deployment is None else available_since(deployment)
    return since is not None and view.now - since < within


def _read(view: View, namespace: str, name: str) -> Object | None:
    selector = f"metadata.name={name}"
    found = view.objects(Selection(resource=DEPLOYMENTS, namespace=namespace, field_selector=selector))
    return found[0] if found else None
