"""The mutating webhook: what it records of the user, in which shape."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonpatch
import pytest

from tests.support.webhook.webhook import posted, review
from upgrade_manager.api.attribution import last_changed_by
from upgrade_manager.api.keys import ANNOTATION_CREATED_BY, ANNOTATION_LAST_CHANGED_BY, ANNOTATION_SKIP_WEBHOOK
from upgrade_manager.api.spec import UpgradePlanSpec
from webhook.mutation import MAX_ANNOTATIONS, PATH

ACCOUNT = "system:serviceaccount:flux-system:kustomize-controller"
USERS = ["alice", "alice of accounting", ACCOUNT, "Zoë/~Ünïcode", "u" * 5000]


def plan(annotations: Any = None, /, *, pause: tuple[str, ...] = (), **metadata: Any) -> dict[str, Any]:
    spec = {"version": "v1.8.0"} | ({"nodeUpgradeOption": {"pauseNodes": [*pause]}} if pause else {})
    named = {"name": "demo", **({"annotations": annotations} if annotations else {})}
    return {"metadata": named | metadata, "spec": spec}


async def reviewed(new: Any, old: Any = None, *, user: str = "alice", **fields: Any) -> Any:
    """Return the object as the API server stores it after a review."""
    operation = "CREATE" if old is None else "UPDATE"
    info = {"username": user, "groups": ["system:authenticated"]}
    body = review(**{"operation": operation, "object": new, "oldObject": old, "userInfo": info, **fields})
    response = (await posted(body, path=PATH)).review
    assert (response["uid"], response["allowed"]) == ("a-uid", True)
    if "patch" not in response:
        assert "patchType" not in response
        return new
    assert response["patchType"] == "JSONPatch"
    return jsonpatch.apply_patch(new, json.loads(base64.b64decode(response["patch"])))


def annotations_of(found: Any) -> dict[str, str]:
    return dict(found["metadata"].get("annotations") or {})


def changed_by(found: Any) -> str:
    return last_changed_by(UpgradePlanSpec.read(found["spec"]), annotations_of(found))


@pytest.mark.rule("admission: a plan records its creator, and the user who last changed what steers it")
@pytest.mark.parametrize("user", USERS, ids=lambda user: user[:12])
@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({}, id="no annotations"),
        pytest.param({"annotations": {}}, id="empty annotations"),
        pytest.param({"annotations": None}, id="null"),
        pytest.param({"annotations": {"a": "b", ANNOTATION_SKIP_WEBHOOK: "true"}}, id="others"),
        pytest.param({"annotations": {ANNOTATION_CREATED_BY: "mallory"}}, id="another name"),
        pytest.param({"name": None, "generateName": "to-"}, id="a generated name"),
    ],
)
async def test_creation_records_the_user(user: str, metadata: dict[str, Any]) -> None:
    created = plan(pause=("a",), **metadata)
    found = await reviewed(created, user=user)
    assert annotations_of(found)[ANNOTATION_CREATED_BY] == changed_by(found) == user
    kept = annotations_of(created).keys() - {ANNOTATION_CREATED_BY}
    assert {key: annotations_of(found)[key] for key in kept} == {key: annotations_of(created)[key] for key in kept}
    assert found["spec"] == created["spec"]


async def test_dry_run_shows_the_same() -> None:
    assert await reviewed(plan(), dryRun=True) == await reviewed(plan())


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(plan(pause=("a",)), plan(), id="pause list"),
        pytest.param({**plan(), "spec": {"force": True}}, plan(), id="force"),
        pytest.param(plan({ANNOTATION_SKIP_WEBHOOK: "true"}), plan(), id="waiver"),
    ],
)
async def test_change_records_its_user_and_no_creator(new: Any, old: Any) -> None:
    found = await reviewed(new, old, user="bob")
    assert changed_by(found) == "bob"
    assert ANNOTATION_CREATED_BY not in annotations_of(found)
    assert changed_by(await reviewed(old, new, user="carol")) == "carol"


async def test_earlier_user_is_replaced() -> None:
    first = await reviewed(plan(pause=("a",)))
    second = plan(annotations_of(first), pause=("a", "b"))
    assert changed_by(second) == "not recorded"
    assert changed_by(await reviewed(second, first, user="bob")) == "bob"


@pytest.mark.parametrize(
    ("new", "old", "fields"),
    [
        pytest.param(plan({"a": "b"}), plan(), {}, id="another annotation"),
        pytest.param(plan(pause=("b", "a")), plan(pause=("a", "b")), {}, id="another order"),
        pytest.param(plan(), None, {"userInfo": {}}, id="no user"),
        pytest.param(plan(), None, {"subResource": "status"}, id="a subresource"),
        pytest.param(plan(), None, {"kind": {"group": "", "version": "v1", "kind": "Pod"}}, id="another kind"),
        pytest.param(plan(), None, {"operation": "CONNECT"}, id="another operation"),
        pytest.param(None, plan(), {"operation": "DELETE"}, id="a deletion"),
        pytest.param({}, None, {}, id="no metadata"),
        pytest.param(plan({"a": "b" * (MAX_ANNOTATIONS - 1)}), None, {}, id="no room for annotations"),
    ],
)
async def test_nothing_else_is_patched(new: Any, old: Any, fields: dict[str, Any]) -> None:
    assert await reviewed(new, old, **fields) == new


async def test_annotations_are_filled_up_to_their_limit() -> None:
    empty = annotations_of(await reviewed(plan({"a": ""})))
    room = MAX_ANNOTATIONS - sum(len(key) + len(value) for key, value in empty.items())
    assert annotations_of(await reviewed(plan({"a": "b" * room})))[ANNOTATION_CREATED_BY] == "alice"
    assert ANNOTATION_LAST_CHANGED_BY not in annotations_of(await reviewed(plan({"a": "b" * (room + 1)})))
