"""Objects that a policy refuses while the API server's copy of the plan is older than the manager's last write."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.harvester import Harvester
from upgrade_manager.kube.errors import Forbidden, Invalid, KubeError
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import SERVICES, Resource
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.plan_objects import COPY_TIMEOUT, skip_missing
from upgrade_manager.resources.repository import repository_service

MESSAGE = "ValidatingAdmissionPolicy 'harvester-upgrade-manager-active-plan' with binding 'x' denied request: no"
BY_POLICY = {"causes": [{"message": MESSAGE}]}
BY_SCHEMA = {"causes": [{"message": "Required value", "reason": "FieldValueRequired", "field": "spec.ports"}]}
METHODS = pytest.mark.parametrize("method", ["ensure", "ensure_unread"])


def refused(kind: type[KubeError], details: dict[str, Any]) -> KubeError:
    return kind(MESSAGE, status=422, details=details)


class Refusing:
    """Refuses each creation until a time, and records when each was tried."""

    def __init__(self, ctx: ReconcileContext, monkeypatch: pytest.MonkeyPatch, error: KubeError, until: float) -> None:
        self._create, self._error = ctx.client.create, error
        self._clock = asyncio.get_running_loop().time
        self.began = self._clock()
        self._until = self.began + until
        self.tried: list[float] = []
        monkeypatch.setattr(ctx.client, "create", self.create)

    @property
    def seconds(self) -> float:
        return self._clock() - self.began

    async def create(self, resource: Resource, body: Object, *, namespace: str = "") -> Object:
        self.tried.append(self.seconds)
        if self._clock() < self._until:
            raise self._error
        return await self._create(resource, body, namespace=namespace)


@METHODS
@pytest.mark.rule("permissions: a creation that the policy of the active plan refuses is repeated for 5 s")
async def test_refusal_by_an_older_copy_is_repeated(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    ctx = cluster.context(await cluster.plan())
    api = Refusing(ctx, monkeypatch, refused(Invalid, BY_POLICY), until=COPY_TIMEOUT - 0.1)
    await getattr(ctx, method)(SERVICES, repository_service(ctx.owner))
    assert await cluster.names(SERVICES, "harvester-system") == ["up-repo"]
    assert api.seconds == pytest.approx(COPY_TIMEOUT)
    pauses = [after - before for before, after in zip(api.tried, api.tried[1:], strict=False)]
    assert pauses[:4] == pytest.approx([0.05, 0.1, 0.2, 0.4])
    assert len(ctx.writes) == 1


@METHODS
@pytest.mark.rule("permissions: a creation that the policy of the active plan refuses is repeated for 5 s")
async def test_lasting_refusal_is_an_error(cluster: Harvester, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    ctx = cluster.context(await cluster.plan())
    api = Refusing(ctx, monkeypatch, refused(Invalid, BY_POLICY), until=60)
    with pytest.raises(Invalid, match="active-plan"):
        await getattr(ctx, method)(SERVICES, repository_service(ctx.owner))
    assert api.tried[-1] == pytest.approx(COPY_TIMEOUT)
    # Repetitions cost the API server little.
    assert len(api.tried) <= 10


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        pytest.param(Invalid, BY_SCHEMA, id="schema"),
        pytest.param(Invalid, {}, id="webhook"),
        pytest.param(Forbidden, BY_POLICY, id="policy without parameters"),
        pytest.param(Forbidden, {}, id="RBAC"),
    ],
)
async def test_other_refusal_is_an_error_at_once(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, kind: type[KubeError], details: dict[str, Any]
) -> None:
    ctx = cluster.context(await cluster.plan())
    api = Refusing(ctx, monkeypatch, refused(kind, details), until=60)
    with pytest.raises(kind):
        await ctx.ensure(SERVICES, repository_service(ctx.owner))
    assert api.tried == [0]


@pytest.mark.rule("pipeline: missing objects do not block deletion")
@pytest.mark.parametrize(
    ("namespace", "metadata", "skipped"),
    [
        pytest.param("longhorn-system", {}, False, id="the namespace exists"),
        pytest.param("longhorn-system", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, True, id="it is being deleted"),
        pytest.param("longhorn-system", None, True, id="it does not exist"),
        pytest.param("kube-system", None, False, id="one that always exists"),
    ],
)
async def test_forbidden_step_is_skipped_without_its_namespace(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, namespace: str, metadata: Object | None, *, skipped: bool
) -> None:
    found = None if metadata is None else {"metadata": {"name": namespace, **metadata}}
    monkeypatch.setattr(cluster.client, "find", AsyncMock(return_value=found))
    step = AsyncMock(side_effect=Forbidden("no role", status=403))
    if skipped:
        assert await skip_missing(cluster.client, namespace, step()) is None
    else:
        with pytest.raises(Forbidden):
            await skip_missing(cluster.client, namespace, step())
