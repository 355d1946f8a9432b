"""Reads the protobuf bodies that kubectl sends for a few built-in kinds, as `auth can-i` and `create namespace` do.

kubectl's typed clients send nothing else and do not fall back. Answers are always JSON, which they accept. What is not
in the tables below is refused with 415, rather than stored with a field missing.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import bad_request, unsupported_media_type
from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.admission import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

#: Message to field number to "name type"; a type is string, int, bool, bytes, time, ignored, a message,
#: `[]type` or `map:type`.
MESSAGES: dict[str, dict[int, str]] = {
    "ObjectMeta": {
        1: "name string",
        2: "generateName string",
        3: "namespace string",
        4: "selfLink string",
        5: "uid string",
        6: "resourceVersion string",
        7: "generation int",
        8: "creationTimestamp time",
        11: "labels map:string",
        12: "annotations map:string",
        13: "ownerReferences []OwnerReference",
        14: "finalizers []string",
    },
    "OwnerReference": {
        1: "kind string",
        3: "name string",
        4: "uid string",
        5: "apiVersion string",
        6: "controller bool",
        7: "blockOwnerDeletion bool",
    },
    "DeleteOptions": {
        1: "gracePeriodSeconds int",
        2: "preconditions Preconditions",
        3: "orphanDependents bool",
        4: "propagationPolicy string",
        5: "dryRun []string",
    },
    "Preconditions": {1: "uid string", 2: "resourceVersion string"},
    "LabelSelector": {1: "matchLabels map:string"},
    "Reference": {1: "name string"},
    # authorization.k8s.io and authentication.k8s.io
    "SelfSubjectAccessReview": {1: "metadata ObjectMeta", 2: "spec AccessSpec", 3: "status ignored"},
    "SubjectAccessReview": {1: "metadata ObjectMeta", 2: "spec AccessSpec", 3: "status ignored"},
    "LocalSubjectAccessReview": {1: "metadata ObjectMeta", 2: "spec AccessSpec", 3: "status ignored"},
    "AccessSpec": {
        1: "resourceAttributes ResourceAttributes",
        2: "nonResourceAttributes NonResourceAttributes",
        3: "user string",
        4: "groups []string",
        6: "uid string",
    },
    "ResourceAttributes": {
        1: "namespace string",
        2: "verb string",
        3: "group string",
        4: "version string",
        5: "resource string",
        6: "subresource string",
        7: "name string",
    },
    "NonResourceAttributes": {1: "path string", 2: "verb string"},
    "SelfSubjectRulesReview": {1: "metadata ObjectMeta", 2: "spec RulesSpec", 3: "status ignored"},
    "RulesSpec": {1: "namespace string"},
    "SelfSubjectReview": {1: "metadata ObjectMeta", 2: "status ignored"},
    "TokenReview": {1: "metadata ObjectMeta", 2: "spec TokenSpec", 3: "status ignored"},
    "TokenSpec": {1: "token string", 2: "audiences []string"},
    # rbac.authorization.k8s.io
    "ClusterRole": {1: "metadata ObjectMeta", 2: "rules []PolicyRule"},
    "Role": {1: "metadata ObjectMeta", 2: "rules []PolicyRule"},
    "PolicyRule": {
        1: "verbs []string",
        2: "apiGroups []string",
        3: "resources []string",
        4: "resourceNames []string",
        5: "nonResourceURLs []string",
    },
    "ClusterRoleBinding": {1: "metadata ObjectMeta", 2: "subjects []Subject", 3: "roleRef RoleRef"},
    "RoleBinding": {1: "metadata ObjectMeta", 2: "subjects []Subject", 3: "roleRef RoleRef"},
    "Subject": {1: "kind string", 2: "apiGroup string", 3: "name string", 4: "namespace string"},
    "RoleRef": {1: "apiGroup string", 2: "kind string", 3: "name string"},
    # core
    "Namespace": {1: "metadata ObjectMeta", 2: "spec NamespaceSpec", 3: "status ignored"},
    "NamespaceSpec": {1: "finalizers []string"},
    "ConfigMap": {1: "metadata ObjectMeta", 2: "data map:string", 3: "binaryData map:bytes", 4: "immutable bool"},
    "Secret": {
        1: "metadata ObjectMeta",
        2: "data map:bytes",
        3: "type string",
        4: "stringData map:string",
        5: "immutable bool",
    },
    "ServiceAccount": {
        1: "metadata ObjectMeta",
        3: "imagePullSecrets []Reference",
        4: "automountServiceAccountToken bool",
    },
    # batch and apps, as far as `kubectl create job` and `kubectl create deployment` go
    "Job": {1: "metadata ObjectMeta", 2: "spec JobSpec", 3: "status ignored"},
    "JobSpec": {
        1: "parallelism int",
        2: "completions int",
        3: "activeDeadlineSeconds int",
        6: "template PodTemplateSpec",
        7: "backoffLimit int",
        8: "ttlSecondsAfterFinished int",
    },
    "Deployment": {1: "metadata ObjectMeta", 2: "spec DeploymentSpec", 3: "status ignored"},
    "DeploymentSpec": {
        1: "replicas int",
        2: "selector LabelSelector",
        3: "template PodTemplateSpec",
        4: "strategy Empty",
        5: "minReadySeconds int",
        7: "paused bool",
    },
    "PodTemplateSpec": {1: "metadata ObjectMeta", 2: "spec PodSpec"},
    "PodSpec": {
        2: "containers []Container",
        3: "restartPolicy string",
        6: "dnsPolicy string",
        8: "serviceAccountName string",
        9: "serviceAccount string",
        10: "nodeName string",
        11: "hostNetwork bool",
        12: "hostPID bool",
        13: "hostIPC bool",
        16: "hostname string",
        17: "subdomain string",
        19: "schedulerName string",
        24: "priorityClassName string",
    },
    "Container": {
        1: "name string",
        2: "image string",
        3: "command []string",
        4: "args []string",
        5: "workingDir string",
        8: "resources Empty",
        13: "terminationMessagePath string",
        14: "imagePullPolicy string",
        16: "stdin bool",
        17: "stdinOnce bool",
        18: "tty bool",
        20: "terminationMessagePolicy string",
    },
    "Empty": {},
    "Time": {1: "seconds int", 2: "nanos int"},
}


class _UnknownField(Exception):
    """A field that the tables do not have."""


def decode(body: bytes) -> Object:
    """The object in a protobuf body. Raises StatusError 400 for garbage, 415 for what is not in the tables."""
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        envelope = {number: value for number, _, value in _fields(body[len(_MAGIC) :])}
        head = {number: value.decode() for number, _, value in _fields(envelope[1])}
        message = _message(envelope.get(2, b""), head[2])
    except _UnknownField as error:
        raise unsupported_media_type(("application/json",)) from error
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        raise bad_request(f"the protobuf message cannot be read: {error!r}") from error
    return {"kind": head[2], "apiVersion": head[1]} | message


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Field number, wire type and raw value of each field."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, wire, value
        elif wire == _LENGTH:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise ValueError("a field is longer than its message")
            yield number, wire, data[position : position + length]
            position += length
        else:
            size = {_FIXED64: 8, _FIXED32: 4}[wire]
            yield number, wire, data[position : position + size]
            position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004  # the highest bit says that more follows
            return value, position


def _message(data: bytes, name: str) -> Object:
    table = MESSAGES.get(name)
    if table is None:
        raise _UnknownField(name)
    message: Object = {}
    for number, _, raw in _fields(data):
        known = table.get(number)
        if known is None:
            if raw:
                raise _UnknownField(f"{name} {number}")
            continue
        field, kind = known.split()
        _put(message, field, kind, raw)
    return message


def _put(message: Object, field: str, kind: str, raw: Any) -> None:
    """Add a value; the empty strings that Go writes for unset fields are left out."""
    if kind.startswith("[]"):
        message.setdefault(field, []).append(_value(raw, kind[2:]))
    elif kind.startswith("map:"):
        pair = {number: value for number, _, value in _fields(raw)}
        message.setdefault(field, {})[pair.get(1, b"").decode()] = _value(pair.get(2, b""), kind[4:])
    elif raw != b"" and kind != "ignored":
        value = _value(raw, kind)
        if value is not None:
            message[field] = value


def _value(raw: Any, kind: str) -> Any:
    if kind == "string":
        return raw.decode()
    if kind == "bytes":
        return base64.b64encode(raw).decode()
    if kind == "bool":
        return bool(raw)
    if kind == "int":
        return raw - 2**64 if raw >= 2**63 else raw
    if kind == "time":
        seconds = _message(raw, "Time").get("seconds")
        return None if seconds is None else format_time(datetime.fromtimestamp(seconds, UTC))
    return _message(raw, kind)
