"""What the server fills in for built-in kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.defaults import filled

if TYPE_CHECKING:
    from tests.support.wire import Wire

BATCH = "/apis/batch/v1/namespaces/default/jobs"
CORE = "/api/v1/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CONTAINER = {"name": "c", "image": "i"}
POD_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
DEPLOYMENT = {
    "metadata": {"name": "x"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD_TEMPLATE},
}
JOB = {
    "metadata": {"name": "x"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}},
}


def _at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj[int(part)] if part.isdigit() else obj.get(part)
    return obj


@pytest.mark.parametrize(
    ("value", "template", "expected"),
    [
        pytest.param({}, {"a": 1}, {"a": 1}, id="absent"),
        pytest.param({"a": None}, {"a": 1}, {"a": 1}, id="null"),
        pytest.param({"a": 0}, {"a": 1}, {"a": 0}, id="zero is a value"),
        pytest.param({}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="absent object"),
        pytest.param({"a": {"c": 2}}, {"a": {"b": 1}}, {"a": {"c": 2, "b": 1}}, id="object in part"),
        pytest.param({}, {"a?": {"b": 1}}, {}, id="optional object"),
        pytest.param({"a": {}}, {"a?": {"b": 1}}, {"a": {"b": 1}}, id="optional object that is there"),
        pytest.param({"l": [{}, {"b": 2}]}, {"l[]": {"b": 1}}, {"l": [{"b": 1}, {"b": 2}]}, id="items"),
        pytest.param({}, {"l[]": {"b": 1}}, {}, id="no items"),
        pytest.param({"b": 3}, {"a": lambda around: around["b"]}, {"b": 3, "a": 3}, id="made of its neighbours"),
        pytest.param({}, {"a": lambda _: None}, {}, id="made of nothing"),
        pytest.param([], {"a": 1}, [], id="no object"),
    ],
)
def test_a_template_fills_in(value: Any, template: dict[str, Any], expected: Any) -> None:
    before = repr(value)
    result = filled(value, template)
    assert result == expected
    assert repr(value) == before
    assert filled(result, template) is result


@pytest.mark.parametrize(
    ("path", "body", "field", "expected"),
    [
        pytest.param(DEPLOYMENTS, DEPLOYMENT, "spec.replicas", 1, id="one replica"),
        pytest.param(DEPLOYMENTS, DEPLOYMENT, "spec.strategy.rollingUpdate.maxSurge", "25%", id="rolling"),
        pytest.param(DEPLOYMENTS, DEPLOYMENT, "spec.template.spec.dnsPolicy", "ClusterFirst", id="templates too"),
        pytest.param(DEPLOYMENTS, DEPLOYMENT, "status", {}, id="an empty status"),
        pytest.param(BATCH, JOB, "spec.backoffLimit", 6, id="six tries"),
        pytest.param(BATCH, JOB, "spec.completions", 1, id="one completion"),
        pytest.param(BATCH, JOB, "spec.template.spec.containers.0.imagePullPolicy", "Always", id="latest is pulled"),
        pytest.param(
            f"{CORE}/services",
            {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}},
            "spec.ports",
            [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            id="the port is the target",
        ),
        pytest.param(f"{CORE}/secrets", {"metadata": {"name": "x"}}, "type", "Opaque", id="opaque"),
    ],
)
async def test_a_field_that_is_left_out_has_a_default(
    wire: Wire, path: str, body: dict[str, Any], field: str, expected: Any
) -> None:
    created = await wire.post(path, body)
    assert created.status == 201, created.body
    assert _at(created.body, field) == expected
    same = await wire.put(f"{path}/x", created.body)
    assert same.version == created.version


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("a/b", "Always", id="no tag"),
        pytest.param("a/b:latest", "Always", id="latest"),
        pytest.param("a:5000/b", "Always", id="a port is no tag"),
        pytest.param("a/b:1", "IfNotPresent", id="tag"),
        pytest.param("a/b@sha256:0", "IfNotPresent", id="digest"),
    ],
)
async def test_images_without_a_fixed_tag_are_always_pulled(wire: Wire, image: str, policy: str) -> None:
    body = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": image}]}}
    created = await wire.post(f"{CORE}/pods", body)
    assert created.body["spec"]["containers"][0]["imagePullPolicy"] == policy


async def test_a_job_selects_its_own_pods(wire: Wire) -> None:
    created = (await wire.post(BATCH, JOB)).body
    uid = created["metadata"]["uid"]
    labels = created["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": uid,
        "job-name": "x",
    }
    assert created["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert created["metadata"]["labels"] == labels


async def test_a_service_keeps_its_address(wire: Wire) -> None:
    body = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}
    created = (await wire.post(f"{CORE}/services", body)).body
    assert created["spec"]["clusterIP"].startswith("10.53.")
    replaced = (await wire.put(f"{CORE}/services/x", body)).body
    assert replaced["spec"] == created["spec"]
