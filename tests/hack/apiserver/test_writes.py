"""Creates and updates: what the server fills in, what it carries over, what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.definitions import ROBOTS, WIDGETS, robot, widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STALE = "the object has been modified; please apply your changes to the latest version and try again"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_a_new_object_gets_its_system_fields(wire: Wire) -> None:
    created = await wire.post(WIDGETS, widget("a", size=1))
    metadata = created.body["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert len(metadata["uid"]) == 36
    assert metadata["resourceVersion"].isdigit()


@pytest.mark.parametrize("field", ["deletionTimestamp", "generation", "uid", "deletionGracePeriodSeconds"])
async def test_a_new_object_cannot_bring_system_fields(wire: Wire, field: str) -> None:
    value: Any = 7 if field in {"generation", "deletionGracePeriodSeconds"} else "2025-01-01T00:00:00Z"
    body = widget("a")
    body["metadata"][field] = value
    created = await wire.post(WIDGETS, body)
    assert created.body["metadata"].get(field) != value


async def test_a_generated_name_has_five_more_letters(wire: Wire) -> None:
    created = await wire.post(MAPS, {"metadata": {"generateName": "run-"}})
    name = created.body["metadata"]["name"]
    assert name.startswith("run-")
    assert len(name) == len("run-") + 5
    long = await wire.post(MAPS, {"metadata": {"generateName": "x" * 80}})
    assert len(long.body["metadata"]["name"]) == 63


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        pytest.param(
            MAPS,
            {"metadata": {}},
            422,
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
            id="no name",
        ),
        pytest.param(
            "/api/v1/namespaces/nowhere/configmaps",
            config_map("a"),
            404,
            'namespaces "nowhere" not found',
            id="no such namespace",
        ),
        pytest.param(
            MAPS,
            {"metadata": {"name": "a", "namespace": "other"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(
            MAPS,
            {"metadata": {"name": "a", "resourceVersion": "5"}},
            500,
            "resourceVersion should not be set on objects to be created",
            id="a resourceVersion",
        ),
        pytest.param(MAPS, {"kind": "Secret", "metadata": {"name": "a"}}, 400, "", id="another kind"),
        pytest.param(
            MAPS,
            {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}},
            400,
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for '
            'version "v2" in scheme "pkg/runtime/scheme.go:111"',
            id="another version",
        ),
        pytest.param(WIDGETS, {"metadata": {"name": "a"}}, 400, "", id="custom object without a kind"),
    ],
)
async def test_a_create_is_refused(wire: Wire, path: str, body: dict[str, Any], status: int, message: str) -> None:
    refused = await wire.post(path, body)
    assert refused.status == status
    assert refused.body["status"] == "Failure"
    if message:
        assert refused.body["message"] == message


async def test_a_name_is_taken_once(wire: Wire) -> None:
    await wire.post(WIDGETS, widget("a"))
    again = await wire.post(WIDGETS, widget("a"))
    assert again.status == 409
    assert again.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'widgets.example.io "a" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "a", "group": "example.io", "kind": "widgets"},
        "code": 409,
    }


async def test_an_absent_object_is_not_found(wire: Wire) -> None:
    absent = await wire.get(f"{WIDGETS}/a")
    assert absent.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'widgets.example.io "a" not found',
        "reason": "NotFound",
        "details": {"name": "a", "group": "example.io", "kind": "widgets"},
        "code": 404,
    }
    for method in ("PUT", "PATCH", "DELETE"):
        body = None if method == "DELETE" else widget("a")
        kind = "merge" if method == "PATCH" else ""
        assert (await wire.call(method, f"{WIDGETS}/a", body, kind=kind)).status == 404


async def test_an_update_for_an_older_state_is_a_conflict(wire: Wire) -> None:
    created = (await wire.post(WIDGETS, widget("a", size=1))).body
    await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 2}})
    refused = await wire.put(f"{WIDGETS}/a", created)
    assert refused.status == 409
    assert refused.body["reason"] == "Conflict"
    assert refused.body["message"] == f'Operation cannot be fulfilled on widgets.example.io "a": {STALE}'


@pytest.mark.parametrize("kind", ["merge", "json"])
async def test_a_patch_may_name_the_state_that_it_is_for(wire: Wire, kind: str) -> None:
    created = await wire.post(WIDGETS, widget("a", size=1))
    for version, status in ((created.version, 200), (created.version, 409)):
        merge: Any = {"metadata": {"resourceVersion": version}, "spec": {"size": int(version)}}
        operations: Any = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/spec/size", "value": int(version)},
        ]
        body = merge if kind == "merge" else operations
        assert (await wire.patch(f"{WIDGETS}/a", body, kind=kind)).status == status


async def test_a_patch_for_another_object_of_the_name_is_invalid(wire: Wire) -> None:
    await wire.post(WIDGETS, widget("a"))
    refused = await wire.patch(f"{WIDGETS}/a", {"metadata": {"uid": "u-1"}, "spec": {"size": 2}})
    assert refused.status == 422
    assert 'metadata.uid: Invalid value: "u-1": field is immutable' in refused.body["message"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param(WIDGETS, widget("a"), 422, id="custom kind"),
        pytest.param(LEASES, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}}, 422, id="Lease"),
        pytest.param(MAPS, config_map("a", x="2"), 200, id="ConfigMap"),
    ],
)
async def test_an_update_without_a_state_is_for_some_kinds_only(
    wire: Wire, path: str, body: dict[str, Any], status: int
) -> None:
    await wire.post(path, body)
    answer = await wire.put(f"{path}/a", body)
    assert answer.status == status, answer.body


async def test_an_update_that_changes_nothing_is_no_update(wire: Wire) -> None:
    created = await wire.post(WIDGETS, widget("a", size=1))
    async with wire.watch(WIDGETS, resourceVersion=created.version, timeoutSeconds="5") as events:
        same = await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 1}})
        put = await wire.put(f"{WIDGETS}/a", created.body)
        assert same.version == put.version == created.version
        assert await events.rest() == []


@pytest.mark.parametrize(
    ("patch", "generation"),
    [
        pytest.param({"metadata": {"labels": {"x": "y"}}}, 1, id="labels do not count"),
        pytest.param({"spec": {"size": 2}}, 2, id="the spec counts"),
        pytest.param({"status": {"phase": "x"}}, 1, id="the status is not written here"),
    ],
)
async def test_generation_counts_changes_of_the_spec(wire: Wire, patch: dict[str, Any], generation: int) -> None:
    await wire.post(WIDGETS, widget("a", size=1))
    answer = await wire.patch(f"{WIDGETS}/a", patch)
    assert answer.body["metadata"]["generation"] == generation
    assert "status" not in answer.body


async def test_without_the_subresource_status_is_part_of_the_object(wire: Wire) -> None:
    created = await wire.post(ROBOTS, robot("a", status={"phase": "new"}))
    assert created.body["status"] == {"phase": "new"}
    patched = await wire.patch(f"{ROBOTS}/a", {"status": {"phase": "old"}})
    assert patched.body["status"] == {"phase": "old"}
    assert patched.body["metadata"]["generation"] == 2


async def test_the_subresource_writes_the_status_alone(wire: Wire) -> None:
    created = await wire.post(WIDGETS, widget("a", size=1) | {"status": {"phase": "lost"}})
    assert "status" not in created.body
    patch = {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 9}, "status": {"phase": "kept"}}
    patched = await wire.patch(f"{WIDGETS}/a/status", patch)
    assert patched.body["status"] == {"phase": "kept"}
    assert patched.body["spec"] == {"size": 1}
    assert "labels" not in patched.body["metadata"]
    assert patched.body["metadata"]["generation"] == 1
    put = await wire.put(f"{WIDGETS}/a/status", patched.body | {"status": {"phase": "put"}, "spec": {}})
    assert put.body["status"] == {"phase": "put"}
    assert (await wire.get(f"{WIDGETS}/a/status")).body == put.body
    main = await wire.put(f"{WIDGETS}/a", put.body | {"status": {}, "spec": {"size": 2}})
    assert main.body["status"] == {"phase": "put"}


async def test_a_node_keeps_the_status_that_it_registers_with(wire: Wire) -> None:
    body = {"metadata": {"name": "n"}, "status": {"nodeInfo": {"kubeletVersion": "v1"}}}
    created = await wire.post("/api/v1/nodes", body)
    assert created.body["status"]["nodeInfo"]["kubeletVersion"] == "v1"


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        pytest.param({"metadata": {"name": "b"}}, 400, id="name"),
        pytest.param({"metadata": {"namespace": "kube-system"}}, 400, id="namespace"),
        pytest.param({"kind": "Gadget"}, 422, id="kind"),
    ],
)
async def test_what_an_object_is_cannot_be_changed(wire: Wire, patch: dict[str, Any], status: int) -> None:
    await wire.post(WIDGETS, widget("a"))
    assert (await wire.patch(f"{WIDGETS}/a", patch)).status == status


async def test_a_dry_run_answers_and_stores_nothing(server: ApiServer, wire: Wire) -> None:
    await wire.post(WIDGETS, widget("a", size=1))
    before = server.storage.revision
    created = await wire.post(WIDGETS, widget("b"), dryRun="All")
    assert (created.status, created.body["metadata"]["name"]) == (201, "b")
    assert "resourceVersion" not in created.body["metadata"]
    patched = await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 2}}, dryRun="All")
    assert patched.body["spec"] == {"size": 2}
    assert (await wire.delete(f"{WIDGETS}/a", dryRun="All")).status == 200
    assert (await wire.post(WIDGETS, widget("a"), dryRun="All")).status == 409
    assert server.storage.revision == before
    assert (await wire.get(f"{WIDGETS}/a")).body["spec"] == {"size": 1}


async def test_a_stored_object_never_changes(server: ApiServer, wire: Wire) -> None:
    await wire.post(WIDGETS, widget("a", list=[{"x": 1}]))
    stored = server.storage.get("widgets.example.io", ("default", "a"))
    assert stored is not None
    before = repr(stored.object)
    await wire.patch(f"{WIDGETS}/a", [{"op": "add", "path": "/spec/list/0/y", "value": 2}], kind="json")
    await wire.patch(f"{WIDGETS}/a", {"spec": {"list": None, "deep": {"z": 1}}})
    await wire.patch(f"{WIDGETS}/a/status", {"status": {"phase": "x"}})
    assert repr(stored.object) == before


async def test_nulls_of_built_in_kinds_mean_what_is_empty(wire: Wire) -> None:
    body = {"metadata": {"name": "a", "creationTimestamp": None, "labels": None}, "data": {"x": None, "y": "1"}}
    created = await wire.post(MAPS, body)
    assert created.body["data"] == {"x": "", "y": "1"}
    assert "labels" not in created.body["metadata"]
    assert created.body["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


async def test_events_of_both_groups_are_the_same_objects(wire: Wire) -> None:
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Node", "name": "n", "uid": "u"},
        "note": "hello",
        "reason": "Test",
        "type": "Normal",
        "action": "Testing",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "test.io/tester",
        "reportingInstance": "t-0",
    }
    created = await wire.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
    assert created.status == 201, created.body
    core = await wire.get("/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=n")
    assert core.body["items"][0]["message"] == "hello"
    assert core.body["items"][0]["reportingComponent"] == "test.io/tester"
    newer = await wire.get("/apis/events.k8s.io/v1/namespaces/default/events", fieldSelector="regarding.name=n")
    assert newer.body["items"][0]["note"] == "hello"


async def test_a_deployment_counts_its_generation(wire: Wire) -> None:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    created = await wire.post(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    assert created.status == 201, created.body
    scaled = await wire.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 2}})
    assert [created.body["metadata"]["generation"], scaled.body["metadata"]["generation"]] == [1, 2]


HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param(DEPLOYMENTS, {"spec": "x"}, id="spec"),
        pytest.param(DEPLOYMENTS, {"status": []}, id="status"),
        pytest.param(DEPLOYMENTS, {"spec": {"template": 5}}, id="inside of the spec"),
        pytest.param(HOOKS, {"webhooks": [1]}, id="webhooks"),
        pytest.param(HOOKS, {"webhooks": [{"rules": ["x"]}]}, id="rules"),
        pytest.param(HOOKS, {"webhooks": [{"clientConfig": "x"}]}, id="configuration of a client"),
        pytest.param("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": [1]}}, id="review"),
    ],
)
async def test_a_built_in_object_of_the_wrong_types_is_a_bad_request(
    wire: Wire, path: str, body: dict[str, Any]
) -> None:
    refused = await wire.post(path, {"metadata": {"name": "x"}} | body)
    assert refused.status == 400
    assert "cannot be handled as a" in refused.body["message"]
