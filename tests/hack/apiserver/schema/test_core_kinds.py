"""Built-in kinds through the stages of a write: what a real server would refuse is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.admission import Chain, WriteOptions
from hack.apiserver.defaults import defaults_stage
from hack.apiserver.identity import ADMIN
from hack.apiserver.jobs import job_stage
from hack.apiserver.resources import ResourceTable
from hack.apiserver.schema.stages import shape, validate
from hack.apiserver.secrets import secret_stage
from hack.apiserver.services import service_stage
from hack.apiserver.status import StatusError

TABLE = ResourceTable.builtin()
CHAIN = Chain(mutating=[shape, secret_stage, defaults_stage, service_stage], validating=[validate])
CONTAINER = {"name": "c", "image": "i"}
POD = {"containers": [CONTAINER], "restartPolicy": "Never"}


def refusals(
    group: str, plural: str, body: dict[str, Any], old: dict[str, Any] | None = None, *, name: str = "x"
) -> list[str]:
    """The findings about an object, or about a change of it."""
    row = TABLE.find(group, "v1", plural)
    assert row is not None
    metadata = {"name": name, "uid": "u"} | ({"namespace": "default"} if row.resource.namespaced else {})

    def whole(part: dict[str, Any]) -> dict[str, Any]:
        return part | {"metadata": metadata | part.get("metadata", {})}

    def prepared(obj: dict[str, Any]) -> dict[str, Any]:
        head = {"kind": row.resource.kind, "apiVersion": row.resource.api_version}
        made = CHAIN.mutate(row, head | whole(obj), None, "CREATE", write)
        return job_stage(row, made, None, "CREATE", write)

    write = WriteOptions(user=ADMIN)
    causes: list[dict[str, str]] = []
    try:
        CHAIN.validate(row, prepared(body), prepared(old) if old else None, "UPDATE" if old else "CREATE", write)
    except StatusError as error:
        if error.code == 400:
            return [error.message.partition(": ")[2]]
        causes = (error.details or {})["causes"]
    return [f"{cause['field']}: {cause['message']}" for cause in causes]


def job(pod: dict[str, Any], **template: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": pod} | template}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(job(POD), [], id="a sound one"),
        pytest.param(
            {},
            [
                "spec.template.spec.containers: Required value",
                'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
            ],
            id="nothing in it",
        ),
        pytest.param(
            job(POD | {"containers": [{"image": "i"}]}),
            ["spec.template.spec.containers[0].name: Required value"],
            id="no name of a container",
        ),
        pytest.param(
            job({"containers": [CONTAINER]}),
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
            id="no restart policy",
        ),
        pytest.param(
            job(POD | {"containers": []}), ["spec.template.spec.containers: Required value"], id="no containers"
        ),
        pytest.param(
            job(POD | {"containers": [{"name": "c"}]}),
            ["spec.template.spec.containers[0].image: Required value"],
            id="no image",
        ),
        pytest.param(
            job(POD | {"containers": [CONTAINER, CONTAINER]}),
            ['spec.template.spec.containers[1].name: Duplicate value: "c"'],
            id="a container twice",
        ),
        pytest.param(
            job(POD | {"containers": [CONTAINER | {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}),
            ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "v"'],
            id="a mount of no volume",
        ),
        pytest.param(
            job(
                POD
                | {
                    "volumes": [{"name": "v"}],
                    "initContainers": [
                        CONTAINER | {"name": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}] * 2}
                    ],
                }
            ),
            ['spec.template.spec.initContainers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique'],
            id="two mounts at one path",
        ),
        pytest.param(
            job(POD | {"volumes": [{"name": "v"}, {"name": "v"}]}),
            ['spec.template.spec.volumes[1].name: Duplicate value: "v"'],
            id="a volume twice",
        ),
        pytest.param(
            job(POD, metadata={"labels": {"a": "x" * 64}}),
            [f'spec.template.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
            id="a label of the Pods that is too long",
        ),
        pytest.param(
            {"spec": job(POD)["spec"] | {"backoffLimit": "3"}},
            ["json: cannot unmarshal string into Go struct field JobSpec.spec.backoffLimit of type int32"],
            id="a number in quotes",
        ),
    ],
)
def test_a_job(body: dict[str, Any], expected: list[str]) -> None:
    assert refusals("batch", "jobs", body) == expected


def test_a_jobs_template_never_changes() -> None:
    (found,) = refusals("batch", "jobs", job(POD | {"nodeName": "n"}), job(POD))
    assert found.startswith("spec.template: Invalid value: ")
    assert found.endswith(": field is immutable")


def deployment(labels: dict[str, str], selector: dict[str, str]) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    return {"spec": {"selector": {"matchLabels": selector}, "template": template}}


def test_a_deployments_selector_matches_its_pods_and_stays() -> None:
    sound = deployment({"a": "b"}, {"a": "b"})
    assert refusals("apps", "deployments", sound) == []
    assert refusals("apps", "deployments", deployment({"a": "c"}, {"a": "b"})) == [
        'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`'
    ]
    assert refusals("apps", "deployments", deployment({"a": "c"}, {"a": "c"}), sound) == [
        'spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable'
    ]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param({"data": {"a": "YQ=="}}, None, [], id="a sound one"),
        pytest.param(
            {"data": {"a b": "YQ=="}},
            None,
            ['data[a b]: Invalid value: "a b": a valid config key must'],
            id="a bad key",
        ),
        pytest.param({"data": {"a": "-"}}, None, ["illegal base64 data at input byte 0"], id="no base64"),
        pytest.param(
            {"data": {"a": "YWFh" * 400000}},
            None,
            ["data: Too long: may not be more than 1048576 bytes"],
            id="too big",
        ),
        pytest.param({"type": "b"}, {"type": "a"}, ['type: Invalid value: "b": field is immutable'], id="another type"),
        pytest.param(
            {"data": {"a": "YQ=="}},
            {"immutable": True},
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ],
            id="an immutable one",
        ),
    ],
)
def test_a_secret(new: dict[str, Any], old: dict[str, Any] | None, expected: list[str]) -> None:
    found = refusals("", "secrets", new, old)
    assert len(found) == len(expected), found
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_a_config_map_holds_strings() -> None:
    assert refusals("", "configmaps", {"data": {"a": "b"}}) == []
    assert refusals("", "configmaps", {"data": {"a": 1}}) == [
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    ]
    assert refusals("", "configmaps", {"data": {"a": "c"}}, {"immutable": True}) != []


@pytest.mark.parametrize(
    ("name", "spec", "expected"),
    [
        pytest.param("demo-repo", {"ports": [{"port": 80}]}, [], id="a sound one"),
        pytest.param(
            "1-repo", {"ports": [{"port": 80}]}, ['metadata.name: Invalid value: "1-repo"'], id="a digit first"
        ),
        pytest.param("a", {}, ["spec.ports: Required value"], id="no ports"),
        pytest.param("a", {"clusterIP": "None"}, [], id="a headless one needs none"),
        pytest.param(
            "a",
            {"ports": [{"port": 80}, {"name": "b", "port": 81}]},
            ["spec.ports[0].name: Required value"],
            id="no names",
        ),
        pytest.param(
            "a", {"ports": [{"port": 0, "targetPort": 1}]}, ["spec.ports[0].port: Invalid value: 0"], id="port 0"
        ),
    ],
)
def test_a_service(name: str, spec: dict[str, Any], expected: list[str]) -> None:
    found = refusals("", "services", {"spec": spec}, name=name)
    assert len(found) == len(expected), found
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_a_bindings_role_stays() -> None:
    group = "rbac.authorization.k8s.io"
    old, new = ({"roleRef": {"kind": "ClusterRole", "name": name}} for name in ("a", "b"))
    assert refusals(group, "clusterrolebindings", old) == []
    assert refusals(group, "clusterrolebindings", {"roleRef": {"kind": "ClusterRole"}}) == [
        "roleRef.name: Required value"
    ]
    assert refusals(group, "clusterrolebindings", new, old) == [
        (
            'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"b"}: '
            "cannot change roleRef"
        )
    ]


def test_a_pod_is_judged_when_it_is_made() -> None:
    assert refusals("", "pods", {"spec": {"containers": []}}) == ["spec.containers: Required value"]
    assert refusals("", "pods", {"spec": POD | {"activeDeadlineSeconds": 5}}, {"spec": POD}) == []


def test_a_variable_has_one_source() -> None:
    both = CONTAINER | {"env": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}
    (found,) = refusals("", "pods", {"spec": {"containers": [both]}})
    assert found.endswith("may not be specified when `value` is not empty")


def test_the_name_of_a_role_may_have_colons() -> None:
    assert refusals("rbac.authorization.k8s.io", "clusterroles", {}, name="system:x") == []
