"""Requests of the manager's account, those of a stolen token and those of the manager, for a `GuardedCluster`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from tests.support.cluster.guarded_cluster import TOOLKIT, GuardedCluster, labelled, manifest
from tests.support.managers.manager_policies import is_refused_by_policy
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import JsonResponse, RawClient
from upgrade_manager.api.keys import CATTLE_SYSTEM, LABEL_ACTIVE, LABEL_PLAN_UID
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import JOBS, SECRETS, UPGRADE_PLANS, Resource

_POLICY = re.compile("ValidatingAdmissionPolicy 'harvester-upgrade-manager-([a-z-]+)' with binding")
#: One name without the prefix, or several.
Policy = str | tuple[str, ...]
#: In place of a policy: the request needs no policy.
RBAC = "RBAC"
_PERMITTED = {200, 201}


class Attempt(NamedTuple):
    """A request, of which nothing is stored."""

    method: str
    path: str
    body: Any = None
    kind: str = ""
    selector: str = ""


#: Builds a request.
Request = Callable[[GuardedCluster], Attempt]
Build = Callable[[GuardedCluster], "Object"]
#: Changes an object in place.
Change = Callable[["Object"], object]


def row(policy: Policy, text: str, name: str, abuse: Request, permitted: Request) -> Any:
    """Return a row: what is refused by a policy with that text in its message, and its permitted counterpart."""
    return pytest.param(policy, text, abuse, permitted, id=name)


async def check(
    manager: RawClient, cluster: GuardedCluster, *, policy: Policy, text: str, abuse: Request, permitted: Request
) -> None:
    """Check that the policy refuses the abuse, and nothing its counterpart."""
    await check_refused(manager, abuse(cluster), policy=policy, text=text)
    await check_permitted(manager, permitted(cluster))


async def check_permitted(client: RawClient, attempt: Attempt) -> None:
    """Check that a request succeeds."""
    allowed = await _send(client, attempt)
    assert allowed.status in _PERMITTED, allowed.body


async def check_refused(manager: RawClient, attempt: Attempt, *, policy: Policy, text: str) -> None:
    """Check that the policy, or one of several, refuses a request."""
    refused = await _send(manager, attempt)
    assert refused.status in {403, 422}, refused.body
    message, names = refused.body["message"], (policy,) if isinstance(policy, str) else policy
    found = _POLICY.search(message)
    assert (found.group(1) if found and is_refused_by_policy(refused.body) else RBAC) in names, message
    assert text in message


async def _send(client: RawClient, attempt: Attempt) -> JsonResponse:
    query = {"labelSelector": attempt.selector} if attempt.selector else {}
    dry = {"dryRun": "All"} if attempt.method != "GET" else {}
    return await client.call(attempt.method, attempt.path, attempt.body, kind=attempt.kind, **query, **dry)


@asynccontextmanager
async def toolkit_image(
    admin: RawClient, manager: RawClient, cluster: GuardedCluster, image: Object
) -> AsyncIterator[None]:
    """Record another image in the status of the active plan, until the context ends."""
    await _record(admin, manager, cluster, image)
    try:
        yield
    finally:
        await _record(admin, manager, cluster, TOOLKIT)


async def _record(admin: RawClient, manager: RawClient, cluster: GuardedCluster, image: Object) -> None:
    path = UPGRADE_PLANS.path("upgrade", subresource="status")
    patched = await admin.patch(path, {"status": {"toolkitImage": image}})
    assert patched.status == 200, patched.body
    await _until_known(manager, cluster, works=image == TOOLKIT)


@asynccontextmanager
async def no_active_plan(admin: RawClient, manager: RawClient, cluster: GuardedCluster) -> AsyncIterator[None]:
    """Remove the label of the active plan until the context ends."""
    await _mark(admin, manager, cluster, active=None)
    try:
        yield
    finally:
        await _mark(admin, manager, cluster, active="true")


async def _mark(admin: RawClient, manager: RawClient, cluster: GuardedCluster, *, active: str | None) -> None:
    patched = await admin.patch(UPGRADE_PLANS.path("upgrade"), meta(labels={LABEL_ACTIVE: active}))
    assert patched.status == 200, patched.body
    await _until_known(manager, cluster, works=bool(active))


async def _until_known(manager: RawClient, cluster: GuardedCluster, *, works: bool) -> None:
    """Wait until the API server's copy of the plan is up to date: the manager's Jobs are created, or not."""
    attempt = create(JOBS, GuardedCluster.job)(cluster)

    async def is_known() -> bool:
        return ((await _send(manager, attempt)).status in _PERMITTED) is works

    await eventually(is_known, seconds=60)


def create(resource: Resource, build: Build, *changes: Change) -> Request:
    """Create an object, changed in place before."""

    def request(cluster: GuardedCluster) -> Attempt:
        obj = build(cluster)
        for change in changes:
            change(obj)
        return Attempt("POST", resource.path(namespace=obj["metadata"].get("namespace", "")), obj)

    return request


def patch(resource: Resource, name: str, namespace: str = "", *, subresource: str = "", **fields: Any) -> Request:
    """Merge fields into an object; "{uid}" is the active plan's."""
    path = resource.path(name, namespace=namespace, subresource=subresource)
    return lambda cluster: Attempt("PATCH", path, _with_uid(fields, cluster.uid), "merge")


def delete(resource: Resource, name: str, namespace: str) -> Request:
    return lambda _: Attempt("DELETE", resource.path(name, namespace=namespace))


def delete_all(resource: Resource, namespace: str, *, selector: str = "") -> Request:
    path = resource.path(namespace=namespace)
    return lambda cluster: Attempt("DELETE", path, selector=selector.replace("{uid}", cluster.uid))


def read(path: str) -> Request:
    """Read an object or a list."""
    return lambda _: Attempt("GET", path)


def meta(**fields: Any) -> Object:
    """Return metadata for a patch."""
    return {"metadata": fields}


def _with_uid(value: Any, uid: str) -> Any:
    if isinstance(value, dict):
        return {key: _with_uid(one, uid) for key, one in value.items()}
    return value.replace("{uid}", uid) if isinstance(value, str) else value


def secret(*changes: Change, **fields: Any) -> Request:
    """Create a Secret of the plan."""
    return create(SECRETS, lambda own: labelled(manifest(SECRETS, "more", CATTLE_SYSTEM, **fields), own.uid), *changes)


def spec(**fields: Any) -> Change:
    """Replace fields of the spec."""
    return lambda obj: obj["spec"].update(fields)


def label(value: str) -> Change:
    """Replace the label of the plan's uid, or remove it if the value is empty."""

    def change(obj: Object) -> None:
        unlabelled(obj)
        obj["metadata"]["labels"] |= {LABEL_PLAN_UID: value} if value else {}

    return change


def more(obj: Object) -> None:
    """Name an object that does not exist."""
    obj["metadata"]["name"] = "more"


def unlabelled(obj: Object) -> None:
    """Remove the label of the plan's uid."""
    del obj["metadata"]["labels"][LABEL_PLAN_UID]
